#!/usr/bin/env bash
# A flipped bit in the data of a tensor: no answer says of the same folder that its files fit the manifest, which has their digests,
# neither by itself nor beside another one.
. "$MCKPT_SOURCE"/tests/support/common.inc
model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe

expect 0 "$mckpt" convert hf-to-fsdp "$model" whole --dp 2 --no-sync -q
cp -r whole damaged
python - damaged/release/__0_0.distcp <<'PY'
import sys
with open(sys.argv[1], "r+b") as f:
    at = f.read().find(b"/data/0") + 150
    f.seek(at)
    byte = f.read(1)[0]
    f.seek(at)
    f.write(bytes([byte ^ 1]))
PY
expect 1 "$mckpt" verify damaged
has out "MC1203"
has out "have its names and sizes"
lacks out "fit the manifest"
for sides in "damaged whole" "whole damaged"; do
  set -- $sides
  expect 1 "$mckpt" verify "$1" --against "$2"
  has out "MC1203"
  has out "have its names and sizes"
  lacks out "fit the manifest"
done
expect 0 "$mckpt" verify whole --against whole
has out "fit the manifest"
