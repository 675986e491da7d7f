"""A checkpoint with one wrong byte anywhere in its tensors, be it in rows that nothing takes, is not converted: the error names
the tensor and the file, and nothing is published, also when the byte belongs to what an interrupted run did before. `verify`
names experts that came out equal. One of several ranks answers a dry run, and one reports a refusal.
"""

import json
import math
import os
import random
import shutil
import struct

from mckpt_tests.checks import expect, finish
from mckpt_tests.folders import data_offset, scratch
from mckpt_tests.models import make_model
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA, HAS_MPI

folder = scratch()
random.seed(3)


def path(name):
    return os.path.join(folder.name, name)


def done(*args, **how):
    result = run_mckpt(*args, "--no-sync", **how)
    expect(result.returncode == 0, f"{args}: {result.stderr[:500]}")
    return result


class Flipped:
    """One byte of a file is another; the file looks as it did before."""

    def __init__(self, file, offset):
        self.file, self.offset = file, offset

    def flip(self):
        stamp = os.stat(self.file)
        with open(self.file, "r+b") as f:
            f.seek(self.offset)
            byte = f.read(1)[0]
            f.seek(self.offset)
            f.write(bytes([byte ^ 0x10]))
        os.utime(self.file, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))

    def __enter__(self):
        self.flip()

    def __exit__(self, *_):
        self.flip()


def refused(what, name, *args, **how):
    target = path("out")
    result = run_mckpt(*args, target, "-q", "--no-sync", **how)
    expect(result.returncode == 3, f"{what}: exit status {result.returncode}: {result.stderr[:300]}")
    expect("error[MC1203]" in result.stderr and name in result.stderr, f"{what}: {result.stderr[:300]}")
    published = os.path.join(target, "release") if {"reshard", "to-fsdp"} & set(args) else target
    expect(not os.path.exists(published), f"{what}: published")
    shutil.rmtree(target, ignore_errors=True)
    for left in os.listdir(folder.name):
        if ".mckpt-" in left:
            shutil.rmtree(path(left))


def chunks_of(checkpoint):
    """Every chunk of the model: the tensor's name, its file, the place of its bytes."""
    listed = json.loads(run_mckpt("ls", checkpoint, "--json").stdout)
    file = lambda chunk: os.path.join(checkpoint, "release", chunk["file"])
    return [
        (t["name"], file(c), data_offset(file(c), c["offset"]), 2 * math.prod(c["sizes"]), c)
        for t in listed["tensors"]
        for c in t["chunks"]
        if 0 not in c["sizes"]
    ]


def one_byte(checkpoint, chunks, times):
    ways = [("export", ["export", checkpoint], 1), ("reshard", ["convert", "reshard", checkpoint, "--dp", "3"], 1)]
    if HAS_MPI:
        ways += [(f"{what} on 3 ranks", command, 3) for what, command, _ in ways]
    for name, file, offset, size, _ in random.sample(chunks, times):
        with Flipped(file, offset + random.randrange(size)):
            for what, command, ranks in ways[:2] if random.random() < 0.8 else ways:
                refused(f"{what}, {name}", name, *command, ranks=ranks)


def padding(checkpoint, chunks):
    """The rows behind the vocabulary are in no tensor of the exported model."""
    name, file, offset, size, chunk = [c for c in chunks if "word_embeddings" in c[0]][-1]
    row = size // chunk["sizes"][0]
    expect(chunk["offsets"][0] + chunk["sizes"][0] > VOCAB, "there is no padding")
    with Flipped(file, offset + size - row):
        refused("padding", name, "export", checkpoint)


def objects(checkpoint):
    """One bit of an object: it still reads, as another number."""
    file = os.path.join(checkpoint, "release", "__0_0.distcp")
    with open(file, "rb") as f:
        data = f.read()
    for name, pickle in (("iteration", b"\x80\x02K\x00."), ("checkpoint_version", b"\x80\x02G" + struct.pack(">d", 3.0) + b".")):
        expect(data.count(pickle) == 1, f"{name} is not found")
        with Flipped(file, data.index(pickle) + 3):
            for ranks in (1, 3) if HAS_MPI else (1,):
                refused(f"{name}, {ranks} ranks", name, "convert", "reshard", checkpoint, "--dp", "3", ranks=ranks)
    at = data.index(b"tensor_model_parallel_size")
    with Flipped(file, at):
        refused("args", "args", "convert", "reshard", checkpoint, "--dp", "3")
    done("convert", "reshard", checkpoint, path("sound"), "--dp", "3")


