#!/usr/bin/env bash
# With a glob, groups have one empty line between them, and none behind the last one.
. "$MCKPT_SOURCE"/tests/support/common.inc

model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe
for glob in '*router*' '*layers.0.*' '*word_embeddings*'; do
  expect 0 "$mckpt" layout "$model" "$glob" --dp 2
  [ -n "$(tail -n 1 out)" ] || fail "an empty line ends the page of $glob"
  [ "$(cat -s out)" = "$(cat out)" ] || fail "two empty lines follow each other"
done
expect 0 "$mckpt" layout "$model" '*layers.0.*' --dp 2
[ "$(grep -c '^group ' out)" = 2 ] || fail "the two groups of layer 0 are not shown"
