#!/usr/bin/env bash
# A data file of a DCP folder that is lost: one line says so, and one how much is lost with it. A file that
# Megatron needs to load a torch_dist folder is missed too.
. "$MCKPT_SOURCE"/tests/support/common.inc
expect 0 "$mckpt" convert to-mcore "$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe" ckpt --tp 2 --ep 2
folder=ckpt/release
rm "$folder/mckpt_manifest.json"
mv "$folder/__1_0.distcp" kept
expect 1 "$mckpt" verify ckpt
has out 'problem[MC1302]: __1_0.distcp: .metadata names the file, but it is missing'
has out 'problem[MC1001]: __1_0.distcp: rank 1: 18 chunks of 6 tensors are lost with the file'
[ "$(grep -c '__1_0' "$t/out")" = 2 ] || fail 'more than two lines'
expect 3 "$mckpt" export ckpt hf
has err 'error[MC1302]: .metadata names the file'
mv kept "$folder/__1_0.distcp"

expect 0 "$mckpt" verify ckpt
has out 'ckpt: sound'
for file in common.pt metadata.json; do
  mv "$folder/$file" kept
  expect 1 "$mckpt" verify ckpt
  has out "problem[MC1302]: $file: "
  has out 'ckpt: 1 check failed'
  expect 0 "$mckpt" inspect ckpt
  has err "warning[MC1302]: $file: "
  expect 0 "$mckpt" export ckpt "hf_$file"
  has err "warning[MC1302]: $file: "
  mv kept "$folder/$file"
done
