"""Checkpoints of one model in every kind, each against each: equal in both orders, and a value that differs is found in both."""
import itertools
import json
import os
import shutil
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import TINY_MODEL

MAKE = {"fsdp": ("to-fsdp", "--tp", "2"), "core": ("to-mcore", "--tp", "2"), "ranks": ("to-pt", "--tp", "2"), "dcp": ("to-dcp", "--dp", "3")}


def changed(folder):
    """The model with one item of its first tensor changed: the bits of its last byte are turned."""
    shutil.copytree(TINY_MODEL, folder)
    name = sorted(n for n in os.listdir(folder) if n.endswith(".safetensors"))[0]
    with open(os.path.join(folder, name), "r+b") as f:
        size = int.from_bytes(f.read(8), "little")
        header = json.loads(f.read(size))
        tensor, end = min(((n, e["data_offsets"][1]) for n, e in header.items() if n != "__metadata__"), key=lambda e: e[1])
        place = 8 + size + end - 1
        f.seek(place)
        last = f.read(1)[0]
        f.seek(place)
        f.write(bytes([last ^ 0x01]))
    return tensor


def made(model, scratch):
    kinds = {"model": model}
    for kind, (mode, *grid) in MAKE.items():
        kinds[kind] = os.path.join(scratch, kind)
        done = run_mckpt("convert", mode, model, kinds[kind], *grid, "-q", "--no-sync")
        expect(done.returncode == 0, f"{mode}: {done.stderr[:300]}")
    return kinds


with tempfile.TemporaryDirectory() as scratch:
    one, other = (os.path.join(scratch, name) for name in ("one", "other"))
    os.mkdir(one), os.mkdir(other)
    tensor = changed(os.path.join(scratch, "model"))
    same, unlike = made(TINY_MODEL, one), made(os.path.join(scratch, "model"), other)
    for a, b in itertools.permutations(same, 2):
        against = run_mckpt("verify", same[a], "--against", same[b], "--json")
        expect(against.returncode == 0 and json.loads(against.stdout)["equal"], f"{a} {b}: {against.stdout[:300]} {against.stderr[:300]}")
        differs = run_mckpt("verify", same[a], "--against", unlike[b], "--json")
        checks = {c["name"]: c for c in json.loads(differs.stdout)["checks"]}
        expect(differs.returncode == 1 and checks["against"]["status"] == "fail", f"{a} {b}: {tensor} differs: {differs.stdout[:300]}")
    for a, b in itertools.combinations(same, 2):
        for left, right, end in ((same, same, "tensors"), (same, unlike, "values")):
            ends = [run_mckpt("diff", x, y, "--json") for x, y in ((left[a], right[b]), (right[b], left[a]))]
            told = [json.loads(e.stdout) for e in ends]
            values = [sorted(r["items"] for r in t["rows"] if r["kind"] == "values") for t in told]
            expect(ends[0].returncode == ends[1].returncode and values[0] == values[1], f"{a} {b}: {[e.returncode for e in ends]} {values}")
            expect((end == "values") == (sum(values[0]) > 0), f"{a} {b}: {values}")
finish(88)
