"""Checkpoints with optimizer states go over chains of random grids, several of each family, and come back to the first grid with not
one bit changed: weights, both moments of every parameter, options of the optimizer, objects. A step writes fsdp_dtensor or torch_dist.
torch wrote the first checkpoint and reads the last one.

Every element of a moment has a value of its own, so that no two can change places unseen.
"""

import collections
import json
import os
import re
import sys

from mckpt_tests.checks import fail, failures, in_parallel, need
from mckpt_tests.models import GOLDEN, Models
from mckpt_tests.program import run_mckpt

need("torch", "numpy")
import random  # noqa: E402
import shutil  # noqa: E402
import tempfile  # noqa: E402

import torch  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
from mckpt_tests.ranks import Shards, cuts, load_whole, save_as_ranks  # noqa: E402

CHAINS = 3  # of each model
STEPS = 3
GRIDS = [
    "--tp 1 --dp 1",
    "--tp 2 --dp 1",
    "--tp 1 --dp 3",
    "--tp 2 --dp 2 --ep 4",
    "--tp 2 --cp 2 --ep 2",
    "--tp 4 --ep 2",
    "--ep 8 --dp 8",
    "--tp 2 --ep 2 --etp 2",
    "--dp 7",
    "--dp 4 --hsdp 2 --hsdp-outer shard",
    "--tp 2 --dp 4 --hsdp 2 --hsdp-outer replicate",
    "--dp 5 --strategy optim",
    "--tp 2 --dp 3 --strategy optim_grads",
    "--dp 2 --strategy no_shard",
]
# Grids of torch_dist: the ranks that cut a tensor, and the ranks that have experts.
CORE_GRIDS = ["--tp 1", "--tp 2", "--tp 4", "--ep 4", "--tp 2 --ep 2", "--tp 2 --ep 2 --etp 2", "--tp 2 --pp 2 --cp 2"]
# The endings of the parts in which fsdp_dtensor stores a parameter; the options of the optimizer are the
# parameter's.
PART = re.compile(r"(_w|_v|\.(query|key|value|z|beta|alpha))$")
MODEL, STATE = "model.module.", "optimizer.state.module.module.module."
models = Models()
scratch = tempfile.TemporaryDirectory(prefix="mckpt_chains_")
outcomes = collections.Counter()


def place(name):
    return os.path.join(tempfile.mkdtemp(dir=scratch.name), name)


def mckpt(*args):
    return run_mckpt(*args, "-q", "--no-sync")


def with_states(weights):
    """The nested state of a run: of each parameter two moments, and the objects beside them."""
    moments, metas, at = {}, {}, 1
    for name, weight in weights.items():
        of = MODEL + name
        first = torch.arange(at, at + weight.numel(), dtype=torch.float32).reshape(weight.shape)
        at += weight.numel()
        assert at < 1 << 24, "values of float32 are no longer distinct"
        moments["module.module." + of.removeprefix("model.")] = {"exp_avg": first, "exp_avg_sq": -first}
        decays = weight.dim() > 1 and not name.endswith(".bias")
        options = {"lr": 0.25, "betas": (0.5, 0.75), "wd_mult": float(decays), "lr_mult": 1.0, "is_expert_parallel": False, "step": 17}
        metas["module.module." + PART.sub("", of).removeprefix("model.")] = options
    return moments, metas


