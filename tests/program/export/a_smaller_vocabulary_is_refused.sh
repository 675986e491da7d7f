#!/usr/bin/env bash
# Rows beyond vocab_size are padding. Where the checkpoint itself has another config.json, which says that they are not,
# --assets with fewer is refused.
. "$MCKPT_SOURCE"/tests/support/common.inc

model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe
expect 0 "$mckpt" convert hf-to-fsdp "$model" run --no-sync
expect 0 "$mckpt" convert hf-to-fsdp "$model" padded --vocab-size 48 --no-sync
mkdir smaller
sed 's/"vocab_size": 32/"vocab_size": 30/' "$model"/config.json >smaller/config.json
for ckpt in run padded; do
  expect 4 "$mckpt" export $ckpt made --assets smaller --no-sync
  has err "error[MC2015]"
  has err "the last 2 rows"
  [ ! -e made ] || fail "something was written"
done
# Padding is named.
expect 0 "$mckpt" export padded made --no-sync
has err "the last 16 of 48 rows"
expect 0 "$mckpt" export run whole --no-sync
lacks err "padding"
