#!/usr/bin/env bash
. "$MCKPT_SOURCE"/tests/support/common.inc

expect 2 "$mckpt" explain ""
has err "there is no error code ''"
model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe
for command in "ls $model" "stats $model" "plot $model -o page.html" "layout $model" "diff $model $model"; do
  expect 2 "$mckpt" $command ""
  has err "the GLOB is empty"
done
expect 2 "$mckpt" mappings check "$model" ""
has err "MAP is empty"
expect 2 "$mckpt" mappings draw ""
has err "SUBJECT is empty"
expect 0 "$mckpt" pattern ""
has out "(empty pattern)"
expect 2 "$mckpt" pattern --from-ratios ""
has err "found    ''"
expect 2 "$mckpt" pattern "" --from-ratios 5,0,0
has err "exclude each other"
