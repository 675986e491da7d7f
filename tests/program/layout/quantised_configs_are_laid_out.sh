#!/usr/bin/env bash
# Packing depends on shapes alone: a model whose config.json declares quantised weights is laid out as the
# model without quantisation, with a warning, if its folder has no weights or weights of a method that is not
# decoded. Commands that read data refuse such a model.
. "$MCKPT_SOURCE"/tests/support/common.inc

models=$MCKPT_SOURCE/test_data/golden/models
for model in deepseek_v3:fp8 gpt_oss:mxfp4 qwen3_vl:awq; do
  name=${model%:*} method=${model#*:}
  mkdir -p plain/$name quantised/$name
  cp "$models/$name/config.json" plain/$name/
  python - "$name" "$method" <<'PY'
import json, sys
config = json.load(open(f"plain/{sys.argv[1]}/config.json"))
config.get("text_config", config)["quantization_config"] = {"quant_method": sys.argv[2]}
json.dump(config, open(f"quantised/{sys.argv[1]}/config.json", "w"))
PY
  for command in "layout" "ls --as megatron" "ls --as fsdp"; do
    expect 0 "$mckpt" ${command/ / plain/$name } $([ "$command" != layout ] || echo plain/$name) --dp 1
    mv out plain.out
    expect 0 "$mckpt" ${command/ / quantised/$name } $([ "$command" != layout ] || echo quantised/$name) --dp 1
    cmp out plain.out
    has err "says that the weights are quantised: $method; shapes and sizes are those of the model before quantisation"
  done
  for command in "ls quantised/$name --as megatron --digest" "convert hf-to-fsdp quantised/$name new"; do
    expect 3 "$mckpt" $command
  done
done
expect 3 "$mckpt" mappings check quantised/qwen3_vl
has err "MC2004"

# With weights the tensors themselves may be packed: names and shapes are the config's.
expect 0 "$mckpt" layout "$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe"
mv out plain.out
cp -r "$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe" model
python - <<'PY'
from struct import pack
import os
for name in os.listdir("model"):
    if name.endswith(".safetensors"):
        os.remove("model/" + name)
header = b'{"model.layers.0.mlp.gate.qweight":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}'
open("model/model.safetensors", "wb").write(pack("<Q", len(header)) + header + b"abcd")
import json
config = json.load(open("model/config.json"))
config["quantization_config"] = {"quant_method": "gptq"}
json.dump(config, open("model/config.json", "w"))
PY
expect 0 "$mckpt" layout model
cmp out plain.out
has err "shapes and sizes are those of the model before quantisation"
expect 0 "$mckpt" ls model --as fsdp
has err "shapes and sizes are those of the model before quantisation"
for command in "ls model --as fsdp --digest" "mappings check model" "convert hf-to-fsdp model new"; do
  expect 3 "$mckpt" $command
  has err "MC2004"
done
