#!/usr/bin/env bash
# layout shows how a run packs a model under no_shard, and says that convert refuses the model where its parameters are stored
# in parts, which a real run cannot save.
. "$MCKPT_SOURCE"/tests/support/common.inc
model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe

expect 0 "$mckpt" layout "$model" --strategy no_shard --dp 2
has err "no_shard  a run packs the model so, but cannot save it: decoder.layers.0.mlp.experts.linear_fc1.weight0"
expect 2 "$mckpt" convert hf-to-fsdp "$model" made --strategy no_shard --dp 2
has err "linear_fc1.weight0"
expect 0 "$mckpt" layout "$model" --dp 2
lacks err "cannot save it"
