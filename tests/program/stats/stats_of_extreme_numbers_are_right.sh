#!/usr/bin/env bash
# Mean, deviation and histogram where doubles overflow, vanish or round: as exact arithmetic has them
. "$MCKPT_SOURCE"/tests/support/common.inc
cat > cases.py <<'PY'
from fractions import Fraction
from math import isqrt
big = 2**53 + 1
cases = {"huge": ("F64", "<3d", [1.7e308, 1.7e308, -1.7e308], [1, 0, 0, 2]), "tiny": ("F64", "<3d", [1e-320, 2.2e-320, 3e-320], [1, 0, 1, 1]),
         "small": ("F64", "<2d", [1e-200, -1e-200], [1, 0, 0, 1]), "long": ("I64", "<4q", [big, big, big, big + 2], [3, 0, 0, 1]),
         "int": ("I32", "<7i", [-2**31, 2**31 - 1, 0, 1, 2**31 - 2, -2**31 + 1, 7], [2, 0, 3, 2])}

def moments(numbers):
    numbers = [Fraction(v) for v in numbers]
    mean = sum(numbers) / len(numbers)
    scale = Fraction(2) ** 4400
    return float(mean), float(Fraction(isqrt(int(sum((v - mean) ** 2 for v in numbers) / len(numbers) * scale)), 2**2200))
PY
python - <<'PY'
import json, struct
from cases import cases
header, data = {}, b""
for name, (dtype, form, numbers, bins) in cases.items():
    end = len(data) + struct.calcsize(form)
    header[name] = {"dtype": dtype, "shape": [len(numbers)], "data_offsets": [len(data), end]}
    data += struct.pack(form, *numbers)
text = json.dumps(header).encode()
open("x.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + data)
PY
expect 0 "$mckpt" --json stats --bins 4 x.safetensors
python - <<'PY' || fail "other numbers"
import json
from cases import cases, moments
wrong = []
for t in json.load(open("out"))["tensors"]:
    mean, std = moments(cases[t["name"]][2])
    # A double near the smallest has few digits.
    if abs(t["mean"] - mean) > abs(mean) * 1e-15 or abs(t["std"] - std) > std * 1e-15 + 5e-324 or t["histogram"] != cases[t["name"]][3]:
        wrong.append((t, mean, std))
raise SystemExit("\n".join(map(str, wrong)) or 0)
PY
