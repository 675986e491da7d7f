#!/usr/bin/env bash
# A cast that makes finite values infinite publishes nothing, and names the tensors. With --allow-overflow it does,
# with a warning. Values that become zero are counted.
. "$MCKPT_SOURCE"/tests/support/common.inc
cp -r "$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe" model
# The first items of the last norm become 1e5, of which fp16 makes an infinity, and 1e-30, which becomes zero there.
python - <<'PYTHON'
import json, struct
with open("model/model.safetensors.index.json") as f:
    file = "model/" + json.load(f)["weight_map"]["model.norm.weight"]
with open(file, "r+b") as f:
    size = struct.unpack("<Q", f.read(8))[0]
    entry = json.loads(f.read(size))["model.norm.weight"]
    assert entry["dtype"] == "BF16"
    f.seek(8 + size + entry["data_offsets"][0])
    f.write(struct.pack("<4H", 0x47c3, 0xc7c3, 0x0da2, 0x7f80))
PYTHON
norm=model.module.decoder.final_layernorm.weight

expect 4 "$mckpt" convert hf-to-fsdp model half --dp 2 --dtype fp16 --no-sync -q
has err MC0106
has err "$norm: 2 values"
has err "--allow-overflow"
[ ! -e half/release ] || fail "an infinite weight was published"
# Resuming it reports the same, although the rest is done.
expect 4 "$mckpt" convert hf-to-fsdp model half --dp 2 --dtype fp16 --no-sync -q --resume
has err "$norm: 2 values"
expect 0 "$mckpt" convert hf-to-fsdp model half --dp 2 --dtype fp16 --no-sync -q --resume --allow-overflow --json
has err "warning: 2 finite values became infinite in 1 tensor: $norm (2)"
has out '"became_infinite": 2'
has out '"resumed": "unfinished"'
has out "\"overflowed\": [\"$norm\"]"
# It is what converting makes of the model, and not all of it.
expect 0 "$mckpt" verify half --against model
has out "overflow 1 tensor"
has out "finite values of the source are infinite"

expect 0 "$mckpt" convert hf-to-fsdp model bf16 --dp 2 --no-sync -q --json
empty err
has out '"became_infinite": 0'
has out '"became_zero": 0'
expect 4 "$mckpt" export bf16 back --dtype fp16 --no-sync -q
has err "model.norm.weight: 2 values"
expect 0 "$mckpt" export bf16 back --dtype fp16 --no-sync --allow-overflow --json --overwrite
has err "warning: 2 finite values became infinite in 1 tensor: model.norm.weight (2)"
has err "became zero"
lacks out '"became_zero": 0'
expect 0 "$mckpt" verify back --against bf16
has out "finite values of the source are infinite"
expect 0 "$mckpt" export bf16 wide --dtype fp32 --no-sync -q
lacks err infinite

# In every rank the same is known.
if [ -e "$(dirname "$mckpt")/libmckpt_mpi.so" ]; then
  ranks=("$MCKPT_SOURCE/scripts/mpirun" -n 2 --quiet "$mckpt" export bf16 of_ranks --dtype fp16 --no-sync -q)
  expect 4 "${ranks[@]}"
  has err "model.norm.weight: 2 values"
  expect 0 "${ranks[@]}" --allow-overflow --resume
  has err "warning: 2 finite values became infinite in 1 tensor: model.norm.weight (2)"
fi
