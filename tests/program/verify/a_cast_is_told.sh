#!/usr/bin/env bash
# verify --against calls equal what converting gives. Where the type of the result does not hold the values of the
# source that is said beside it.
. "$MCKPT_SOURCE"/tests/support/common.inc
model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe

expect 0 "$mckpt" convert hf-to-fsdp "$model" half --dp 2 --dtype fp16 --params-dtype fp16 --no-sync -q
expect 0 "$mckpt" verify half --against "$model"
has out "casts"
has out "are compared after a cast from bfloat16 to float16"
has out "half: equal after a cast that rounds; 45 tensors have a type that does not hold all values of the source's"
expect 0 "$mckpt" verify half --against "$model" --dtype fp16
[ "$(tail -n 1 out)" = "half: equal" ] || fail "a type that was asked for is no news"
expect 0 "$mckpt" verify half --against "$model" --json
has out '"casts"'
has out '"equal": true'
has out '"rounded": 45'

expect 0 "$mckpt" convert hf-to-fsdp "$model" wide --dp 2 --dtype fp32 --no-sync -q
expect 0 "$mckpt" verify wide --against "$model"
has out "casts    45 tensors      values fit the wider type; float32 here, bfloat16 in the source"
has out "wide: equal in value; 45 tensors have another type"
expect 0 "$mckpt" verify wide --against "$model" --json
has out '"rounded": 0'
expect 0 "$mckpt" verify wide --against "$model" --dtype fp32
[ "$(tail -n 1 out)" = "wide: equal" ] || fail "types that were asked for are no news"

# Tensors that only one side has are an answer, not an error.
expect 1 "$mckpt" verify "$MCKPT_SOURCE"/test_data/pt/dtypes.pt --against "$model" --json
has out '"equal": false'
has out "only $model has this tensor"
has out "only $MCKPT_SOURCE/test_data/pt/dtypes.pt has this tensor"
empty err

# The way back: an export in a type that does not hold the checkpoint's values.
expect 0 "$mckpt" export wide narrow --dtype fp16 --no-sync -q
expect 0 "$mckpt" verify narrow --against wide --assets "$model"
has out "are compared after a cast from float32 to float16"
has out "narrow: equal after a cast that rounds; 45 tensors"

# Two folders of models, and one that lost its config.
expect 0 "$mckpt" export wide wide_hf --dtype fp32 --no-sync -q
expect 0 "$mckpt" verify wide_hf --against "$model"
has out "wide_hf: equal in value; 45 tensors have another type"
expect 0 "$mckpt" verify wide_hf --against "$model" --dtype fp32
[ "$(tail -n 1 out)" = "wide_hf: equal" ] || fail "types that were asked for are no news"
expect 1 "$mckpt" verify wide_hf --against "$model" --dtype bf16
expect 0 "$mckpt" verify narrow --against "$model"
has out "narrow: equal after a cast that rounds; 45 tensors"
rm wide_hf/config.json wide_hf/mckpt_manifest.json
expect 0 "$mckpt" verify wide_hf --against "$model"
has out "warning[MC1010]: config.json: only $model has this file"
