#!/usr/bin/env bash
# The card of an HDF5 archive lists the files on the disk, and not those in the archive: sha256sum reads it in the folder, and a
# byte of HDF5's own that changed is named.
. "$MCKPT_SOURCE"/tests/support/common.inc
[ -e "$(dirname "$mckpt")/mckpt-hdf5" ] || skip "mckpt-hdf5 is not built"

expect 0 "$mckpt" convert hf-to-fsdp "$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe" ckpt --tp 2 -q
expect 0 "$mckpt" convert to-hdf5 ckpt archive -q
expect 0 "$mckpt" verify archive --report card.json --report SHA256SUMS
(cd archive && sha256sum --quiet -c ../SHA256SUMS) || fail "sha256sum finds other files"
[ "$(grep -c '\.h5$' SHA256SUMS)" = "$(find archive -name '*.h5' | wc -l)" ] || fail "not every file of HDF5 is on the card"
expect 0 "$mckpt" verify archive --card card.json
has out "archive: as on the card"

printf x | dd of=archive/archive.h5 bs=1 seek=9000 conv=notrunc status=none
expect 1 "$mckpt" verify archive --card card.json
has out "archive.h5"
has out "not as on the card: 1 file"

# One file alone.
expect 0 "$mckpt" convert to-hdf5 ckpt one.h5 -q # a name that ends so is one file
[ -f one.h5 ] || fail "one.h5 is no file"
expect 0 "$mckpt" verify one.h5 --report one.json
expect 0 "$mckpt" verify one.h5 --card one.json
printf x | dd of=one.h5 bs=1 seek=9000 conv=notrunc status=none
expect 1 "$mckpt" verify one.h5 --card one.json
