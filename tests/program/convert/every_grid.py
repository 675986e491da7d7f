"""Every family to a checkpoint of every grid and back: `convert hf-to-fsdp`, `verify`, `verify --against`, `export`; what
comes out is the source, tensor by tensor and byte by byte, as read here. Grids that a model does not divide over are
refused with the code that says so, and leave nothing. round_trips.py has the more usual grids, and looks closer.
"""

import json
import os
import shutil
import struct
import sys
import tempfile

from mckpt_tests.checks import fail, failures, in_parallel
from mckpt_tests.models import Models
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import SANITIZED

SHARD = "--hsdp-outer shard --strategy optim_grads_params"
GRIDS = {
    "tp2 ep4": "--tp 2 --ep 4",
    "alone": "--strategy optim",
    "dp2": "--dp 2 --strategy optim_grads_params",
    "dp3": "--dp 3 --strategy optim_grads",
    "dp4 replicas": "--dp 4 --hsdp 2 --hsdp-outer replicate",
    "dp6 replicas": "--dp 6 --hsdp 3 --hsdp-outer replicate --strategy optim_grads",
    "dp6 shards": f"--dp 6 --hsdp 3 {SHARD}",
    "dp7": "--dp 7",
    "dp8": "--dp 8",
    "dp8 no_shard": "--dp 8 --strategy no_shard",
    "etp2": "--tp 2 --ep 4 --etp 2 --dp 4",
    "tp4 etp2": "--tp 4 --etp 2 --ep 2 --dp 2 --fsdp-unit none",
    "cp3 dp2 shards": f"--cp 3 --dp 2 --hsdp 2 {SHARD}",
    "cp2 dp2 shards": f"--cp 2 --dp 2 --hsdp 2 {SHARD}",
    "tp3": "--tp 3",
    "ep3": "--ep 3",
    "pp2": "--pp 2",
}
UNEVEN = ["deepseek_v3", "deepseek_v3_mtp"]  # a rank's part of linear_q_up_proj ends inside a row
NARROW = ["tiny_dense1", "tiny_dense2", "tiny_llama1", "tiny_moe1"]  # two heads
DENSE = [
    "llama3",
    "nemotron_h",
    "nemotron_h_f32ssm",
    "qwen2_bias",
    "qwen3_5",
    "qwen3_5_mtp",
    "qwen3_dense",
    "qwen3_vl",
    "tiny_dense1",
    "tiny_dense2",
    "tiny_llama1",
]
UNGATED = ["gpt_oss", "gpt_oss_2i", "gpt_oss_square", "nemotron_h", "nemotron_h_f32ssm", "nemotron_h_moe"]
models = Models()
names = sorted(os.listdir(models.root.name))
SLICED = [
    m for m in names if m.startswith(("nemotron_h", "qwen3_5", "qwen3_next"))
]  # mixers whose heads context parallelism divides; none into 3
# grid -> model -> the code with which it is refused; everything else must go through.
REFUSED = {
    "tp4 etp2": {m: "MC2007" for m in NARROW},
    "tp3": {m: "MC2007" for m in names},
    "ep3": {m: "MC2007" for m in names if m not in DENSE},
    "pp2": {m: "MC0203" for m in names},
    "dp8 no_shard": {m: "MC0203" for m in names if m not in UNGATED},
    "dp3": {m: "MC0204" for m in ["qwen3_5", "qwen3_5_mtp"]},
    "cp3 dp2 shards": {m: "MC0204" for m in UNEVEN} | {m: "MC2007" for m in SLICED},
    "dp6 replicas": {m: "MC0204" for m in ["deepseek_v3", "qwen3_5"]},
} | {grid: {m: "MC0204" for m in UNEVEN} for grid in ["dp2", "dp4 replicas", "dp6 shards", "dp7", "dp8", "etp2", "cp2 dp2 shards"]}
THROUGH_FP32 = ["--dtype", "fp32"]  # and back keeps every bit
scratch = tempfile.TemporaryDirectory(prefix="mckpt_every_grid_")
done = {}


