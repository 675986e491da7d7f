#!/usr/bin/env bash
# A glob that names no parameter may name Hugging Face tensors: the parameters that they go into are shown.
. "$MCKPT_SOURCE"/tests/support/common.inc

model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe
expect 0 "$mckpt" layout "$model" --dp 4 '*.linear_qkv.weight'
mv out megatron.out
lacks err "Hugging Face"
expect 0 "$mckpt" layout "$model" --dp 4 '*q_proj*'
cmp out megatron.out
has err "'*q_proj*' names 2 Hugging Face tensors; shown are the parameters made of them"
expect 0 "$mckpt" layout "$model" --dp 4 --regex 'self_attn\.[kv]_proj'
cmp out megatron.out
expect 0 "$mckpt" layout "$model" --dp 4 --json model.layers.1.mlp.gate.weight
has out '"name": "decoder.layers.1.mlp.router.weight"'
has err "names 1 Hugging Face tensor; shown are the parameters made of it"

# Experts of other ranks, and what names nothing at all.
expect 1 "$mckpt" layout "$model" --ep 2 --dp 4 '*.experts.3.down_proj.weight'
has err "of which this rank has no part"
expect 0 "$mckpt" layout "$model" --ep 2 --dp 4 --rank 1 '*.experts.3.down_proj.weight'
has out "linear_fc2.weight3"
expect 1 "$mckpt" layout "$model" --dp 4 '*nothing*'
has err "no tensor matches '*nothing*'"
