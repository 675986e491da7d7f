#!/usr/bin/env bash
# /proc is not a full disk.
. "$MCKPT_SOURCE"/tests/support/common.inc
[ -d /proc/self ] || skip "there is no /proc"
for place in /proc/x /proc/x/y; do
  expect 4 "$mckpt" convert hf-to-fsdp "$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe" "$place" --no-sync -q
  has err MC3006
  has err "stores no files"
  lacks err space
done
