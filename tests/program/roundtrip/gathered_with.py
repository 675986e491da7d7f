"""The second map file of docs/adding_a_model.md: a tensor outside the layers that every mixer reads. It is gathered with
each layer that has a mixer, and its live values are compared there.
"""
import json
import os
import re
import shutil
import subprocess
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.models import GOLDEN
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import GOLDEN_MODEL, SOURCE

SCALE_ITEMS, RANKS, MAMBA_LAYERS = 96, 2, 2


def documented():
    with open(os.path.join(SOURCE, "docs", "adding_a_model.md")) as f:
        return json.loads(re.findall(r"```json\n(.*?)```", f.read(), re.S)[1])


def model(folder):
    os.mkdir(folder)
    recipe = os.path.join(GOLDEN, "models", "nemotron_h")
    shutil.copy(os.path.join(recipe, "config.json"), folder)
    with open(os.path.join(recipe, "tensors.txt")) as f:
        lines = f.read().splitlines()
    norm = next(line for line in lines if line.startswith("backbone.norm_f.weight")).split(" ", 1)[1]
    with open(os.path.join(folder, "tensors.txt"), "w") as f:
        f.write("\n".join([*lines, f"backbone.shared_scale.weight {norm}"]) + "\n")
    subprocess.run([GOLDEN_MODEL, os.path.join(folder, "tensors.txt"), os.path.join(folder, "model.safetensors")], check=True)
    return folder


def roundtrip(folder, rows, *flags):
    path = os.path.join(os.path.dirname(folder), "rows.json")
    with open(path, "w") as f:
        json.dump(rows, f)
    return run_mckpt("roundtrip", folder, "--map-file", path, "--json", *flags, ranks=RANKS)


def checked_bytes(run):
    expect(run.returncode == 0, run.stdout[-400:] + run.stderr[-600:])
    return sum(p["bytes"] for p in json.loads(run.stdout)["phases"] if p["name"] == "check")


with tempfile.TemporaryDirectory(prefix="mckpt_gathered_") as scratch:
    mine, rows = model(os.path.join(scratch, "mine")), documented()
    with_it = rows["rows"][0].pop("gathered_with")
    for flags in ([], ["--hybrid-pattern", "[M-]M[*-]"], ["--hybrid-pattern", "[M-]M[*-]", "--fsdp-unit", "HybridStack,MambaLayer"]):
        alone = checked_bytes(roundtrip(mine, rows, "--until", "check", *flags))
        told = {"rows": [rows["rows"][0] | {"gathered_with": with_it}]}
        both = checked_bytes(roundtrip(mine, told, "--until", "check", *flags))
        more = MAMBA_LAYERS * RANKS * SCALE_ITEMS * 2  # bf16, once more for each unit with a mixer, on each rank
        expect(both - alone == more, f"{flags}: {both - alone} bytes more are compared, not {more}")
    run = roundtrip(mine, told, "--checkpoint", os.path.join(scratch, "saved"), "--no-sync")
    expect(run.returncode == 0 and json.loads(run.stdout)["equal"] is True, run.stderr)
    for module, word in (("decoder.layers.{L}.mixers", "decoder.layers.{L}.mixers"), ("layer", "the row is in none"), ("x.{E}", "{E} of gathered_with")):
        run = roundtrip(mine, {"rows": [rows["rows"][0] | {"gathered_with": module}]}, "--until", "check")
        expect(run.returncode == 3 and "MC2009" in run.stderr and word in run.stderr, f"{module}: {run.returncode} {run.stderr}")
finish(13)