def start(model):
    """A checkpoint that torch wrote, each tensor cut anywhere over three ranks; and what it holds."""
    r = random.Random(model)
    made = place("made")
    rows = str(-(-vocabulary(model) // 8) * 8)
    run = mckpt("convert", "hf-to-fsdp", models.path(model), made, "--vocab-size", rows)
    assert run.returncode == 0, run.stderr
    loaded = load_whole(os.path.join(made, "release"))
    weights = {key.removeprefix(MODEL): t for key, t in loaded.items() if key.startswith(MODEL)}
    moments, metas = with_states(weights)
    owned = {name: cuts(r, t.shape[0], 3) for name, t in weights.items()}

    def held(tensor, name, rank):
        return Shards.rows(tensor, *owned[name][rank])

    def state_of(rank):
        return {
            "model": {"module." + name: held(t, name, rank) for name, t in weights.items()},
            "optimizer": {
                "state": {
                    key: {kind: held(t, key.removeprefix("module.module.module."), rank) for kind, t in two.items()}
                    for key, two in moments.items()
                },
                **({"param_to_group_meta": metas} if rank == 0 else {}),
            },
            **({"args": loaded["args"], "iteration": 5, "checkpoint_version": 3.0} if rank == 0 else {}),
        }

    folder = os.path.join(place("run"), "iter_0000005")
    os.makedirs(folder)
    save_as_ranks((state_of(rank) for rank in range(3)), lambda: dcp.FileSystemWriter(folder, sync_files=False))
    return folder


def vocabulary(model):
    with open(os.path.join(models.path(model), "config.json")) as f:
        config = json.load(f)
    return config.get("vocab_size") or config["text_config"]["vocab_size"]


def same(want, got):
    """The first thing that differs."""
    if want.keys() != got.keys():
        return f"other names: {sorted(want.keys() ^ got.keys())[:4]}"
    for name, value in want.items():
        if isinstance(value, torch.Tensor):
            # As bytes: NaN is NaN, and the two zeros are two values.
            if (
                value.dtype != got[name].dtype
                or value.shape != got[name].shape
                or not torch.equal(value.contiguous().view(torch.uint8), got[name].contiguous().view(torch.uint8))
            ):
                return name
        elif name != "args" and value != got[name]:  # whose numbers of the grid are the last grid's
            return name
    return ""


def chain(model, number, first, want):
    r = random.Random(f"{model} {number}")
    at, way, kept, in_core = first, [], os.path.dirname(first), False
    ends = ["--tp 1 --dp 3", "--tp 1 --dp 1"]  # fused tensors as at first
    while len(way) < STEPS + 1:
        last = len(way) == STEPS
        core = not last and r.random() < 0.5
        grid = ends.pop(0) if last else r.choice(CORE_GRIDS if core else GRIDS)
        to, frozen = place("step"), [] if core else ["--freeze", "none"]
        # For a source in the same format it is the same conversion.
        mode = "reshard" if core == in_core else "to-mcore" if core else "to-fsdp"
        run = mckpt("convert", mode, at, to, "--assets", models.path(model), *frozen, *grid.split())
        # Sizes that do not divide, no_shard for a model whose parameters are stored in parts, shards that begin inside a row.
        if run.returncode and (not last or ends) and any(code in run.stderr for code in ("MC2006", "MC2007", "MC0203", "MC0204")):
            outcomes["no such grid"] += 1
            continue
        way.append(grid + " (torch_dist)" * core)
        if run.returncode != 0:
            return fail(f"{model} {way}: {run.stderr}")
        if os.path.dirname(at) != kept:
            shutil.rmtree(os.path.dirname(at))
        at, in_core = os.path.join(to, "iter_0000005"), core
    got = load_whole(at)
    # torch_dist has the main weights as well, and fsdp_dtensor keeps them.
    mains = {name: got.pop(name) for name in list(got) if name.endswith(".param")}
    if any("torch_dist" in step for step in way):
        if wrong := [name for name, main in mains.items() if not torch.equal(main, got[MODEL + name[len(STATE) :].removesuffix(".param")].float())]:
            fail(f"{model} {way}: {wrong[:3]} are not the weights")
        if not mains:
            fail(f"{model} {way}: no main weights")
        outcomes["over torch_dist"] += 1
    if difference := same(want, got):
        fail(f"{model} {way}: {difference}")
    shutil.rmtree(to)
    outcomes["chains"] += 1


def family(model):
    first = start(model)
    want = load_whole(first)
    for number in range(CHAINS):
        chain(model, number, first, want)


def main():
    names = sorted(os.listdir(os.path.join(GOLDEN, "models")))
    in_parallel(family, [(name,) for name in names])
    print(dict(outcomes))
    if outcomes["over torch_dist"] < outcomes["chains"] // 2:
        fail(f"only {outcomes['over torch_dist']} chains over torch_dist")
    if outcomes["chains"] < CHAINS * len(names):
        fail(f"only {outcomes['chains']} chains of {CHAINS * len(names)}")
    sys.exit(1 if failures else 0)


main()
