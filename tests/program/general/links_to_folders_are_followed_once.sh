#!/usr/bin/env bash
# Links from a folder to itself: what it holds is looked at once
. "$MCKPT_SOURCE"/tests/support/common.inc
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
