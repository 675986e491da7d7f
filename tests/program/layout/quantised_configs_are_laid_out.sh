#!/usr/bin/env bash
# Packing depends on shapes alone: a config.json without weights is laid out although it declares quantised weights, with
# a warning, and as the model without quantisation. What reads data refuses such a model.
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
  for command in "ls quantised/$name --as megatron --digest" "mappings check quantised/$name" \
    "convert hf-to-fsdp quantised/$name new"; do
    expect 3 "$mckpt" $command
  done
  expect 3 "$mckpt" mappings check quantised/$name
  has err "MC2004"
done

# With weights, or an index of them, the tensors themselves may be packed.
cp -r "$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe" model
python - <<'PY'
import json
config = json.load(open("model/config.json"))
config["quantization_config"] = {"quant_method": "fp8"}
json.dump(config, open("model/config.json", "w"))
PY
expect 3 "$mckpt" layout model
has err "MC2004"
expect 3 "$mckpt" ls model --as fsdp
has err "MC2004"
