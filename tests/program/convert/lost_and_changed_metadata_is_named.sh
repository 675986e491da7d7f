#!/usr/bin/env bash
# A .metadata that a copy left out, or that is not the one that mckpt wrote, is named as what it is.
. "$MCKPT_SOURCE"/tests/support/common.inc
model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe
expect 0 "$mckpt" convert hf-to-fsdp "$model" ckpt --no-sync -q
mkdir copy
cp -r ckpt/release/* copy
expect 3 "$mckpt" inspect copy
has err 'lost in copying, `*` leaves out names that begin with a dot'

python -c '
data = bytearray(open("ckpt/release/.metadata", "rb").read())
data[len(data) // 2] ^= 1
open("ckpt/release/.metadata", "wb").write(data)'
expect 3 "$mckpt" export ckpt out --no-sync -q
has err "error[MC1314]"
lacks err "--accept"
