"""A run of Megatron-FSDP v1 with optimizer states goes to v2, there to other numbers of ranks, and back to v1: not one bit, and no
option of a parameter, is another one than at first. Models with experts, tied embeddings, gated MLPs, gated delta nets, Mamba and latent attention.

On the way each tensor of v2 is compared with the parts that v1 stores, joined by torch: gate and up; the parts of a delta net in
their order. Every element of a moment has a value of its own.
"""

import os
import pickle
import random
import re
import tempfile

from mckpt_tests.checks import expect, expect_equal, in_parallel, need
from mckpt_tests.models import Models
from mckpt_tests.program import run_mckpt

need("torch", "numpy")
import torch  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
from mckpt_tests.checks import finish  # noqa: E402
from mckpt_tests.ranks import Shards, cuts, load_whole, save_as_ranks  # noqa: E402

MODEL, STATE, META = "model.module.", "optimizer.state.module.module.module.", "optimizer.param_to_group_meta.module.module.module."
PARTS = {
    "linear_fc1": ("_w", "_v"),
    "in_proj": (".query", ".key", ".value", ".z", ".beta", ".alpha"),
    "conv1d": (".query", ".key", ".value"),
}
V1 = ["--tp 1 --dp 3", "--tp 2 --dp 1", "--tp 2 --dp 2 --ep 2", "--dp 4 --hsdp 2 --hsdp-outer shard", "--dp 5 --strategy optim"]
MODELS = [
    ("tiny_moe1", 2),
    ("tiny_llama1", 1),
    ("qwen3_5", 1),
    ("qwen3_5_moe_mtp", 2),
    ("nemotron_h_moe", 2),
    ("deepseek_v3_mtp", 2),
    ("gpt_oss", 2),
]
models = Models()
scratch = tempfile.TemporaryDirectory(prefix="mckpt_v2_chains_")


def place(name):
    return os.path.join(tempfile.mkdtemp(dir=scratch.name), name)


def mckpt(*args):
    return run_mckpt(*args, "-q", *(["--no-sync"] if args[0] == "convert" else []))


def must(*args):
    run = mckpt(*args)
    expect(run.returncode == 0, f"{' '.join(map(str, args))}: {run.stdout}{run.stderr}")
    return run.stderr


def whole_name(key):
    """The parameter that a key of v1 is a part of, and the place of the part."""
    for module, tails in PARTS.items():
        for i, tail in enumerate(tails):
            found = re.fullmatch(rf"(.*\.{module}\.(?:weight|bias)\d*){re.escape(tail)}", key)
            if found:
                return found[1], i
    return key, 0


def start(model):
    """A checkpoint of v1 that torch wrote, tensors cut anywhere over three ranks, with the options of every parameter."""
    r = random.Random(model)
    made = place("made")
    must("convert", "hf-to-fsdp", models.path(model), made, "--params-dtype", "auto", "--dtype", "fp32", "--freeze", "none")
    loaded = load_whole(os.path.join(made, "release"))
    weights = {key.removeprefix(MODEL): t for key, t in loaded.items() if key.startswith(MODEL)}
    moments, metas, at = {}, {}, 1
    for name, weight in weights.items():
        first = torch.arange(at, at + weight.numel(), dtype=torch.float32).reshape(weight.shape)
        at += weight.numel()
        if name.endswith("expert_bias"):
            continue
        moments["module.module.module." + name] = {"exp_avg": first, "exp_avg_sq": -first}
        decays = weight.dim() > 1
        metas["module.module.module." + whole_name(name)[0]] = {
            "lr": 0.25 if decays else 0.125, "betas": (0.5, 0.75), "wd_mult": float(decays), "step": 17, "default_config": True,
        }  # fmt: skip
    owned = {name: cuts(r, t.shape[0], 3) for name, t in weights.items()}

    def held(tensor, name, rank):
        return Shards.rows(tensor, *owned[name][rank])

    def state_of(rank):
        states = {key: {kind: held(t, key.removeprefix("module.module.module."), rank) for kind, t in two.items()} for key, two in moments.items()}
        return {
            "model": {"module." + name: held(t, name, rank) for name, t in weights.items()},
            "optimizer": {"state": states, **({"param_to_group_meta": metas} if rank == 0 else {})},
            **({"args": loaded["args"], "iteration": 5, "checkpoint_version": 3.0} if rank == 0 else {}),
        }

    folder = os.path.join(place("run"), "iter_0000005")
    os.makedirs(folder)
    save_as_ranks((state_of(rank) for rank in range(3)), lambda: dcp.FileSystemWriter(folder, sync_files=False))
    return folder


def joined(state):
    """The tensors that v2 stores for a state of v1, by torch."""
    parts, lists, steps = {}, {}, {}
    for name, value in state.items():
        if name.startswith(MODEL):
            key, i = whole_name(name.removeprefix(MODEL))
            parts.setdefault("model." + key, {})[i] = value
        elif name.startswith(STATE):
            key, kind = name.removeprefix(STATE).rsplit(".", 1)
            key, i = whole_name(key)
            parts.setdefault(f"optimizer.state.{key}.{kind}", {})[i] = value
        elif name.startswith(META):
            key, field = name.removeprefix(META).rsplit(".", 1)
            if field == "step":
                steps[f"optimizer.state.{key}.step"] = torch.tensor(float(value))
            else:
                lists.setdefault(key, {})[field] = value
    return {name: torch.cat([of[i] for i in sorted(of)]) for name, of in parts.items()} | steps, lists


