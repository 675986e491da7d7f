#!/usr/bin/env bash
# `verify --against` names every tensor that differs, also where tensors of one file differ one after the other.
. "$MCKPT_SOURCE"/tests/support/common.inc
cp -r "$MCKPT_SOURCE"/test_data/models/tiny_qwen3_moe model
expect 0 "$mckpt" convert hf-to-fsdp model run --no-sync -q
expect 0 "$mckpt" export run back --no-sync -q
python3 - <<'PYTHON'
# One byte in each tensor.
import glob, json, struct
for path in glob.glob("back/*.safetensors"):
    raw = bytearray(open(path, "rb").read())
    size = struct.unpack("<Q", raw[:8])[0]
    for name, entry in json.loads(raw[8:8 + size]).items():
        if name != "__metadata__":
            raw[8 + size + entry["data_offsets"][0]] ^= 1
    open(path, "wb").write(raw)
PYTHON
for source in run model; do
  expect 1 "$mckpt" verify back --against $source -v
  [ "$(grep -c 'differs at \[0.*1 item differs' "$t/out")" = 45 ] || fail "not every tensor is named"
done
expect 1 "$mckpt" verify run --against back --json
[ "$(grep -o '"items": *1' "$t/out" | wc -l)" -ge 20 ] || fail "not every tensor is listed"

# Values of another kind are not compared: "nothing to check" is not said of them.
cp -r model whole_numbers
sed -i 's/"BF16"/"U16" /g' whole_numbers/*.safetensors
expect 1 "$mckpt" verify whole_numbers --against model
has out "FAIL  against  0 tensors, 45 could not be compared; values against the source"
lacks out "nothing to check"
