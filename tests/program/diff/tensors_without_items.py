"""A tensor without items has a type and a shape, which are compared, and it is counted like the others. In both orders. A storage without
bytes may have two types in a file of torch, as a view of an empty tensor in another type has.
"""
import json
import os
import struct
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.program import run_mckpt
from mckpt_tests.torch_pickles import dict_of, save, tensor


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
    empty, full = os.path.join(scratch, "empty.pt"), os.path.join(scratch, "full.pt")
    for path, items in ((empty, 0), (full, 1)):
        save(path, dict_of(a=tensor("0", [items], [1]), b=tensor("0", [items], [1], "IntStorage")), _0=bytes(4 * items))
    converted = os.path.join(scratch, "empty.safetensors")
    run = run_mckpt("convert", "pt-to-safetensors", empty, converted, "--no-sync")
    expect(run.returncode == 0, run.stderr)
    for a, b in ((empty, converted), (converted, empty)):
        told = json.loads(run_mckpt("diff", a, b, "--json").stdout)
        expect(told["equal"] and told["tensors"] == 2, f"{a} and {b}: {told}")
    run = run_mckpt("verify", full, "--json")
    expect(run.returncode == 1 and "two data types" in run.stdout, run.stdout)
finish(20)
