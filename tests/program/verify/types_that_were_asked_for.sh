#!/usr/bin/env bash
# verify --against takes types as it finds them; with --dtype a weight that is stored in another type is a difference.
. "$MCKPT_SOURCE"/tests/support/common.inc
model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe # in bfloat16

expect 0 "$mckpt" convert hf-to-fsdp "$model" wide --dp 2 --dtype fp32 --no-sync -q
expect 0 "$mckpt" verify wide --against "$model"
lacks out types
expect 0 "$mckpt" verify wide --against "$model" --dtype fp32
has out 'pass  types'
has out 'wide: equal'
for asked in bf16 keep; do
  expect 1 "$mckpt" verify wide --against "$model" --dtype $asked
  has out 'FAIL  types'
  has out 'stored as float32, and bfloat16 was asked for'
  has out 'pass  against' # the values are equal all the same
  has out 'wide: not equal'
done
expect 1 "$mckpt" verify wide --against "$model" --dtype bf16 --json
has out '"equal": false'
has out '"expected": "bfloat16"'
has out '"found": "float32"'

# One weight of another type, and the rule that asks for it. A rule alone says nothing about other weights.
expect 0 "$mckpt" convert hf-to-fsdp "$model" mixed --dp 2 --dtype-rule '*.router.weight=fp32' --no-sync -q
expect 1 "$mckpt" verify mixed --against "$model" --dtype bf16
has out 'router.weight'
lacks out 'linear_qkv'
expect 0 "$mckpt" verify mixed --against "$model" --dtype bf16 --dtype-rule '*.router.weight=fp32'
expect 0 "$mckpt" verify mixed --against "$model" --dtype-rule '*.router.weight=fp32'
expect 1 "$mckpt" verify mixed --against "$model" --dtype-rule '*.router.weight=fp16'
expect 1 "$mckpt" verify mixed --against "$model" --dtype-rule '*.rooter.weight=fp32'
has err 'no name matches'

# A resharding keeps types; an export has a type of its own; a file has the type of the other file.
expect 0 "$mckpt" convert reshard wide resharded --tp 2 --dp 1 --no-sync -q
expect 0 "$mckpt" verify resharded --against wide --dtype fp32
expect 1 "$mckpt" verify resharded --against wide --dtype bf16
expect 0 "$mckpt" export wide narrow --no-sync -q
expect 0 "$mckpt" verify narrow --against wide --dtype bf16
expect 1 "$mckpt" verify narrow --against wide --dtype keep
has out 'stored as bfloat16, and float32 was asked for'
expect 0 "$mckpt" convert safetensors-to-pt narrow one.pt --no-sync -q
expect 0 "$mckpt" verify one.pt --against narrow --dtype bf16
expect 1 "$mckpt" verify one.pt --against narrow --dtype fp16

# Under Megatron-FSDP v2 every weight is fp32, whatever the type of the model is.
expect 0 "$mckpt" convert reshard mixed v2 --engine v2 --dp 2 --no-sync -q
expect 0 "$mckpt" verify v2 --against mixed --dtype fp32
expect 1 "$mckpt" verify v2 --against mixed --dtype keep

expect 2 "$mckpt" verify wide --dtype bf16 # of what, without --against
expect 2 "$mckpt" verify wide --against "$model" --dtype int8
