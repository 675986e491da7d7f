#!/usr/bin/env bash
# A model with pytorch_model.bin and no safetensors is converted as it is; a folder without weights is not.
. "$MCKPT_SOURCE"/tests/support/common.inc
model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe
mkdir bin_model
cp "$model/config.json" bin_model
expect 3 "$mckpt" convert hf-to-fsdp bin_model out --no-sync -q
has err "download the model with its weights"
expect 0 "$mckpt" convert safetensors-to-pt "$model" bin_model/pytorch_model.bin --no-sync -q
expect 0 "$mckpt" convert hf-to-fsdp bin_model ckpt --no-sync -q
expect 0 "$mckpt" verify ckpt --against "$model"
expect 0 "$mckpt" verify ckpt --against bin_model