def same(a, b):
    bits = [t.contiguous().reshape(-1).view(torch.uint8) for t in (a, b)]
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(*bits)


def tensors_of(state):
    return {n: t for n, t in state.items() if isinstance(t, torch.Tensor)}


def check_v2(what, folder, want, options):
    got = load_whole(folder)
    expect_equal(f"{what}: names", sorted(tensors_of(got)), sorted(want))
    expect_equal(f"{what}: values", [n for n, t in want.items() if n in got and not same(got[n], t)], [])
    groups = {n.split(".")[2]: names for n, names in got.items() if n.endswith(".params")}
    listed = {
        p: {n.split(".")[3]: v for n, v in got.items() if n.startswith(f"optimizer.param_groups.{g}.") and not n.endswith(".params")}
        for g, names in groups.items()
        for p in names
    }
    expect_equal(f"{what}: options", sorted(listed.items()), sorted(options.items()))
    expect_equal(f"{what}: groups", [len(groups)], [2])
    with open(os.path.join(folder, ".metadata"), "rb") as f:
        paths = pickle.load(f).planner_data
    expect_equal(f"{what}: paths", [n for n, path in paths.items() if ".".join(map(str, path)) != n], [])
    expect_equal(f"{what}: the place in the list", [{type(paths[n][2]) for n in paths if "param_groups" in n}], [{int}])


def chain(model, ep):
    first = start(model)
    want = load_whole(first)
    tensors, options = joined(want)
    flags = ["--assets", models.path(model), "--freeze", "none"]
    at, r = first, random.Random(model)
    for number, grid in enumerate([f"--dp 4 --ep {ep}", "--dp 3", f"--dp 2 --ep {ep}", "--dp 1"]):
        to = place(f"v2_{number}")
        told = must("convert", "reshard", at, to, "--engine", "v2", *flags, *grid.split())
        at = os.path.join(to, "iter_0000005")
        check_v2(f"{model} {grid}", at, tensors, options)
        must("verify", to)
        must("verify", to, "--against", models.path(model))
        must("verify", to, "--against", first, *flags[:2])
        must("verify", first, "--against", to, *flags[:2])
        expect(number > 0 or told == "", f"{model}: {told}")
    # Back to the grid that stores fused tensors as at first, over one that does not. Rows of padding would stay.
    for grid in [r.choice(V1), "--tp 1 --dp 1"]:
        to = place("v1")
        run = mckpt("convert", "to-fsdp", at, to, *flags, *grid.split(), "--vocab-size", "keep")
        if run.returncode and grid != "--tp 1 --dp 1" and any(code in run.stderr for code in ("MC2006", "MC2007", "MC0204", "MC0203")):
            continue
        expect(run.returncode == 0, f"{model} {grid}: {run.stderr}")
        at = os.path.join(to, "iter_0000005")
    got = load_whole(at)
    expect_equal(f"{model}: names", sorted(got), sorted(want))
    plain = [n for n, t in want.items() if n != "args" and (same(got[n], t) if isinstance(t, torch.Tensor) else got[n] == t) is not True]
    expect_equal(f"{model}: values", plain, [])


def refuse_what_v2_has_not():
    """Options that v2 does not have are refused before anything is read or made, with what to do instead."""
    source = models.path("tiny_moe1")
    for flags, words in (
        ("--tp 2", ["MC0203", "tensor parallelism", "--tp 1", "--engine v1", "one part is kept"]),
        ("--etp 2", ["MC0203", "expert-tensor parallelism", "--etp 1"]),
        ("--pp 2", ["MC0203", "pipeline stages", "--pp 1"]),
        ("--dp 4 --hsdp 2 --hsdp-outer shard --strategy optim", ["MC0203", "optim_grads_params", "two axes differ"]),
        ("--dp 4 --hsdp 2 --hsdp-outer shard --strategy no_shard", ["MC0203", "optim_grads_params", "inside them too"]),
        ("--bucket-size 1000", ["MC0203", "--bucket-size"]),
        ("--dtype bf16", ["MC0001", "fp32", "--params-dtype bf16"]),
        ("--dtype-rule *router*=bf16", ["MC0001", "fp32", "--dtype-rule"]),
    ):
        run = mckpt("convert", "hf-to-fsdp", source, place("no"), "--engine", "v2", *flags.split(), "-n")
        expect_equal(f"{flags}: {run.stderr}", [run.returncode, [word in run.stderr for word in words]], [2, [True] * len(words)])
    run = mckpt("convert", "reshard", os.path.join(scratch.name, "nothing"), place("no"), "--engine", "v2", "--rank-states", "x")
    expect_equal(f"states of ranks: {run.stderr}", [run.returncode, "--rank-states first" in run.stderr], [2, True])


def main():
    in_parallel(chain, MODELS)
    refuse_what_v2_has_not()
    finish(200)


if __name__ == "__main__":
    main()
