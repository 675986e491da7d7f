#!/usr/bin/env bash
# A .distcp file without its .metadata is not called damaged: it is not a checkpoint by itself, and the folder is named. With it, it is
# what one rank wrote, and no source of a conversion.
. "$MCKPT_SOURCE"/tests/support/common.inc
folder=$(cd "$MCKPT_SOURCE/test_data/dcp/plain" && pwd)
file=$(cd "$folder" && ls *.distcp | head -n 1)

mkdir alone && cp "$folder/$file" alone/
for command in inspect ls stats verify; do
  expect 3 "$mckpt" $command "alone/$file"
  has err "a data file of a DCP folder"
  has err "name the folder: alone"
  lacks err damaged
done
expect 3 "$mckpt" export "alone/$file" out
has err "a data file of a DCP folder"
cd alone
expect 3 "$mckpt" inspect "$file"
has err "name the folder: ."
cd ..

ranks=$MCKPT_SOURCE/test_data/dcp/uneven_tp2dp2
data=$(find "$ranks" -name '__1_0.distcp')
expect 0 "$mckpt" inspect "$data"
has out "rank 1 of 4"
has err "the file has what rank 1 of 4 wrote"
expect 0 "$mckpt" stats "$data"
expect 3 "$mckpt" export "$data" out
has err "name the folder with the files of all ranks"
