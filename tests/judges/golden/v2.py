"""Saves by Megatron-FSDP v2 of one model on one, two and three ranks: from the save of three, `convert
reshard --engine v2` makes the others, with every key and path in the same order, every box, the file of
every record, and every digest. The model has no table: the
modules that were sharded are given, and what is frozen, tied or a buffer follows from the lists of the optimizer.
"""

import json
import os
import pickle
import tempfile

from mckpt_tests.checks import expect_equal, finish, need
from mckpt_tests.golden import sha
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

need("torch", "numpy")
import torch  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
from mckpt_tests.judge import raw_bytes  # noqa: E402
from mckpt_tests.ranks import load_whole  # noqa: E402

SOURCE = os.path.join(DATA, "dcp", "megatron_fsdp_v2")
ANSWERS = {1: ".world1.json", 2: ".world2.json", 3: ".expected.json"}
scratch = tempfile.TemporaryDirectory(prefix="mckpt_v2_")


def place(name):
    return os.path.join(scratch.name, name)


def mckpt(*args, status=0):
    run = run_mckpt(*args, timeout=60)
    expect_equal(f"{' '.join(map(str, args))}: {run.stderr}", [run.returncode], [status])
    return run.stderr


def metadata_of(folder):
    with open(os.path.join(folder, ".metadata"), "rb") as f:
        return pickle.load(f)


def resharded(source, target, world, *flags):
    flags = flags or ("--fsdp-module", "blocks.*")
    mckpt("convert", "reshard", source, place(target), "--any-model", "--engine", "v2", "--dp", world, "--no-sync", *flags)
    mckpt("verify", place(target), "-q")
    mckpt("verify", place(target), "--against", SOURCE, "-q")
    return os.path.join(place(target), "release")


def check(what, folder, world):
    with open(SOURCE + ANSWERS[world]) as f:
        want = json.load(f)
    metadata = metadata_of(folder)
    files = {(at.fqn, at.offset): info for at, info in metadata.storage_data.items()}
    expect_equal(f"{what}: order", list(metadata.state_dict_metadata), want["metadata_order"])
    expect_equal(f"{what}: paths", list(metadata.planner_data.items()), list(metadata_of(SOURCE).planner_data.items()))
    loaded = load_whole(folder)
    for name, tensor in want["tensors"].items():
        item = metadata.state_dict_metadata[name]
        boxes = [[list(c.offsets), list(c.sizes), files[name, torch.Size(c.offsets)].relative_path] for c in item.chunks]
        expect_equal(f"{what}: {name}", boxes, tensor["chunks"])
        got = [str(item.properties.dtype), list(item.size), sha(raw_bytes(loaded[name]))]
        expect_equal(f"{what}: {name}", got, ["torch." + tensor["dtype"], tensor["shape"], tensor["sha256"]])
    objects = {n: [files[n, None].relative_path, files[n, None].length] for n in want["bytes"]}
    expect_equal(f"{what}: objects", sorted(objects.items()), sorted((n, [b["file"], b["length"]]) for n, b in want["bytes"].items()))
    # Boxes of sharded tensors are plain tuples, boxes of other tensors are torch.Size, as in the real save.
    real = {n: {type(c.offsets) for c in t.chunks} for n, t in metadata_of(SOURCE).state_dict_metadata.items() if n in want["tensors"]}
    kinds = {n: {type(c.offsets) for c in t.chunks} for n, t in metadata.state_dict_metadata.items() if n in want["tensors"]}
    expect_equal(f"{what}: kinds of boxes", [n for n in real if kinds[n] != real[n]], [])


for world in ANSWERS:
    at = resharded(SOURCE, f"world{world}", world)
    check(f"world {world}", at, world)
    for again in ANSWERS:
        check(f"world {world} to {again}", resharded(at, f"world{world}to{again}", again), again)

# Over the form of v1 and back: nothing is lost but the sections that v2 has no place for, and groups are found again.
mckpt("convert", "to-fsdp", SOURCE, place("v1"), "--any-model", "--dp", 2, "--no-sync")
told = mckpt(
    "convert", "reshard", place("v1"), place("back"), "--any-model", "--engine", "v2", "--fsdp-module", "blocks.*", "--dp", 2, "--no-sync"
)
expect_equal("what has no place", [word in told for word in ("no place for", "checkpoint_version", "iteration")], [True] * 3)
want, got = load_whole(SOURCE), load_whole(os.path.join(place("back"), "release"))
tensors = {n: t for n, t in want.items() if isinstance(t, torch.Tensor)}
expect_equal("tensors", [n for n, t in tensors.items() if not torch.equal(got[n], t)], [])
expect_equal("names", sorted(n for n in got if isinstance(got[n], torch.Tensor)), sorted(tensors))


def groups(state):
    """The options of each parameter; groups may have other numbers."""
    lists = {n.split(".")[2]: value for n, value in state.items() if n.endswith(".params")}
    return {p: {n.split(".")[3]: v for n, v in state.items() if n.startswith(f"optimizer.param_groups.{g}.") and not n.endswith(".params")}
            for g, names in lists.items() for p in names}  # fmt: skip


expect_equal("options", sorted(groups(got).items(), key=str), sorted(groups(want).items(), key=str))

# Units that are not named share the root's buffers: other boxes, the same values.
flat = resharded(SOURCE, "flat", 3, "--freeze", "frozen.*")
boxes = [
    {n: [tuple(c.offsets) for c in t.chunks] for n, t in metadata_of(f).state_dict_metadata.items() if hasattr(t, "chunks")}
    for f in (flat, os.path.join(place("world3"), "release"))
]
expect_equal("other units", [boxes[0] == boxes[1]], [False])

# A tensor that is neither of the model nor of the optimizer is left out, and the account says why.
extra = place("extra/iter_0000001")
os.makedirs(extra)
state = {**load_whole(os.path.join(place("v1"), "release")), "rng_state.0": torch.arange(3)}
dcp.save(state, storage_writer=dcp.FileSystemWriter(extra, sync_files=False), no_dist=True)
mckpt("convert", "reshard", extra, place("without"), "--any-model", "--engine", "v2", "--dp", 1, "--no-sync", "--report", place("report.json"))
with open(place("report.json")) as f:
    left = json.load(f)["left_out"]
expect_equal("left out", left, [{"name": "rng_state.0", "items": 3, "reason": "Megatron-FSDP v2 has no place for it", "copy_of": None}])

# The refused options, and why.
for flags, status, words in (
    (["--keep-names"], 2, ["MC0001", "--keep-names"]),
    (["--fsdp-module", "block.*"], 1, ["MC1007", "--fsdp-module"]),
    (["--dp", "2", "--tp", "2"], 2, ["MC0203", "tensor parallelism", "--tp 1"]),
):
    told = mckpt("convert", "reshard", SOURCE, place("no"), "--any-model", "--engine", "v2", *flags, "-n", status=status)
    expect_equal(f"{flags}: {told}", [word in told for word in words], [True] * len(words))
told = mckpt("convert", "reshard", SOURCE, place("no"), "--any-model", "--fsdp-module", "blocks.*", "-n", status=2)
expect_equal("without --engine", ["--engine v2" in told], [True])

finish(800)
