#!/usr/bin/env bash
# verify --against and diff: a torch_dist folder without metadata.json or common.pt, which Megatron does not load, is not
# equal to one that has them, whichever side lacks the file and whatever the other side is. Two that lack the same file are
# alike, with a warning.
. "$MCKPT_SOURCE"/tests/support/common.inc
model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe

expect 0 "$mckpt" convert to-mcore "$model" whole --no-sync -q
rm whole/release/mckpt_manifest.json
expect 0 "$mckpt" verify whole --against "$model"
lacks out "files"
for file in common.pt metadata.json; do
  rm -rf lost
  cp -r whole lost
  rm "lost/release/$file"
  for other in whole "$model"; do
    expect 1 "$mckpt" verify lost --against "$other"
    has out "problem[MC1010]: $file: the file is missing, without which Megatron does not load a checkpoint"
    has out "lost: not equal"
  done
  expect 1 "$mckpt" verify whole --against lost
  has out "problem[MC1010]: $file: only whole/release has this file"
  has out "whole: not equal"
  expect 1 "$mckpt" diff lost whole
  has out "file     $file  the file is missing"
  expect 0 "$mckpt" verify lost --against lost
  has out "warning[MC1302]: $file: neither side has this file"
  has out "lost: equal"
done

# A file of a model that one side lacks is a row in words, too.
cp -r "$model" without
rm without/config.json
expect 1 "$mckpt" diff without "$model"
has out "file     config.json  only $model has this file"
