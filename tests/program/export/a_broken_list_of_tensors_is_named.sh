#!/usr/bin/env bash
# A fault of hf_assets/mckpt_tensors.json, or of an index, is reported of the file and not of its folder
. "$MCKPT_SOURCE"/tests/support/common.inc
model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe

expect 0 "$mckpt" convert hf-to-fsdp "$model" ckpt
assets=ckpt/release/hf_assets
cp $assets/mckpt_tensors.json sound
for broken in '{"tensors": [["a", "bfloat16", [2' '{"tensors": [["a", "no type", [2]]]}' '{"tensors": [["a", "bfloat16", [-2]]]}'; do
  echo "$broken" >$assets/mckpt_tensors.json
  expect 3 "$mckpt" export ckpt out_model
  has err "--> $assets/mckpt_tensors.json"
done
head -c 200 sound >$assets/mckpt_tensors.json
expect 3 "$mckpt" export ckpt out_model
has err "--> $assets/mckpt_tensors.json"

mkdir config_alone
cp "$model/config.json" config_alone
echo '{"weight_map": {"a": 1}}' >config_alone/model.safetensors.index.json
expect 3 "$mckpt" mappings check config_alone
has err "--> config_alone/model.safetensors.index.json"
