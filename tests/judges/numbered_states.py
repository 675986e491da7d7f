"""Optimizer states under numbers, as torch.optim keeps them and the hooks of Megatron-FSDP alone save them: reshard gives every number the
parameter that torch.optim has under it, or refuses.

torch makes the models, the optimizers and the checkpoints; the order of a real Megatron model is the order of
its named_parameters() in the golden data.
"""

import os
import sys
import tempfile

from mckpt_tests.checks import expect_equal, failures, need
from mckpt_tests.golden import sections
from mckpt_tests.models import Models
from mckpt_tests.program import run_mckpt

need("torch", "numpy")
import torch  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
from mckpt_tests.ranks import Shards, cuts, load_whole, save_as_ranks  # noqa: E402
import random  # noqa: E402

MODEL, STATE = "model.module.", "optimizer.state.module.module.module."
META = "optimizer.param_to_group_meta.module.module.module."
models = Models()
scratch = tempfile.TemporaryDirectory(prefix="mckpt_numbered_")
counter = 0


def place():
    global counter
    counter += 1
    return os.path.join(scratch.name, str(counter))


def same(what, got, want):
    expect_equal(what, [got], [want])


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.wide = torch.nn.Linear(4, 6)
        self.norm = torch.nn.LayerNorm(6)
        self.back = torch.nn.Linear(6, 4, bias=False)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = torch.nn.Embedding(10, 4)
        self.layers = torch.nn.ModuleList([Layer(), Layer(), Layer()])
        self.end = torch.nn.LayerNorm(4)


def trained(net, groups):
    """AdamW after two steps, so that every state has values of its own."""
    optimizer = torch.optim.AdamW(groups, lr=0.01)
    for step in range(2):
        for n, p in enumerate(net.parameters()):
            if p.requires_grad:
                p.grad = torch.arange(p.numel(), dtype=torch.float32).reshape(p.shape).add(1000 * n + step) / 64
        optimizer.step()
    return optimizer


def saved(net, optimizer, change=lambda state: None):
    state = {"model": {"module." + name: p.detach() for name, p in net.named_parameters()}, "optimizer": optimizer.state_dict()}
    change(state["optimizer"])
    folder = place()
    dcp.save(state, storage_writer=dcp.FileSystemWriter(folder, sync_files=False), no_dist=True)
    return folder


def expected(net, optimizer):
    """By identity: which state torch.optim keeps for this very parameter."""
    out = {}
    for name, p in net.named_parameters():
        out[MODEL + name] = p.detach()
        for kind, value in optimizer.state.get(p, {}).items():
            out[f"{STATE}{name}.{kind}"] = value
    return out


def check(what, net, optimizer, folder, *flags):
    out = place()
    run = run_mckpt("convert", "to-fsdp", folder, out, "--any-model", "--source-tp", 1, "--no-sync", *flags)
    same(f"{what}: {run.stderr}", run.returncode, 0)
    if run.returncode:
        return
    same(f"{what}: note", "in the order of the model" in run.stderr, True)
    got, want = load_whole(os.path.join(out, "release")), expected(net, optimizer)
    tensors = {key: value for key, value in got.items() if isinstance(value, torch.Tensor)}
    same(f"{what}: names", sorted(tensors), sorted(want))
    same(f"{what}: values", [key for key in want if key not in tensors or not torch.equal(tensors[key], want[key])], [])
    for group in optimizer.param_groups:
        for p in group["params"]:
            name = next(name for name, q in net.named_parameters() if q is p)
            options = [got.get(f"{META}{name}.{field}", "missing") for field in ("weight_decay", "step")]
            same(f"{what}: {name}", options, [group["weight_decay"], 2] if p in optimizer.state else ["missing"] * 2)
    same(f"{what}: no lists", [key for key in got if key.endswith(".params")], [])
    again = run_mckpt("verify", out, "--against", folder, "-q")
    same(f"{what}: verify {again.stdout}{again.stderr}", again.returncode, 0)


def refused(what, folder, words):
    out = place()
    run = run_mckpt("convert", "to-fsdp", folder, out, "--any-model", "--source-tp", 1, "--no-sync")
    told = run.stderr + run.stdout
    same(f"{what}: {told}", [run.returncode, "MC3005" in told, words in told, "--weights-only" in told], [4, True, True, True])
    same(f"{what}: nothing written", os.path.exists(out), False)
    run = run_mckpt("convert", "to-fsdp", folder, out, "--any-model", "--source-tp", 1, "--no-sync", "--weights-only", "-q")
    same(f"{what}: weights only {run.stderr}", run.returncode, 0)
    got = load_whole(os.path.join(out, "release"))
    same(f"{what}: only weights", [key for key in got if key.startswith("optimizer.")], [])


def decays(net, decay=True):
    return [p for p in net.parameters() if (p.ndim > 1) == decay]


def groups_that_are_known():
    torch.manual_seed(3)
    net = Net()
    optimizer = trained(net, net.parameters())
    for flags in (("--dp", 1), ("--dp", 3), ("--dp", 4, "--hsdp", 2)):
        check(f"one group {flags}", net, optimizer, saved(net, optimizer), *flags)
    for first in (True, False):
        groups = [{"params": decays(net, want), "weight_decay": 0.25 * want} for want in (first, not first)]
        optimizer = trained(net, groups)
        check(f"decay {first}", net, optimizer, saved(net, optimizer), "--dp", 3)
    # A parameter that is listed but was not trained has a number and no states.
    net.layers[1].back.weight.requires_grad_(False)
    net.tokens.weight.requires_grad_(False)
    for p in net.parameters():
        p.grad = None
    optimizer = trained(net, net.parameters())
    check("frozen", net, optimizer, saved(net, optimizer), "--dp", 2)


