#!/usr/bin/env bash
# Links from a folder to itself: what it holds is looked at once
. "$(dirname "$0")/common.inc"
cp -r "$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe" model
mkdir model/sub
for n in 1 2 3 4 5 6 7 8; do
  ln -s . "model/l$n"
  ln -s . "model/sub/l$n"
  ln -s .. "model/sub/up$n"
done
expect 0 timeout 60 "$mckpt" verify model
has out "model: sound"
expect 0 timeout 60 "$mckpt" inspect model
mkdir several
cp -r "$MCKPT_SOURCE/test_data/dcp/plain" several/a
ln -s .. several/a/up
ln -s a several/b
ln -s . several/c
expect 0 timeout 60 "$mckpt" verify several
expect 0 timeout 60 "$mckpt" verify several --follow-links
# Folders without end are not all looked at.
mkdir large
(cd large && mkdir -p {1..150}/{1..150})
expect 3 timeout 60 "$mckpt" verify large
has err "MC1112"
cp "$MCKPT_SOURCE/test_data/pt/one_tensor.pt" large/150/150
ln -s ../1 large/150/150/one
expect 3 timeout 60 "$mckpt" verify large
cp -r "$MCKPT_SOURCE/test_data/dcp/plain" large/0
expect 0 timeout 60 "$mckpt" verify large
has out "and what follows (there are too many files)"