def run(*args):
    return run_mckpt(*args, "-q", "-j1", timeout=60)


def tensors(folder):
    """name -> (type, shape, bytes) of all files, read here."""
    out = {}
    for file in sorted(os.listdir(folder)):
        if not file.endswith(".safetensors"):
            continue
        with open(os.path.join(folder, file), "rb") as f:
            blob = f.read()
        n = struct.unpack("<Q", blob[:8])[0]
        for name, t in json.loads(blob[8 : 8 + n]).items():
            if name != "__metadata__":
                begin, end = t["data_offsets"]
                out[name] = (t["dtype"], t["shape"], blob[8 + n + begin : 8 + n + end])
    return out


def differences(got, want):
    for name in sorted(got.keys() | want.keys()):
        if got.get(name) != want.get(name):
            yield name if name in got and name in want else f"{name} ({'only' if name in got else 'not'} in the result)"


def expect(what, result, status):
    if result.returncode == status:
        return True
    fail(f"{what}: exit status {result.returncode}, not {status}: {result.stderr[:300]}")
    return False


def account(what, result, **wanted):
    got = json.loads(result.stdout)
    for key, value in {"dropped": 0, "invented": 0, **wanted}.items():
        if got[key] != value:
            fail(f"{what}: {key} is {got[key]}, not {value}")


def round_trip(what, source, grid, values, folder):
    checkpoint, back = os.path.join(folder, "checkpoint"), os.path.join(folder, "back")
    want = tensors(source)
    made = run("convert", "hf-to-fsdp", source, checkpoint, "--no-sync", "--vocab-size", "auto", *grid, *values, "--json")
    if not expect(what, made, 0):
        return
    account(what, made, tensors_in=len(want))
    expect(f"{what}: verify", run("verify", checkpoint), 0)
    if not values:
        expect(f"{what}: verify --against the model", run("verify", checkpoint, "--against", source), 0)
    exported = run("export", checkpoint, back, "--no-sync", "--max-shard-size", "200KB", "--json")
    if not expect(f"{what}: export", exported, 0):
        return
    account(f"{what}: export", exported, tensors_out=len(want))
    unlike = list(differences(tensors(back), want))
    if unlike:
        fail(f"{what}: {len(unlike)} tensors differ: {unlike[:3]}")
    expect(f"{what}: verify the export --against the checkpoint", run("verify", back, "--against", checkpoint), 0)
    with open(os.path.join(source, "config.json"), "rb") as a, open(os.path.join(back, "config.json"), "rb") as b:
        if a.read() != b.read():
            fail(f"{what}: config.json differs")


def refuse(what, source, grid, code, folder):
    result = run("convert", "hf-to-fsdp", source, os.path.join(folder, "checkpoint"), "--vocab-size", "auto", *grid)
    if f"error[{code}]" not in result.stderr:
        fail(f"{what}: expected {code}: exit status {result.returncode}: {result.stderr[:300]}")
    if os.listdir(folder):
        fail(f"{what}: refused, and something was left: {os.listdir(folder)}")


def check(model, name):
    what, grid = f"{model} {name}", GRIDS[name].split()
    folder = tempfile.mkdtemp(dir=scratch.name)
    code = REFUSED.get(name, {}).get(model)
    if code:
        refuse(what, models.path(model), grid, code, folder)
    else:
        # Every third case goes through fp32 main weights.
        number = sum(map(ord, what))
        round_trip(what, models.path(model), grid, THROUGH_FP32 if number % 3 == 0 else [], folder)
    shutil.rmtree(folder)
    done[model, name] = code


cases = [(model, grid) for model in names for grid in GRIDS]
if SANITIZED:
    cases = cases[::3]  # the number of grids is not a multiple of it: each comes with other models
in_parallel(check, cases)
print(f"{len(names)} models, {len(GRIDS)} grids, {sum(c is not None for c in done.values())} refused, {len(failures)} failures")
sys.exit(1 if failures or len(done) != len(cases) else 0)
