#!/usr/bin/env bash
# A model whose files are whole, but lack a weight that config.json promises, is not sound; nor is a folder that has
# no checkpoint at all.
. "$MCKPT_SOURCE"/tests/support/common.inc

model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe
mkdir less other
expect 0 "$mckpt" convert safetensors-to-pt "$model" all.pt --exclude model.norm.weight --no-sync
expect 0 "$mckpt" convert pt-to-safetensors all.pt less/model.safetensors --no-sync
cp less/model.safetensors other/
expect 0 "$mckpt" verify less
lacks out "config.json"
cp "$model/config.json" less/
expect 1 "$mckpt" verify less
has out "FAIL  model    44 tensors"
has out "MC2005"
has out "model.norm.weight"
has out "less: 1 check failed"

# For a model that no table knows, only the files are checked, and the answer says so.
echo '{"model_type": "unheard_of", "architectures": ["UnheardOf"]}' >other/config.json
expect 0 "$mckpt" verify other
has out "-     model    not compared with config.json: "
has out "other: sound"

# A config that contradicts itself, or the tensors, is told of with the reason: no conversion takes it.
cp -r "$model" odd
for change in 's/"num_attention_heads": [0-9]*/"num_attention_heads": 0/' 's/"num_attention_heads": [0-9]*/"num_attention_heads": 3/' \
  's/"num_hidden_layers": [0-9]*/"num_hidden_layers": 0/' 's/"num_hidden_layers": \([0-9]*\)/"num_hidden_layers": "\1"/' '/"num_key_value_heads"/d'; do
  sed "$change" "$model/config.json" >odd/config.json
  expect 0 "$mckpt" verify odd
  has out "warn  model    not compared with config.json"
  has out "warning[MC2001]: odd/config.json: '"
  has out "odd: sound, with warnings, but config.json was not compared"
  expect 3 "$mckpt" convert hf-to-fsdp odd ckpt
done

mkdir -p empty/below
cp "$model/config.json" empty/
for folder in empty empty/below; do
  expect 3 "$mckpt" verify $folder
  has err "error[MC1112]"
  lacks out "sound"
done
cp "$model/config.json" empty/below/
expect 3 "$mckpt" verify empty
