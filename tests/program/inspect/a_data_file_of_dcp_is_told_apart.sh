#!/usr/bin/env bash
# A .distcp file without its .metadata is not called damaged: it is not a checkpoint by itself, and the lost file is named. With it, it
# is what one rank wrote, and no source of a conversion.
. "$MCKPT_SOURCE"/tests/support/common.inc
folder=$(cd "$MCKPT_SOURCE/test_data/dcp/plain" && pwd)
file=$(cd "$folder" && ls *.distcp | head -n 1)

mkdir alone && cp "$folder/$file" alone/
for command in inspect ls stats verify; do
  expect 3 "$mckpt" $command "alone/$file"
  has err "a data file of a DCP folder"
  has err "no .metadata in alone, which says what is in the file"
  has err "copy the file back beside the .metadata of its save"
  lacks err "name the folder"
  lacks err damaged
done
expect 3 "$mckpt" export "alone/$file" out
has err "a data file of a DCP folder"
cd alone
expect 3 "$mckpt" inspect "$file"
has err "no .metadata in ., which"
cp "$folder"/.metadata .
cp "$file" __9_0.distcp
expect 3 "$mckpt" inspect __9_0.distcp
has err "name the folder: ."
cd ..

# An index of each rank is an index too; another rank does not name the file.
ranks=$MCKPT_SOURCE/test_data/dcp/per_rank
for command in inspect ls stats; do expect 0 "$mckpt" $command "$ranks/__1_0.distcp"; done
has err 'the file has what rank 1 of 3 wrote'
expect 3 "$mckpt" export "$ranks/__1_0.distcp" out
has err "name the folder with the files of all ranks"
mkdir lone
cp "$ranks/__1_0.distcp" "$ranks/__0.metadata" lone
expect 3 "$mckpt" inspect lone/__1_0.distcp
has err "a data file of a DCP folder"
has err "help: "

ranks=$MCKPT_SOURCE/test_data/dcp/uneven_tp2dp2
data=$(find "$ranks" -name '__1_0.distcp')
expect 0 "$mckpt" inspect "$data"
has out "rank 1 of 4"
has err "the file has what rank 1 of 4 wrote"
expect 0 "$mckpt" stats "$data"
expect 3 "$mckpt" export "$data" out
has err "name the folder with the files of all ranks"

# verify says what one file proves, its sums and its values, and what it cannot: that the parts of all ranks are one tensor.
expect 1 "$mckpt" verify "$data"
grep -Eqx 'FAIL  coverage [0-9]+ tensors?, [0-9]+ with a part alone; each item in one chunk' out || fail "the line of coverage"
grep -Eq 'problem\[MC1304\]: [0-9]+ tensors have a part alone here: that the files of all ranks make the whole is not seen in one' out || fail "what is not proved"
grep -Eqx 'pass  values   [0-9,]+ values +finite and plausible' out || fail "the values of the piece"
has out "what is here is sound, and not proven whole: it is one rank's file"
lacks out "could not be read"
lacks out "a hole"
cp -r "$ranks" damaged
data=$(find damaged -name '__1_0.distcp')
python - "$data" <<'PY'
import sys, zipfile, io
data = bytearray(open(sys.argv[1], "rb").read())
at = data.find(b"/data/0") + 120
data[at] ^= 1
open(sys.argv[1], "wb").write(data)
PY
expect 1 "$mckpt" verify "$data"
has out "MC1203"
lacks out "what is here is sound"