def dry_run_of_ranks(model, checkpoint):
    for what, args in (
        ("hf-to-fsdp", ["convert", "hf-to-fsdp", model]),
        ("reshard", ["convert", "reshard", checkpoint, "--dp", "2"]),
        ("export", ["export", checkpoint]),
    ):
        result = run_mckpt(*args, path("nowhere"), "--dry-run", "--json", ranks=3)
        expect(
            result.returncode == 0 and len(result.stdout.splitlines()) == 1,
            f"{what}: dry run of 3 ranks: {result.stdout}{result.stderr[:300]}",
        )
        expect(not os.path.exists(path("nowhere")), f"{what}: a dry run wrote something")


def said_once():
    """A refusal of rank 0 before the others have begun is the only message."""
    for _ in range(10):
        result = run_mckpt("export", path("nowhere"), path("out"), ranks=5)
        expect(result.returncode == 3 and result.stderr.count("error[") == 1, f"nothing there: {result.returncode}: {result.stderr[:600]}")


def equal_experts():
    model = make_model(path("experts"), layers=2, hidden=48, heads=6, kv=3, head_dim=8, vocab=64, experts=4, moe_ffn=16)
    args = ["convert", "hf-to-fsdp", model, path("twins"), "--ep", "2", "--overwrite"]
    equal = lambda: [line for line in run_mckpt("verify", path("twins")).stdout.splitlines() if "MC1009" in line]  # noqa: E731
    done(*args)
    expect(not equal(), f"experts that differ are reported as equal: {equal()}")
    file = os.path.join(model, "model.safetensors")
    with open(file, "r+b") as f:
        n = struct.unpack("<Q", f.read(8))[0]
        header = json.loads(f.read(n))
        of = lambda expert: header[f"model.layers.1.mlp.experts.{expert}.down_proj.weight"]["data_offsets"]
        f.seek(8 + n + of(0)[0])
        data = f.read(of(0)[1] - of(0)[0])
        f.seek(8 + n + of(2)[0])
        f.write(data)
    done(*args)
    expect(len(equal()) == 1 and "layers.1.mlp.experts.linear_fc2.weight" in equal()[0] and "experts 0, 2" in equal()[0], f"equal experts: {equal()}")


def files_of_training_programs():
    """Rank files and ZeRO: a byte of a record of which a tensor of the model is a part."""
    for case, file_of_model in (("rank_files/verl1st_w3", "model_world"), ("rank_files/accelerate", "pytorch_model_fsdp"), ("zero/zero2_tied_w2", "optim_states")):
        source = path(os.path.basename(case))
        shutil.copytree(os.path.join(DATA, case), source)
        tensors = [t for t in json.loads(run_mckpt("ls", source, "--json").stdout)["tensors"] if t["name"].endswith("_proj.weight") and "exp_avg" not in t["name"]]
        chunk = next(c for t in tensors for c in t["chunks"] or [t] if file_of_model in (c["file"] or ""))
        root = next(folder for folder, _, files in os.walk(source) if os.path.basename(chunk["file"]) in files)
        with Flipped(os.path.join(root, os.path.basename(chunk["file"])), chunk["offset"] + 5):
            of_a_model = [["export", source], ["convert", "to-fsdp", source, "--dp", "2"]] if "verl" in case else []  # which has a config.json
            for mode in (["convert", "to-safetensors", source], ["convert", "to-dcp", source], *of_a_model):
                refused(f"{case}, {mode[:2]}", os.path.basename(chunk["file"]), *mode)


VOCAB = 1000
model = make_model(path("model"), layers=2, hidden=64, heads=8, kv=4, head_dim=8, ffn=96, vocab=VOCAB)
done("convert", "hf-to-fsdp", model, path("ckpt"), "--tp", "2", "--dp", "2", "--vocab-size", "1024")
chunks = chunks_of(path("ckpt"))
one_byte(path("ckpt"), chunks, 12)
padding(path("ckpt"), chunks)
objects(path("ckpt"))
equal_experts()
files_of_training_programs()
if HAS_MPI:
    dry_run_of_ranks(model, path("ckpt"))
    said_once()
finish(60)
