#!/usr/bin/env bash
# A folder with a whole model and an adapter of it: transformers with PEFT loads the model with the adapter, and a conversion reads the model
# alone. The plan says so.
. "$MCKPT_SOURCE"/tests/support/common.inc

cp -r "$MCKPT_SOURCE"/test_data/models/tiny_qwen3_moe hf
cp -r hf both
echo '{"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["q_proj"]}' >both/adapter_config.json
cp hf/*00001*.safetensors both/adapter_model.safetensors

for mode in hf-to-fsdp to-mcore to-pt; do
  expect 0 "$mckpt" convert $mode both $mode --dry-run
  has err "the folder has an adapter beside the whole model, which is not read"
  expect 0 "$mckpt" convert $mode hf $mode --dry-run
  lacks err "adapter"
done
# The config alone, as some programs leave it behind, is none.
rm both/adapter_model.safetensors
expect 0 "$mckpt" convert hf-to-fsdp both run --dry-run
lacks err "adapter"
