#!/usr/bin/env bash
# An option that means something only beside another one is not passed over in silence.
. "$MCKPT_SOURCE"/tests/support/common.inc

expect 2 "$mckpt" ls "$MCKPT_SOURCE"/test_data/models/tiny_qwen3_moe --tp 2
has err "--tp has a meaning only with --as"
expect 2 "$mckpt" verify "$MCKPT_SOURCE"/test_data/models/tiny_qwen3_moe --params-dtype auto
has err "--params-dtype has a meaning only with --against"
expect 0 "$mckpt" ls "$MCKPT_SOURCE"/test_data/models/tiny_qwen3_moe --as megatron --tp 2
model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe
for other in --tree --args --groups; do
  expect 2 "$mckpt" inspect "$model" --map $other
  has err "$other has no effect beside --map"
done
for other in --tree --args; do
  expect 2 "$mckpt" inspect "$model" --groups $other
  has err "$other has no effect beside --groups"
done
expect 0 "$mckpt" inspect "$model" --tree --args
expect 0 "$mckpt" inspect "$model" --groups --args --json
expect 2 "$mckpt" diff "$model" "$model" --only equal --top 3
has err "--top is about tensors that differ"
expect 0 "$mckpt" diff "$model" "$model" --only equal
expect 0 "$mckpt" diff "$model" "$model" --only changed --top 3
# The help in an error is the help of the mode.
expect 2 "$mckpt" convert hf-to-fsdp hf out --tpp 2
has err "mckpt convert hf-to-fsdp --help"
