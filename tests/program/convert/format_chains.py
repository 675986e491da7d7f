"""A model goes from Hugging Face to fsdp_dtensor, to torch_dist, to fsdp_dtensor again, to files of ranks and back, each on a grid of
its own, and on another grid of the same format; what comes out is the model, byte for byte, and no step drops or invents a tensor. Each chain is of another family.

    format_chains.py [CHAINS]      so many chains, more than a few of them over the families again (label long: 100)
"""

import collections
import filecmp
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

from mckpt_tests.checks import expect, fail, finish, in_parallel
from mckpt_tests.models import GOLDEN
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import GOLDEN_MODEL

CHAINS = int(sys.argv[1]) if len(sys.argv) > 1 else 5
SHARDED = ["--tp 1 --dp 3", "--tp 2 --dp 1", "--tp 2 --dp 2 --ep 4", "--tp 2 --cp 2 --ep 2", "--tp 4 --ep 2", "--ep 8 --dp 8", "--dp 7", "--dp 5 --strategy optim"]
CORE = ["--tp 1", "--tp 2", "--tp 4", "--ep 4", "--tp 2 --ep 2", "--tp 2 --ep 2 --etp 2", "--tp 2 --pp 2 --cp 2", "--pp 2 --first-stage-layers 1", "--pp 3"]
RANKS = ["--tp 1", "--tp 2", "--tp 4", "--tp 2 --ep 4", "--ep 8", "--tp 2 --pp 2", "--pp 3", "--pp 2 --vpp 2", "--tp 2 --ep 2 --etp 2", "--pp 2 --first-stage-layers 1"]
STEPS = [("hf-to-fsdp", SHARDED), ("to-mcore", CORE), ("reshard", CORE), ("to-fsdp", SHARDED), ("reshard", SHARDED), ("to-pt", RANKS), ("reshard", RANKS)]
# A grid that the model does not divide over.
MISFIT = ("MC2006", "MC2007", "MC0201", "MC0203", "MC0204")
# Layers that use the keys of another layer have a norm of ones in Megatron, which no tensor of the model gives.
WITH_ONES = {"gemma4_ple", "gemma4_audio_a"}
work = tempfile.TemporaryDirectory(prefix="mckpt_formats_")
outcomes, families = collections.Counter(), set()


def recipes():
    with open(os.path.join(GOLDEN, "families", "pending.txt")) as f:
        pending = set(f.read().split())
    found = {name: os.path.join(GOLDEN, part, name) for part in ("models", "families") for name in sorted(os.listdir(os.path.join(GOLDEN, part)))}
    return {name: path for name, path in found.items() if os.path.isdir(path) and name not in pending}


def drawn(name, recipe):
    folder = os.path.join(tempfile.mkdtemp(dir=work.name), name)
    os.mkdir(folder)
    shutil.copy(os.path.join(recipe, "config.json"), folder)
    subprocess.run([GOLDEN_MODEL, os.path.join(recipe, "tensors.txt"), os.path.join(folder, "model.safetensors")], check=True)
    return folder


def step(what, mode, grids, source, r):
    """The result of one conversion on a grid that the model divides over."""
    out = tempfile.mkdtemp(dir=work.name)
    for grid in r.sample(grids, len(grids)):
        run = run_mckpt("convert", mode, source, os.path.join(out, "to"), *grid.split(), "--json", "--no-sync", "-j1")
        if run.returncode and any(code in run.stdout + run.stderr for code in MISFIT):
            outcomes["no such grid"] += 1
            continue
        if run.returncode:
            return fail(f"{what} {mode} {grid}: {run.stdout}{run.stderr}")
        account = json.loads(run.stdout)
        ones = account["invented"] > 0 and what.split(",")[0] in WITH_ONES and mode in ("hf-to-fsdp", "to-pt")
        expect(account["dropped"] == 0 and (account["invented"] == 0 or ones) and account["tensors_in"] > 0, f"{what} {mode} {grid}: {account}")
        outcomes[mode] += 1
        return os.path.join(out, "to"), f"{mode} {grid}"
    return fail(f"{what} {mode}: no grid")


def chain(number, name, recipe):
    r = random.Random(f"{number} {name}")
    model = drawn(name, recipe)
    at, way = model, name
    for mode, grids in STEPS:
        made = step(way, mode, grids, at, r)
        if not made:
            return
        if at != model:
            shutil.rmtree(os.path.dirname(at))
        at, way = made[0], f"{way}, {made[1]}"
    back = os.path.join(os.path.dirname(model), "back")
    run = run_mckpt("export", at, back, "--no-sync", "-q", "-j1")
    expect(run.returncode == 0 and filecmp.cmp(os.path.join(back, "model.safetensors"), os.path.join(model, "model.safetensors"), shallow=False), f"{way}: exported {run.stderr}")
    outcomes["chains"] += 1
    families.add(name)
    for folder in (os.path.dirname(at), os.path.dirname(model)):
        shutil.rmtree(folder)


def other_kinds_of_layers(model):
    """Stages that begin with layers of another kind than the first one: layer 0 of a file is not layer 0 of the model."""
    to, back = (os.path.join(os.path.dirname(model), name) for name in ("to", "back"))
    for args in (("convert", "to-pt", model, to, "--pp", "3"), ("export", to, back)):
        run = run_mckpt(*args, "--no-sync", "-q")
        expect(run.returncode == 0, f"{args}: {run.stderr}")
    expect(filecmp.cmp(os.path.join(back, "model.safetensors"), os.path.join(model, "model.safetensors"), shallow=False), "stages of other layers")


def main():
    every = recipes()
    names = random.Random("families").sample(sorted(every), len(every))
    in_parallel(chain, [(i, names[i % len(names)], every[names[i % len(names)]]) for i in range(CHAINS)])
    other_kinds_of_layers(drawn("glm4_moe_lite", every["glm4_moe_lite"]))
    print(dict(outcomes), len(families), "families")
    expect(outcomes["chains"] == CHAINS, f"{outcomes['chains']} chains of {CHAINS}")
    expect(len(families) == min(CHAINS, len(every)), f"{len(families)} families of {len(every)}")
    finish(CHAINS * 3)


main()
