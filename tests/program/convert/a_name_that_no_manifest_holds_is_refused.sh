#!/usr/bin/env bash
# The manifest is JSON: a file whose name is not UTF-8 is refused before anything is written.
. "$MCKPT_SOURCE"/tests/support/common.inc

cp -r "$MCKPT_SOURCE"/test_data/models/tiny_qwen3_moe hf
echo x >hf/$'caf\xe9.txt' || skip "the file system takes no such name"
expect 4 "$mckpt" convert hf-to-fsdp hf run
has err "error[MC3005]"
has err 'caf\xe9.txt'
[ ! -e run ] || fail "something was written"
mv hf/$'caf\xe9.txt' hf/café.txt
expect 0 "$mckpt" convert hf-to-fsdp hf run
expect 0 "$mckpt" verify run
