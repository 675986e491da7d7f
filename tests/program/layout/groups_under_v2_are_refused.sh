#!/usr/bin/env bash
# A checkpoint of Megatron-FSDP v2 does not say which layers are in a group, so nothing could read it back: groups are
# refused with v2 by every command that plans for it, and taken with v1.
. "$MCKPT_SOURCE"/tests/support/common.inc

model=$MCKPT_SOURCE/test_data/golden/models/nemotron_h
for command in "layout $model" "ls $model --as fsdp"; do
  expect 0 "$mckpt" $command --hybrid-pattern '[M-][M*-]'
  expect 0 "$mckpt" $command --engine v2
  expect 2 "$mckpt" $command --engine v2 --hybrid-pattern '[M-][M*-]'
  has err "error[MC0203]"
  has err "does not say the groups of layers"
  has err "--engine v1"
done
