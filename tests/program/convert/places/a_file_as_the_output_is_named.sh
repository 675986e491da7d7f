#!/usr/bin/env bash
# A file where the output's folder would be is called a file, before anything is written.
. "$MCKPT_SOURCE"/tests/support/common.inc

model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe
echo text >taken
for target in taken taken/below; do
  expect 4 "$mckpt" convert hf-to-fsdp "$model" $target
  has err "error[MC3003]"
  has err "here is a file"
done
expect 0 "$mckpt" convert hf-to-fsdp "$model" run --no-sync
expect 4 "$mckpt" export run taken
has err "the output is a folder, and a file has its name"
mkdir elsewhere && ln -s elsewhere link
expect 4 "$mckpt" export run link --overwrite
has err "the output is a folder, and a link has its name: a result replaces no link"
[ -L link ] && [ -d elsewhere ] || fail "the link or its folder was changed"
[ "$(cat taken)" = text ] || fail "the file was changed"
