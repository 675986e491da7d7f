#!/usr/bin/env bash
# Tensors that every conversion drops, as the inverse frequencies of old models, are told when an exported
# folder is compared with the model that had them, and are not a difference. Others that are missing are.
. "$MCKPT_SOURCE"/tests/support/common.inc
python3 - "$MCKPT_SOURCE"/test_data/models/tiny_qwen3_moe <<'PYTHON'
import glob, json, os, shutil, struct, sys
name, tensor = "old", "model.layers.0.self_attn.rotary_emb.inv_freq"
shutil.copytree(sys.argv[1], name)
file = sorted(glob.glob(name + "/*.safetensors"))[-1]
raw = open(file, "rb").read()
size = struct.unpack("<Q", raw[:8])[0]
header, data = json.loads(raw[8:8 + size]), raw[8 + size:]
header[tensor] = {"dtype": "F32", "shape": [4], "data_offsets": [len(data), len(data) + 16]}
text = json.dumps(header).encode()
open(file, "wb").write(struct.pack("<Q", len(text)) + text + data + bytes(16))
index = json.load(open(name + "/model.safetensors.index.json"))
index["weight_map"][tensor] = os.path.basename(file)
index["metadata"]["total_size"] += 16
json.dump(index, open(name + "/model.safetensors.index.json", "w"))
PYTHON
expect 0 "$mckpt" convert hf-to-fsdp old run --no-sync -q
expect 0 "$mckpt" export run back --no-sync -q
expect 0 "$mckpt" verify back --against old
has out "not compared: model.layers.0.self_attn.rotary_emb.inv_freq (no conversion keeps them)"
has out "back: equal"
expect 0 "$mckpt" verify back --against old --json
has out '"note": "not compared: model.layers.0.self_attn.rotary_emb.inv_freq (no conversion keeps them)"'
# The other way round it is one too many.
expect 1 "$mckpt" verify old --against back
has out "only old has this tensor"
