"""Norms that Megatron stores less one: what bf16 loses by that is counted and reported, and nothing else is lost."""

import json
import os
import shutil
import struct
import tempfile

from mckpt_tests.checks import expect_equal
from mckpt_tests.golden import finish
from mckpt_tests.models import Models
from mckpt_tests.program import run_mckpt

models = Models()
scratch = tempfile.TemporaryDirectory(prefix="mckpt_rounded_")
NORM = "model.language_model.layers.0.linear_attn.norm.weight"
SMALL, KEPT = 0x3DCD, 0x3E80  # 0.1, which is not what it was after -1 and +1, and 0.25, which is


def path(name):
    return os.path.join(scratch.name, name)


def mckpt(*args):
    return run_mckpt(*args, "--json", timeout=60)


def convert(mode, source, target, *flags):
    """How many items it counts as rounded, and whether it says so."""
    run = mckpt(*mode, source, path(target), "--no-sync", *flags)
    return json.loads(run.stdout)["rounded_norms"], f"{json.loads(run.stdout)['rounded_norms']} items rounded" in run.stderr


def with_small_values(source, count):
    """The model with such values at the beginning of one norm."""
    shutil.copytree(source, path("small"))
    file = os.path.join(path("small"), "model.safetensors")
    with open(file, "r+b") as f:
        size = struct.unpack("<Q", f.read(8))[0]
        begin = json.loads(f.read(size))[NORM]["data_offsets"][0]
        f.seek(8 + size + begin)
        f.write(struct.pack(f"<{count + 1}H", *[SMALL] * count, KEPT))
    return path("small")


to_fsdp = ["convert", "hf-to-fsdp"]
golden = models.path("qwen3_5")
expect_equal("golden", [convert(to_fsdp, golden, "golden", "--tp", "2", "--vocab-size", "auto")], [(0, False)])
small = with_small_values(golden, 5)
# One is taken off in the wider of two types: in fp32 nothing is lost, unless the run keeps its parameters in bf16.
for name, flags, lost in (
    ("keep", ["--dtype", "keep"], 5),
    ("fp32", ["--dtype", "fp32"], 0),
    ("run", ["--params-dtype", "auto", "--dtype", "fp32"], 5),
):
    made, back = f"made_{name}", f"back_{name}"
    expect_equal(
        f"{name}: to Megatron",
        [convert(to_fsdp, small, made, "--tp", "2", "--dp", "3", "--vocab-size", "auto", *flags)],
        [(lost, lost > 0)],
    )
    expect_equal(
        f"{name}: what is made",
        [mckpt("verify", path(made), "--against", small, *[f for f in flags if f in ("--params-dtype", "auto")]).returncode],
        [0],
    )
    expect_equal(f"{name}: and back", [convert(["export"], path(made), back)], [(0, False)])
    told = json.loads(mckpt("verify", path(back), "--against", small).stdout)
    expect_equal(f"{name}: what differs", [f["tensor"] for f in told["findings"]], [NORM] if lost else [])
finish(12)
