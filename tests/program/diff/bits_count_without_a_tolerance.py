"""Without a tolerance values are equal bit by bit: another sign of zero and another NaN are differences of `diff`, as of `verify --against`. Any tolerance
takes them for equal numbers."""
import json
import os
import struct
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.program import run_mckpt

CASES = {  # type: bits of an item on either side
    "F32": ("<I", (0x00000000, 0x80000000), (0x7FC00000, 0x7FC00001)),
    "BF16": ("<H", (0x0000, 0x8000), (0x7FC0, 0xFFC1)),
    "F64": ("<Q", (0, 1 << 63), (0x7FF8 << 48, (0x7FF8 << 48) + 5)),
}


def write(path, dtype, form, bits):
    data = struct.pack(form, bits) + struct.pack(form, {"F32": 0x3F800000, "BF16": 0x3F80, "F64": 0x3FF0 << 48}[dtype])
    header = json.dumps({"w": {"dtype": dtype, "shape": [2], "data_offsets": [0, len(data)]}}).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header + data)


with tempfile.TemporaryDirectory() as scratch:
    a, b = (os.path.join(scratch, f"{name}.safetensors") for name in "ab")
    for dtype, (form, *pairs) in CASES.items():
        for one, other in pairs:
            write(a, dtype, form, one), write(b, dtype, form, other)
            for x, y in ((a, b), (b, a)):
                run = run_mckpt("diff", x, y)
                expect(run.returncode == 1 and "1 of 1 tensor differs" in run.stdout and "signs of zero or bits of NaN" in run.stdout, run.stdout)
                told = json.loads(run_mckpt("diff", x, y, "--json").stdout)
                (row,) = told["rows"]
                expect((told["equal"], told["alike"], told["ok"], row["items"], row["beyond"]) == (False, False, False, 1, 1), f"{told}")
                expect(run_mckpt("verify", x, "--against", y).returncode == 1, f"{dtype}: verify")
            told = json.loads(run_mckpt("diff", a, b, "--atol", "1e-9", "--json").stdout)
            expect((told["equal"], told["alike"], told["rows"][0]["beyond"]) == (False, True, 0), f"with a tolerance: {told}")
finish(42)
