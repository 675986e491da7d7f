#!/usr/bin/env bash
# --overwrite replaces neither what links of the source lead to, nor the source under another path (a mount).
. "$MCKPT_SOURCE"/tests/support/common.inc

model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe
expect 0 "$mckpt" convert hf-to-fsdp "$model" real --tp 2 --no-sync
sums() { find real -type f -exec sha256sum {} + | sort -k2; }
before=$(sums)
refused() {
  expect 4 "$mckpt" "$@" --overwrite --no-sync
  has err "error[MC3003]"
  has err "the source from which it is made"
  [ "$(sums)" = "$before" ] || fail "the source was changed: $*"
}
mkdir -p view/release
ln -s "$PWD"/real/release/*.distcp "$PWD"/real/release/.metadata view/release/
cp real/latest* view
refused convert reshard view real --assets "$model" --follow-links
refused export view real --assets "$model" --follow-links
# Beside what the links lead to is room.
expect 0 "$mckpt" convert reshard view real/other --assets "$model" --follow-links --no-sync
rm -r real/other

mkdir mounted
mount --bind real mounted 2>/dev/null || skip "no folder can be mounted here; links were looked at"
trap 'umount "$t"/mounted; rm -rf "$t"' EXIT
refused convert reshard real mounted
refused convert reshard mounted real
refused export real mounted/release
