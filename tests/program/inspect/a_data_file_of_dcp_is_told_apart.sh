#!/usr/bin/env bash
# A .distcp file is not called damaged: it is not a checkpoint by itself, and the folder is named
. "$MCKPT_SOURCE"/tests/support/common.inc
folder=$(cd "$MCKPT_SOURCE/test_data/dcp/plain" && pwd)
file=$(cd "$folder" && ls *.distcp | head -n 1)

for command in inspect ls stats verify; do
  expect 3 "$mckpt" $command "$folder/$file"
  has err "a data file of a DCP folder"
  has err "name the folder: $folder"
  lacks err damaged
done
expect 3 "$mckpt" export "$folder/$file" out
has err "a data file of a DCP folder"
cd "$folder"
expect 3 "$mckpt" inspect "$file"
has err "name the folder: ."
