"""Every golden model into checkpoints of many grids and back: each tensor comes out under its name, with its type, shape and
bytes; and `verify --against` says so both ways, and names the tensor where one byte is wrong.
"""

import collections
import filecmp
import io
import json
import os
import random
import tempfile
import zipfile

from mckpt_tests.checks import expect_equal, fail, in_parallel
from mckpt_tests.folders import safetensors
from mckpt_tests.golden import finish
from mckpt_tests.models import GOLDEN, Models
from mckpt_tests.program import run_mckpt

models = Models()
GRIDS = [
    "--tp 1 --dp 1",
    "--tp 2 --dp 1",
    "--tp 1 --dp 3",
    "--tp 2 --dp 2 --ep 4",
    "--tp 2 --cp 2 --ep 2",
    "--tp 4 --ep 2",
    "--ep 8 --dp 8",
    "--tp 2 --ep 2 --etp 2",
    "--dp 4 --hsdp 2 --hsdp-outer shard",
    "--tp 2 --dp 4 --hsdp 2 --hsdp-outer replicate",
    "--dp 5 --strategy optim",
    "--dp 2 --strategy no_shard",
]
# Grids that the real tools cannot save either: cuts inside rows, parts under no_shard, sizes that do not
# divide. All else is right.
OUTCOMES = {"converted": 299, "error[MC0203": 22, "error[MC0204": 10, "error[MC2007": 5}
SHARDS = ["100kB", "1MB", "5GB"]
outcomes = collections.Counter()


def mckpt(*args, status=0):
    run = run_mckpt(*args, "-q", "-j1")
    if run.returncode != status:
        fail(f"{' '.join(args)}: {run.stdout}{run.stderr}")
    return run.stdout + run.stderr


def round_trip(model, grid, dtype, shard):
    source = models.path(model)
    with tempfile.TemporaryDirectory(prefix="mckpt_round_") as folder:
        checkpoint, back = os.path.join(folder, "checkpoint"), os.path.join(folder, "back")
        run = run_mckpt(
            "convert", "hf-to-fsdp", source, checkpoint, "--vocab-size", "auto", "--dtype", dtype, "--no-sync", "-q", "-j1", *grid.split()
        )
        outcomes[run.stderr.split("]")[0] if run.returncode else "converted"] += 1
        if run.returncode:
            return
        mckpt("export", checkpoint, back, "--no-sync", "--max-shard-size", shard)
        want, got = safetensors(source), safetensors(back)
        names = sorted(want | got)
        expect_equal(f"{model} {grid} {dtype}", [(n, got.get(n)) for n in names], [(n, want.get(n)) for n in names])
        mckpt("verify", back, "--against", checkpoint)
        if dtype == "keep":
            mckpt("verify", checkpoint, "--against", source)
        if shard == SHARDS[0]:  # a model in many files makes the same checkpoint
            again = os.path.join(folder, "again")
            mckpt("convert", "hf-to-fsdp", back, again, "--vocab-size", "auto", "--dtype", dtype, "--no-sync", *grid.split())
            files = sorted(
                name for name in os.listdir(os.path.join(checkpoint, "release")) if name not in ("hf_assets", "mckpt_manifest.json")
            )
            expect_equal(
                f"{model} {grid} {dtype} again",
                filecmp.cmpfiles(os.path.join(checkpoint, "release"), os.path.join(again, "release"), files, shallow=False),
                (files, [], []),
            )


def check_that_verify_sees(model):
    """One byte wrong in a checkpoint, and in a model: reported with the tensor's name."""
    source = models.path(model)
    with tempfile.TemporaryDirectory(prefix="mckpt_round_") as folder:
        checkpoint, back = os.path.join(folder, "checkpoint"), os.path.join(folder, "back")
        mckpt("convert", "hf-to-fsdp", source, checkpoint, "--no-sync", "--tp", "2", "--dp", "3", "--vocab-size", "auto")
        mckpt("export", checkpoint, back, "--no-sync")
        for path, other in ((back, checkpoint), (os.path.join(checkpoint, "release"), source)):
            tensor = random.choice(json.loads(mckpt("ls", path, "--json"))["tensors"])
            spoil(path, tensor["chunks"][-1])
            told = mckpt("verify", path, "--against", other, status=1)
            expect_equal(f"{model} {path}: {told}", [tensor["name"] in told], [True])


def spoil(folder, chunk):
    """Changes a byte of the chunk's data."""
    with open(os.path.join(folder, chunk["file"]), "r+b") as f:
        f.seek(chunk["offset"])
        record = f.read(chunk["bytes"])
        data = record
        if record.startswith(b"PK"):
            with zipfile.ZipFile(io.BytesIO(record)) as archive:
                data = archive.read("archive/data/0")
        f.seek(chunk["offset"] + record.find(data) + len(data) // 2)
        byte = f.read(1)
        f.seek(-1, os.SEEK_CUR)
        f.write(bytes([byte[0] ^ 1]))


def check_without_headers(model, dtype):
    """The original model as config.json alone, and with an index: types come from the config, and from the
    buffers themselves."""
    with tempfile.TemporaryDirectory(prefix="mckpt_round_") as folder:
        checkpoint, whole, assets = (os.path.join(folder, name) for name in ("checkpoint", "whole", "assets"))
        mckpt("convert", "hf-to-fsdp", models.path(model), checkpoint, "--no-sync", "--tp", "2", "--dtype", "fp32", "--vocab-size", "auto")
        mckpt("export", checkpoint, whole, "--no-sync", *(["--dtype", "fp32"] if dtype == "float32" else []))
        want = safetensors(whole)
        os.mkdir(assets)
        with open(os.path.join(models.path(model), "config.json")) as f, open(os.path.join(assets, "config.json"), "w") as out:
            json.dump({**json.load(f), "dtype": dtype}, out)
        for again in ("config alone", "with an index"):
            back = os.path.join(folder, again)
            mckpt("export", checkpoint, back, "--assets", assets, "--no-sync")
            got = safetensors(back)
            expect_equal(f"{model} {dtype}, {again}", [(n, got.get(n)) for n in sorted(want)], [(n, want[n]) for n in sorted(want)])
            with open(os.path.join(assets, "model.safetensors.index.json"), "w") as f:
                json.dump({"weight_map": {name: "model-00001-of-00002.safetensors" for name in want}}, f)


def all_round_trips():
    for m, model in enumerate(sorted(os.listdir(os.path.join(GOLDEN, "models")))):
        for g, grid in enumerate(GRIDS):
            yield model, grid, ["keep", "fp32"][(m + g) % 2], SHARDS[(m + g) % 3]


in_parallel(round_trip, list(all_round_trips()))
expect_equal("outcomes", sorted(outcomes.items()), sorted(OUTCOMES.items()))
for model in ("qwen3_moe", "nemotron_h"):
    check_that_verify_sees(model)
for model, dtype in (("qwen3_dense", "float32"), ("deepseek_v3_even", "bfloat16"), ("deepseek_v3_even", "float32")):
    check_without_headers(model, dtype)
finish(27526)
