"""Tensors whose items are smaller than a byte, and whose rows do not fill bytes, are compared as their bytes and printed: float4 with an
odd last dimension, and float6. The first byte that differs is named, in a tensor of several slices too.
"""
import json
import os
import struct
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.folders import write_safetensors
from mckpt_tests.program import run_mckpt

SIX, FOUR = ("F6_E2M3", [4, 1], bytes((0x12, 0x13, 0x14))), ("F4", [4, 3], bytes(range(6)))
LARGE = ("F6_E3M2", [4096, 1025], bytes(4096 * 1025 * 6 // 8))


def write(path, **tensors):
    write_safetensors(path, tensors)
    return path


def changed(tensor, at, byte):
    dtype, shape, items = tensor
    return dtype, shape, items[:at] + bytes((byte,)) + items[at + 1 :]


def byte_of(path, name, at):
    """Where byte `at` of the tensor lies in the file."""
    with open(path, "rb") as f:
        size = struct.unpack("<Q", f.read(8))[0]
        return 8 + size + json.loads(f.read(size))[name]["data_offsets"][0] + at


def with_last(tensor):
    return changed(tensor, len(tensor[2]) - 1, 4)


with tempfile.TemporaryDirectory() as scratch:
    whole = ("F32", [1], struct.pack("<f", 1))
    one = write(os.path.join(scratch, "one.safetensors"), six=SIX, four=FOUR, large=LARGE, whole=whole)
    others = [
        ({"whole": whole, "six": SIX, "four": FOUR, "large": LARGE}, None, None),  # other offsets
        ({"six": changed(SIX, 1, 0x93), "four": FOUR, "large": LARGE, "whole": whole}, "six", 1),
        ({"six": SIX, "four": changed(FOUR, 3, 9), "large": LARGE, "whole": whole}, "four", 3),
        ({"six": SIX, "four": FOUR, "large": with_last(LARGE), "whole": whole}, "large", len(LARGE[2]) - 1),
    ]
    for tensors, name, at in others:
        other = write(os.path.join(scratch, "other.safetensors"), **tensors)
        for a, b in ((one, other), (other, one)):
            run = run_mckpt("diff", a, b, "--json")
            expect(run.returncode == (name is not None), f"{name}: {run.returncode} {run.stderr}")
            told = json.loads(run.stdout)
            expect([r["name"] for r in told["rows"]] == ([name] if name else []) and told["tensors"] == 4, f"{name}: {told}")
            if name:
                words = (f"from byte {byte_of(a, name, at)} of the file on", "no tolerance applies")
                expect(all(word in told["rows"][0]["hint"] for word in words), f"{name}: {told['rows']}")
        verified = run_mckpt("verify", other, "--against", one)
        expect(verified.returncode == (name is not None), f"{name}: {verified.stdout}")
    for tensor, values in (("six", [[2.5], [1.5], [0.125], [0.625]]), ("four", [[0, 0, 0.5], [0, 1, 0], [1.5, 0, 2], [0, 3, 0]])):
        run = run_mckpt("cat", one, tensor, "--json")
        expect(run.returncode == 0 and json.loads(run.stdout)["values"] == values, f"{tensor}: {run.stdout} {run.stderr}")
    some = run_mckpt("cat", one, "four[1:3,1]", "--json")
    expect(json.loads(some.stdout)["values"] == [1, 0], some.stdout)
finish(25)
