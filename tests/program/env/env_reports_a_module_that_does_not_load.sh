#!/usr/bin/env bash
. "$MCKPT_SOURCE"/tests/support/common.inc

echo "not a library" >libmckpt_torch.so
MCKPT_MODULE_PATH=$t expect 1 "$mckpt" env
has out "the torch module does not load"
has out "$t/libmckpt_torch.so"
has out "file too short"
has out "MCKPT_TORCH=ON"
MCKPT_MODULE_PATH=$t expect 1 "$mckpt" env --json
has out '"ok": false'