def groups_that_are_not_known():
    net = Net()
    layers = [{"params": list(layer.parameters())} for layer in net.layers]
    others = {"params": [net.tokens.weight, net.end.weight, net.end.bias]}
    optimizer = trained(net, [others, *layers])
    refused("layers apart", saved(net, optimizer), "both have that shape")
    optimizer = trained(net, list(reversed(list(net.parameters()))))
    refused("another order", saved(net, optimizer), "has the shape of no group's next number")
    optimizer = trained(net, list(net.parameters())[:-1])
    refused("one is missing", saved(net, optimizer), "has the shape of no group's next number")
    optimizer = trained(net, net.parameters())

    def no_list(state):
        for group in state["param_groups"]:
            del group["params"]

    def no_seven(state):
        state["param_groups"][0]["params"].remove(7)

    def one_more(state):
        state["param_groups"][0]["params"].append(len(state["state"]))

    def twice(state):
        state["param_groups"][0]["params"][3] = 2

    def of_two_shapes(state):
        state["state"][4]["exp_avg_sq"] = torch.zeros(5, 5)

    refused("no list", saved(net, optimizer, no_list), "no group lists the numbers")
    refused("not listed", saved(net, optimizer, no_seven), "no group lists number 7")
    refused("one more", saved(net, optimizer, one_more), "1 numbers more")
    refused("twice", saved(net, optimizer, twice), "number 2 is listed twice")
    refused("two shapes", saved(net, optimizer, of_two_shapes), "number 4 have two shapes")


def of_a_known_model(model, groups_by):
    """A Megatron model in the order in which Megatron registers it, cut over three ranks."""
    at = place()
    run = run_mckpt("convert", "hf-to-fsdp", models.path(model), at, "--params-dtype", "auto", "--dtype", "fp32", "--no-sync", "-q")
    same(f"{model}: {run.stderr}", run.returncode, 0)
    stored = {k.removeprefix(MODEL): v for k, v in load_whole(os.path.join(at, "release"), objects=False).items()}
    _, ranks = sections(f"ranks/{model}.tp1_cp1_ep1.txt")
    order = [line.split()[0] for line in ranks[0] if not line.startswith("buffer ")]
    whole = {name: stored[name] if name in stored else torch.cat([stored[f"{name}_w"], stored[f"{name}_v"]]) for name in order}
    group_of = {name: groups_by(whole[name]) for name in order}
    numbers = {name: n for n, name in enumerate(sorted(order, key=lambda name: (group_of[name], order.index(name))))}
    states = {name: torch.arange(whole[name].numel(), dtype=torch.float32).reshape(whole[name].shape) + 10_000_000 + 1000 * numbers[name] for name in order}
    r = random.Random(model)
    owned = {name: cuts(r, whole[name].shape[0], 3) for name in order}

    def held(tensor, name, rank):
        return Shards.rows(tensor, *owned[name][rank])

    def state_of(rank):
        return {
            "model": {"module." + name: held(whole[name], name, rank) for name in order},
            "optimizer": {
                "state": {n: {"exp_avg": held(states[name], name, rank)} for name, n in numbers.items()},
                **(
                    {
                        "param_groups": [
                            {"weight_decay": 0.5 * g, "params": [numbers[name] for name in order if group_of[name] == g]}
                            for g in sorted(set(group_of.values()))
                        ]
                    }
                    if rank == 0
                    else {}
                ),
            },
        }

    folder, out = place(), place()
    os.mkdir(folder)
    save_as_ranks((state_of(rank) for rank in range(3)), lambda: dcp.FileSystemWriter(folder, sync_files=False))
    with_model = ["--assets", models.path(model), "--source-tp", 1, "--source-etp", 1]
    run = run_mckpt("convert", "to-fsdp", folder, out, *with_model, "--dp", 2, "--no-sync")
    same(f"{model}: {run.stderr}", run.returncode, 0)
    got = load_whole(os.path.join(out, "release"))
    for name, state in states.items():
        parts = [f"{name}_w", f"{name}_v"] if f"{name}_w" in stored else [name]
        mine = torch.cat([got[f"{STATE}{part}.exp_avg"] for part in parts])
        same(f"{model}: {name}", torch.equal(mine, state), True)
        same(f"{model}: {name}: group", got[f"{META}{name}.weight_decay"], 0.5 * group_of[name])
    same(f"{model}: states", len([key for key in got if key.startswith(STATE)]), sum(2 if f"{n}_w" in stored else 1 for n in order))
    run = run_mckpt("verify", out, "--against", folder, *with_model, "-q")
    same(f"{model}: verify {run.stdout}{run.stderr}", run.returncode, 0)
    # Weights need no numbers.
    hf = place()
    run = run_mckpt("export", folder, hf, *with_model, "--no-sync", "-q")
    same(f"{model}: export {run.stderr}", run.returncode, 0)
    run = run_mckpt("verify", hf, "--against", models.path(model), "-q")
    same(f"{model}: exported {run.stdout}{run.stderr}", run.returncode, 0)


def main():
    groups_that_are_known()
    groups_that_are_not_known()
    of_a_known_model("qwen3_dense", lambda t: 0)
    of_a_known_model("qwen3_moe", lambda t: int(t.ndim == 1))
    sys.exit(1 if failures else 0)


main()
