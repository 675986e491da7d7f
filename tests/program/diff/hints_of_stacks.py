"""Experts that changed places, or took the place of another one, are named also where one side has them in stacks, as a training program has them in
memory, and the other by themselves: the two are looked at under the names by which they were compared. In both orders."""
import json
import os
import shutil
import struct
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

CASE = os.path.join(DATA, "own_names", "accelerate_fsdp2_sharded")
EXPERT = "model.layers.0.mlp.experts.{}.{}.weight"


def changed(folder, moves):
    """Gives tensors of the folder the bytes that others had: {name: name of the bytes}."""
    path = os.path.join(folder, "model.safetensors")
    with open(path, "rb") as f:
        data = bytearray(f.read())
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    spans = {name: [8 + size + at for at in header[name]["data_offsets"]] for name in moves}
    old = {name: bytes(data[slice(*spans[name])]) for name in moves}
    for name, source in moves.items():
        data[slice(*spans[name])] = old[source]
    with open(path, "wb") as f:
        f.write(data)
    manifest = os.path.join(folder, "mckpt_manifest.json")
    if os.path.exists(manifest):
        os.remove(manifest)


with tempfile.TemporaryDirectory() as scratch:
    saved = os.path.join(CASE, "checkpoint")
    plain = os.path.join(scratch, "plain")
    run = run_mckpt("export", saved, plain, "--assets", CASE, "--no-sync", "-q")
    expect(run.returncode == 0, run.stderr)
    one, two = (EXPERT.format(e, "down_proj") for e in (0, 1))
    gate, up = (EXPERT.format(2, part) for part in ("gate_proj", "up_proj"))
    for what, moves in (("exchanged", {one: two, two: one}), ("one over another", {one: two, two: two}), ("gate and up", {gate: up, up: gate})):
        folder = os.path.join(scratch, "moved")
        shutil.copytree(plain, folder)
        changed(folder, moves)
        differ = {name for name, source in moves.items() if name != source}
        for a, b in ((saved, folder), (folder, saved)):
            rows = {r["name"]: r["hint"] for r in json.loads(run_mckpt("diff", a, b, "--assets", CASE, "--json").stdout)["rows"] if r["kind"] == "values"}
            expect(set(rows) == differ, f"{what}: {rows}")
            for name, hint in rows.items():
                expect(hint and moves[name] in hint, f"{what}: {name}: {hint}")
        shutil.rmtree(folder)
finish(16)
