#!/usr/bin/env bash
# A folder with a manifest is judged by it, whatever it is taken for: an archive without its main file looks like two
# checkpoints, and a folder with the table of another format like that format.
. "$MCKPT_SOURCE"/tests/support/common.inc
model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe
"$mckpt" formats 2>/dev/null | grep -q HDF5 || skip "no HDF5 here"
expect 0 "$mckpt" convert hf-to-fsdp "$model" ck --tp 2 --no-sync -q
"$mckpt" convert to-hdf5 ck/release ar.h5 --no-sync -q >out 2>err || { grep -q MC0004 err && skip "no HDF5 module here"; fail "no archive"; }
[ -d ar.h5 ] || skip "the archive is one file"
expect 0 "$mckpt" verify ar.h5
rm ar.h5/archive.h5
expect 1 "$mckpt" verify ar.h5
has out "FAIL  manifest"
has out "archive.h5: the file is missing, but mckpt_manifest.json lists it"
has out "1 check failed"
expect 1 "$mckpt" verify ar.h5 --json
has out '"ok": false'
# A byte of what is left.
cp -r ar.h5 flipped
part=$(basename "$(ls flipped/*.distcp.h5 | head -n 1)")
printf '\x55' | dd of="flipped/$part" bs=1 seek=$(($(stat -c %s "flipped/$part") - 40)) conv=notrunc status=none
expect 1 "$mckpt" verify flipped
has out "$part: "
# Nothing of it is left that is a checkpoint.
mkdir bare && cp ar.h5/mckpt_manifest.json bare
expect 1 "$mckpt" verify bare
has out "mckpt_manifest.json lists it"

# A folder of Hugging Face with the table of a DCP folder beside.
expect 0 "$mckpt" export ck h --no-sync -q
cp ck/release/.metadata ck/release/*.distcp h
weights=$(basename "$(ls h/*.safetensors | head -n 1)")
printf '\x55' | dd of="h/$weights" bs=1 seek=$(($(stat -c %s "h/$weights") - 40)) conv=notrunc status=none
expect 1 "$mckpt" verify h
has out "$weights: the data of a tensor"
