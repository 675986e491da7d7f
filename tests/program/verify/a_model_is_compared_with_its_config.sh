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

# Of a model that no table knows, only the files are checked, and the answer says so.
echo '{"model_type": "unheard_of", "architectures": ["UnheardOf"]}' >other/config.json
expect 0 "$mckpt" verify other
has out "-     model    not compared with config.json: "
has out "other: sound"

mkdir -p empty/below
cp "$model/config.json" empty/
for folder in empty empty/below; do
  expect 3 "$mckpt" verify $folder
  has err "error[MC1112]"
  lacks out "sound"
done
cp "$model/config.json" empty/below/
expect 3 "$mckpt" verify empty
