"""Opening and reading checkpoints in Python: mckpt.open() beside safetensors.safe_open() and torch.load(), in one run.

    PYTHONPATH=tools/python .venv/bin/python tests/bench/open_and_read.py [FOLDER]

Two files of each format are made in FOLDER (/dev/shm): one of 10,000 small tensors, and one of 1 GiB in 64. All libraries give
equal tensors; times are the best of several, each in the same process, with the files in the page cache; "read" copies every
byte into new memory. Ratios below 1: mckpt is faster.
"""
import os
import sys
import tempfile
import time

import safetensors
import safetensors.torch
import torch

import mckpt

TIMES = 5


def best(work):
    times = []
    for _ in range(TIMES):
        begin = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - begin)
        del result
    return min(times)


def opened_by_safetensors(path):
    with safetensors.safe_open(path, "pt") as f:
        return [(name, f.get_slice(name).get_shape()) for name in f.keys()]


def opened_by_mckpt(path):
    with mckpt.open(path) as ckpt:
        return [(name, tensor.shape) for name, tensor in ckpt.items()]


def opened_by_torch(path):
    return [(name, tensor.shape) for name, tensor in torch.load(path, mmap=True, weights_only=True).items()]


def copies(tensors):
    """Every byte is read and copied into new memory."""
    return {name: tensor.clone() for name, tensor in tensors}


def read_by_safetensors(path):
    with safetensors.safe_open(path, "pt") as f:
        return copies((name, f.get_tensor(name)) for name in f.keys())


def read_by_torch(path):
    return torch.load(path, weights_only=True)


def read_by_mckpt(path):
    with mckpt.open(path) as ckpt:
        return {name: into_new(tensor) for name, tensor in ckpt.in_file_order()}


def into_new(tensor):
    mapped = tensor.torch()
    return mapped.clone() if tensor.nbytes >= mckpt.tensor.MAPPED_FROM else mapped


def mapped_by_mckpt(path):
    with mckpt.open(path) as ckpt:
        return {name: tensor.torch() for name, tensor in ckpt.items()}


def mapped_by_safetensors(path):
    with safetensors.safe_open(path, "pt") as f:
        return {name: f.get_tensor(name) for name in f.keys()}


def same(path, read, expected):
    got = read(path)
    assert set(got) == set(expected), path
    for name, tensor in expected.items():
        assert got[name].dtype == tensor.dtype and torch.equal(got[name], tensor), (path, name)


def compare(what, path, mine, name, theirs):
    a, b = best(lambda: mine(path)), best(lambda: theirs(path))
    print(f"{what:<42} mckpt {a * 1e3:9.2f} ms   {name:<14} {b * 1e3:9.2f} ms   ratio {a / b:.2f}")


def main(folder):
    torch.manual_seed(1)
    torch.set_num_threads(1)
    many = {f"layers.{i}.weight": torch.randn(16, 16) for i in range(10_000)}
    large = {f"layers.{i}.weight": torch.randn(2048, 2048) for i in range(64)}
    for label, tensors in (("10,000 tensors of 1 KiB", many), ("64 tensors, 1 GiB", large)):
        st, pt = os.path.join(folder, "model.safetensors"), os.path.join(folder, "model.pt")
        safetensors.torch.save_file(tensors, st)
        torch.save(tensors, pt)
        for path, readers in ((st, (read_by_mckpt, mapped_by_mckpt, read_by_safetensors, mapped_by_safetensors)), (pt, (read_by_mckpt, mapped_by_mckpt, read_by_torch))):
            for read in readers:
                same(path, read, tensors)
        assert sorted(opened_by_mckpt(st)) == sorted((n, tuple(s)) for n, s in opened_by_safetensors(st))
        print(label)
        compare("  .safetensors: open, all names and shapes", st, opened_by_mckpt, "safetensors", opened_by_safetensors)
        compare("  .safetensors: all tensors, mapped", st, mapped_by_mckpt, "safetensors", mapped_by_safetensors)
        compare("  .safetensors: all tensors, copied", st, read_by_mckpt, "safetensors", read_by_safetensors)
        compare("  .pt: open, all names and shapes", pt, opened_by_mckpt, "torch (mmap)", opened_by_torch)
        compare("  .pt: all tensors, copied", pt, read_by_mckpt, "torch", read_by_torch)


with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else "/dev/shm") as made:
    main(made)
