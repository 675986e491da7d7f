#!/usr/bin/env bash
# As for folders, what is missing above a result that is one file is made, but not by a dry run.
. "$MCKPT_SOURCE"/tests/support/common.inc

expect 0 "$mckpt" convert pt-to-safetensors "$MCKPT_SOURCE"/test_data/pt/zip.pt a/b/model.safetensors --tensors-only --dry-run
[ ! -e a ] || fail "the dry run made a folder"
expect 0 "$mckpt" convert pt-to-safetensors "$MCKPT_SOURCE"/test_data/pt/zip.pt a/b/model.safetensors --tensors-only
expect 0 "$mckpt" verify a/b/model.safetensors
echo x >file
expect 4 "$mckpt" convert pt-to-safetensors "$MCKPT_SOURCE"/test_data/pt/zip.pt file/model.safetensors --tensors-only
has err "error[MC3003]"
