"""torch.save as the judge: random nested values in zip files and legacy streams, and TorchScript archives."""

import argparse
import collections
import pickle

from mckpt_tests.judge import NEWER, OLDER, Judge, random_tensor, random_view, row
from mckpt_tests.program import run_mckpt
import numpy as np
import torch

KEYS = ["weight", "bias", "layers.0.w", "a b", "\u952e", "x" * 50, 0, 7, 12, "model", "q", "k", True]


def random_leaf(r, bases):
    if not bases or r.random() < 0.6:
        bases.append(random_tensor(r, OLDER + NEWER))
        tensor = bases[-1]
    else:  # of a storage that another tensor has, too
        tensor = random_view(r, r.choice(bases))
    if tensor.dtype.is_floating_point and r.random() < 0.2:
        tensor = torch.nn.Parameter(tensor, requires_grad=r.random() < 0.5)
    elif r.random() < 0.05:
        tensor = torch.nn.Buffer(tensor)
    return tensor


def random_object(r):
    return r.choice(
        [
            None,
            True,
            7,
            -1,
            2**40,
            -(2**70),
            1.5,
            "text",
            "t\u00e9xt",
            b"\x00\xff",
            (1, 2),
            [],
            {},
            {1, 2},
            torch.float32,
            torch.Size([2, 3]),
            torch.device("cpu"),
            argparse.Namespace(a=1, b=[2]),
            np.float64(2.5),
            np.random.RandomState(1),
            np.random.default_rng(1),
            np.random.Generator(np.random.Philox(2)),
            np.random.SFC64(3),
            range(3),
        ]
    )


def random_value(r, depth, bases):
    kind = r.random()
    if depth == 0 or kind < 0.45:
        return random_leaf(r, bases)
    if kind < 0.6:
        return random_object(r)
    if kind < 0.85:
        make = r.choice([dict, dict, collections.OrderedDict])
        return make((k, random_value(r, depth - 1, bases)) for k in r.sample(KEYS, r.randrange(6)))
    items = [random_value(r, depth - 1, bases) for _ in range(r.randrange(4))]
    return items if kind < 0.95 else tuple(items)


def tensors_of(value, path=()):
    """Names are the ways to the tensors, joined with dots."""
    if isinstance(value, torch.Tensor):
        yield ".".join(path), value
    elif isinstance(value, dict):
        for k, v in value.items():
            yield from tensors_of(v, (*path, str(k)))
    elif isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        for i, v in enumerate(value):
            yield from tensors_of(v, (*path, str(i)))


def note_big_endian(path):
    """As torch.save writes the legacy form on a big-endian machine: its third pickle says so, and nothing else is another."""
    with open(path, "rb") as f:
        pickle.load(f), pickle.load(f)
        begin = f.tell()
        system = pickle.load(f)
        end = f.tell()
    data = path.read_bytes()
    assert system["little_endian"] is True
    path.write_bytes(data[:begin] + pickle.dumps(system | {"little_endian": False}, protocol=2) + data[end:])


def save(judge, value, legacy, protocol, label):
    tensors = list(tensors_of(value))
    want = {name: row(t) for name, t in tensors}
    if len(want) != len(tensors):
        return  # two ways to one name have a rule of their own
    path = judge.path(judge.random.choice([".pt", ".pth", ".bin"]))
    torch.save(value, path, pickle_protocol=protocol, _use_new_zipfile_serialization=not legacy)
    if legacy and judge.random.random() < 0.5:
        note_big_endian(path)
        if all(t.dtype in OLDER for _, t in tensors):  # torch writes the other types in this form, and cannot read them
            want = {name: row(t) for name, t in tensors_of(torch.load(path, weights_only=False))}
        label += ", noted as big-endian"
    judge.expect(path, want, label)


def random_files(judge, count):
    r = judge.random
    for _ in judge.repeat(count):
        bases = []
        value = {f"k{n}": random_value(r, 3, bases) for n in range(r.randrange(1, 5))}
        legacy = r.random() < 0.3
        save(judge, value, legacy, r.choice([2, 2, 3, 4, 5]), "a random value")


def training_files(judge, count):
    """The objects that a training loop saves: a module, its optimizer after a step, and the rest."""
    r = judge.random
    for i in judge.repeat(count):
        torch.manual_seed(i)
        a, b = r.randrange(1, 9), r.randrange(1, 9)
        module = torch.nn.Sequential(torch.nn.Linear(a, b), torch.nn.BatchNorm1d(b), torch.nn.Linear(b, a)).to(
            r.choice([torch.float32, torch.float64])
        )
        optimizer = r.choice([torch.optim.AdamW, torch.optim.SGD])(module.parameters(), lr=0.1)
        module(torch.ones(3, a, dtype=module[0].weight.dtype)).sum().backward()
        optimizer.step()
        save(
            judge,
            {
                "model": module.state_dict(),
                "optimizer": optimizer.state_dict(),
                "args": argparse.Namespace(tp=2, bf16=True),
                "rng_state": torch.get_rng_state(),
                "iteration": i,
            },
            i % 3 == 0,
            2,
            "a training state",
        )


def script_files(judge, count):
    """TorchScript archives hold code; mckpt says so, and what to do."""
    for i in judge.repeat(count):
        path = judge.path(".pt")
        torch.jit.trace(torch.nn.Linear(i + 1, 2), torch.ones(1, i + 1)).save(path)
        run = run_mckpt("inspect", path)
        assert "TorchScript" in run.stdout + run.stderr, f"{path}: exit status {run.returncode}: {run.stdout}{run.stderr}"
        path.unlink()


def main():
    judge = Judge(seed=1)
    random_files(judge, 860)
    training_files(judge, 60)
    script_files(judge, 10)
    judge.finish(least=880)


main()
