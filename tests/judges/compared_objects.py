"""`verify --against` of checkpoints that differ in what they hold besides tensors: every value that differs is named with its place, and what
cannot be compared is named too, so that "equal" is never said of tensors alone without a word.
"""

import os

from mckpt_tests.checks import expect_equal, need
from mckpt_tests.golden import finish
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA, MCKPT

need("torch", "numpy")
import argparse  # noqa: E402
import json  # noqa: E402
import subprocess  # noqa: E402
import tempfile  # noqa: E402

import torch  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
from mckpt_tests.ranks import save_as_ranks  # noqa: E402

scratch = tempfile.TemporaryDirectory(prefix="mckpt_objects_")


class Whatever:
    """An object of no class that mckpt knows."""

    def __init__(self, **fields):
        self.__dict__.update(fields)


def saved(prefix="model.module.", **changes):
    folder = tempfile.mkdtemp(dir=scratch.name)
    torch.manual_seed(1)
    state = {
        prefix + "a.weight": torch.arange(12.0).reshape(3, 4),
        "iteration": 7,
        "checkpoint_version": 3.0,
        "args": argparse.Namespace(lr=0.125, betas=(0.9, 0.95), tensor_model_parallel_size=1, name="a"),
        "rng": Whatever(python=list(range(40)), torch=torch.arange(8, dtype=torch.uint8), names={"x", "y"}),
        "nothing": None,
    } | changes
    save_as_ranks(
        [{name: value for name, value in state.items() if value is not Ellipsis}], lambda: dcp.FileSystemWriter(folder, sync_files=False)
    )
    return folder


def answer(path, source):
    told = json.loads(run_mckpt("verify", path, "--against", source, "--json", timeout=60).stdout)
    text = run_mckpt("verify", path, "--against", source, "-v", timeout=60)
    told["text"], told["status"] = text.stdout + text.stderr, text.returncode
    return told


def check(what, path, source, wanted):
    """`wanted`: (object, place, expected, found) of all that differs."""
    told = answer(path, source)
    got = sorted((d["tensor"], d["at"], d["expected"], d["found"]) for d in told.get("differences", []))
    expect_equal(what, got, sorted(wanted))
    expect_equal(f"{what}: equal", [told["equal"], told["ok"], told["status"]], [not wanted, not wanted, 1 if wanted else 0])
    checks = {c["name"]: c for c in told["checks"]}
    expect_equal(f"{what}: checks", [checks["objects"]["status"], checks["against"]["status"]], ["fail" if wanted else "pass", "pass"])
    for name, at, expected, found in wanted:
        words = f"object '{name}': the object differs{' at ' + at if at else ''}: expected {expected}, found {found}"
        expect_equal(f"{what}: words", [words in told["text"], any(f["tensor"] == name for f in told["findings"])], [True, True])
    return checks


base = saved()
check("the same", saved(), base, [])
check("an iteration", saved(iteration=8), base, [("iteration", "", "7", "8")])
check(
    "a field of args",
    saved(args=argparse.Namespace(lr=0.5, betas=(0.9, 0.95), tensor_model_parallel_size=1, name="a")),
    base,
    [("args", ".lr", "0.125", "0.5")],
)
check("another order", saved(args=argparse.Namespace(name="a", tensor_model_parallel_size=1, betas=(0.9, 0.95), lr=0.125)), base, [])
check(
    "inside a tuple, and fields of one side",
    saved(args=argparse.Namespace(lr=0.125, betas=(0.9, 0.99), tensor_model_parallel_size=1, nom="a")),
    base,
    [("args", ".betas[1]", "0.95", "0.99"), ("args", ".name", "'a'", "nothing"), ("args", ".nom", "nothing", "'a'")],
)
check("another type", saved(checkpoint_version=3), base, [("checkpoint_version", "", "3.0", "3")])
rng = dict(python=list(range(40)), torch=torch.arange(8, dtype=torch.uint8), names={"x", "y"})
check("in a list", saved(rng=Whatever(**rng | {"python": list(range(39)) + [1]})), base, [("rng", ".python[39]", "39", "1")])
check(
    "a tensor of an object",
    saved(rng=Whatever(**rng | {"torch": torch.arange(1, 9, dtype=torch.uint8)})),
    base,
    [("rng", ".torch(args)[0]", "its bytes", "other bytes")],
)
check(
    "a set",
    saved(rng=Whatever(**rng | {"names": {"x"}})),
    base,
    [("rng", ".names", answer(saved(rng=Whatever(**rng | {"names": {"x"}})), base)["differences"][0]["expected"], "{'x'}")],
)

# The grid is each conversion's own, and that it is not compared is told.
note = check("a grid", saved(args=argparse.Namespace(lr=0.125, betas=(0.9, 0.95), tensor_model_parallel_size=2, name="a")), base, [])[
    "objects"
]["note"]
expect_equal("a grid: the note", ["tensor_model_parallel_size" in note, note.startswith("not compared: ")], [True, True])

# Objects of one side alone.
for what, path, source, words in (
    ("gone", saved(nothing=...), base, "has this object"),
    ("more", base, saved(nothing=...), "has this object"),
):
    told = answer(path, source)
    words = f"only {source if what == 'gone' else path} {words}"
    expect_equal(
        what, [told["equal"], told["status"], words in told["text"], [f["tensor"] for f in told["findings"]]], [False, 1, True, ["nothing"]]
    )

# A state dict's groups, as they are and under the names of fsdp_dtensor.
native = os.path.join(DATA, "dcp", "fsdp2")
out = tempfile.mkdtemp(dir=scratch.name) + "/out"
subprocess.run(
    [MCKPT, "convert", "to-fsdp", native, out, "--any-model", "--dp", "2", "--no-sync", "-q"], check=True, stdout=subprocess.DEVNULL
)
check("a state dict", native, native, [])
expect_equal("made objects", ["checkpoint_version" in check("another format", out, native, [])["objects"]["note"]], [True])

# That a side has none is said, in text and JSON.
model, run = os.path.join(DATA, "models", "tiny_qwen3_moe"), tempfile.mkdtemp(dir=scratch.name) + "/run"
subprocess.run([MCKPT, "convert", "hf-to-fsdp", model, run, "--no-sync", "-q"], check=True, stdout=subprocess.DEVNULL)
told = answer(run, model)
objects = next(c for c in told["checks"] if c["name"] == "objects")
expect_equal(
    "a model",
    [told["equal"], objects["name"], objects["status"], objects["note"][:13], "objects  not compared: " in told["text"]],
    [True, "objects", "none", "not compared:", True],
)
finish(103)
