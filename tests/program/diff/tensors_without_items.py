"""A tensor without items has a type and a shape, which are compared, and it is counted like the others. In both orders."""
import json
import os
import struct
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.program import run_mckpt


def write(path, dtype, shape=(0,)):
    entries = {"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}, "none": {"dtype": dtype, "shape": shape, "data_offsets": [4, 4]}}
    header = json.dumps(entries).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header + struct.pack("<f", 1))
    return path


with tempfile.TemporaryDirectory() as scratch:
    files = [write(os.path.join(scratch, f"{i}.safetensors"), *of) for i, of in enumerate((("F32",), ("F32",), ("F16",), ("F32", (2, 0)), ("I64",)))]
    for other, kind in zip(files[1:], (None, "cast", "shape", "dtype")):
        for a, b in ((files[0], other), (other, files[0])):
            run = run_mckpt("diff", a, b, "--json")
            told = json.loads(run.stdout)
            rows = [(r["kind"], r["name"]) for r in told["rows"]]
            expect(rows == ([(kind, "none")] if kind else []) and run.returncode == bool(kind), f"{kind}: {rows}")
            expect(told["tensors"] == 2 and told["equal"] == (kind is None), f"{kind}: {told}")
finish(16)
