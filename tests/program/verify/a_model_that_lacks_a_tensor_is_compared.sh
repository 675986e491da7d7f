#!/usr/bin/env bash
# A Hugging Face folder that lacks a tensor of its config is refused by `verify --against`, with the tensor's name.
. "$MCKPT_SOURCE"/tests/support/common.inc
cp -r "$MCKPT_SOURCE"/test_data/models/tiny_qwen3_moe model
expect 0 "$mckpt" convert hf-to-fsdp model run --no-sync -q
expect 0 "$mckpt" export run back --no-sync -q
python3 - <<'PYTHON'
import glob, json, struct
for path in glob.glob("back/*.safetensors"):
    raw = open(path, "rb").read()
    size = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + size])
    if "model.norm.weight" not in header:
        continue
    begin, end = header.pop("model.norm.weight")["data_offsets"]
    data = raw[8 + size:8 + size + begin] + raw[8 + size + end:]
    for name, entry in header.items():
        if name != "__metadata__":
            entry["data_offsets"] = [at - (end - begin) * (at >= end) for at in entry["data_offsets"]]
    text = json.dumps(header).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + data)
PYTHON
expect 3 "$mckpt" verify back --against run
has err "model.norm.weight"
