#!/usr/bin/env bash
# The extremes of 64-bit integers are exact, on either side of 2^63
. "$MCKPT_SOURCE"/tests/support/common.inc
python - <<'PY'
import json, struct
values = {"low": ("U64", "<3Q", [2127443417015158211, 7, 9007199254740993]), "high": ("U64", "<3Q", [2**64 - 1, 2**63, 2**63 - 1]),
          "signed": ("I64", "<3q", [-2**63, 2**63 - 1, 9007199254740993])}
header, data = {}, b""
for name, (dtype, form, numbers) in values.items():
    header[name] = {"dtype": dtype, "shape": [3], "data_offsets": [len(data), len(data) + 24]}
    data += struct.pack(form, *numbers)
text = json.dumps(header).encode()
open("x.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + data)
PY
expect 0 "$mckpt" --json stats x.safetensors
python - <<'PY' || fail "other extremes"
import json
found = {t["name"]: (t["min"], t["max"]) for t in json.load(open("out"))["tensors"]}
wanted = {"low": (7, 2127443417015158211), "high": (2**63 - 1, 2**64 - 1), "signed": (-2**63, 2**63 - 1)}
raise SystemExit(0 if found == wanted else f"{found}, not {wanted}")
PY
