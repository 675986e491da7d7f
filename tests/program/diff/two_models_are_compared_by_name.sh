#!/usr/bin/env bash
. "$MCKPT_SOURCE"/tests/support/common.inc

# Checkpoints of Megatron that are of two models, each with its own config: the names that one side has, and other shapes, as
# for two folders. No option is named that was not given.
"$mckpt" example a >out
"$mckpt" convert dequantize "$MCKPT_SOURCE"/test_data/quantized/qwen3_64_skiplist b -q
for to in to-mcore hf-to-fsdp to-pt; do
  for model in a b; do "$mckpt" convert $to $model $model.$to --tp 2 --no-sync -q >out; done
  for pair in "a.$to b.$to" "b.$to a.$to"; do
    expect 1 "$mckpt" diff $pair -v
    has out "compared: by name"
    has out "only A   "
    has out "only B   "
    has out "shape    "
    has out "embedding.word_embeddings.weight  bfloat16 ["
    lacks out "kept something from being compared"
    has err "the two are not of one model"
    lacks err assets
  done
  expect 1 "$mckpt" verify a.$to --against b.$to
  has out "only b.$to/release has this tensor"
done
# Two formats: under the names of one of them.
expect 1 "$mckpt" diff a.to-mcore b.hf-to-fsdp
has out "compared: tensors of the same names, as fsdp_dtensor has them"
has out "only A   "
expect 1 "$mckpt" diff b.hf-to-fsdp a.to-mcore --json
has out '"kind": "only_b"'
# With a config that is given, the other model is refused as before.
expect 4 "$mckpt" diff a.to-mcore b.to-mcore --assets a
expect 0 "$mckpt" diff a.to-mcore a.hf-to-fsdp
