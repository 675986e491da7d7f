"""A model of 20 GB in a control group of 256 MiB, page cache included: it is converted, checked against its source and looked at, and the
files are the same as those made with all of the memory. Then a folder whose index names 5,000 shards, with the
1,024 open files that are usual. In scripts/test they are 0.4 GB and 600 shards.

usage: large_in_little_memory.py [GIGABYTES]"""

import json
import os
import random
import resource
import shutil
import struct
import sys
import tempfile

from mckpt_tests.checks import expect, finish, skip
from mckpt_tests.figures import bounded, counted, so_many

from mckpt_tests.folders import safetensors
from mckpt_tests.memory_groups import memory_group
from mckpt_tests.models import make_model
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import MCKPT, SANITIZED

if SANITIZED:
    skip("the sanitizers' own memory is counted")
LIMIT = 256 << 20
GIGABYTES = float(sys.argv[1]) if len(sys.argv) > 1 else so_many(20, 0.4)
SHARDS = so_many(5000, 600)

def data_of(file):
    """Where the tensors lie: the offset of the data, and its size."""
    with open(file, "rb") as f:
        n = struct.unpack("<Q", f.read(8))[0]
    return 8 + n, os.path.getsize(file) - 8 - n

def put_marks(folder):
    """A thousand stretches of random, finite bfloat16 values all over a sparse model; the rest stays zero and takes no room."""
    r = random.Random(1)
    files = sorted(name for name in os.listdir(folder) if name.endswith(".safetensors"))
    for i in range(1000):
        file = os.path.join(folder, files[i % len(files)])
        at, size = data_of(file)
        bytes_ = bytearray(r.randbytes(min(4096, size & ~1)))
        bytes_[1::2] = bytes(0x3C | b & 0x83 for b in bytes_[1::2])
        with open(file, "r+b") as f:
            f.seek(at + (r.randrange(max(1, size - len(bytes_))) & ~1))
            f.write(bytes_)

def large(folder, run):
    layer = 5 * 1024 * 1024 + 3 * 1024 * 8192  # items: attention with as many heads as are wide, and the MLP
    layers = max(2, round(GIGABYTES * 1e9 / 2 / layer))
    model = make_model(os.path.join(folder, "model"), layers=layers, hidden=1024, heads=16, kv=16, head_dim=64, ffn=8192, vocab=16000, sparse=True)
    put_marks(model)
    gigabytes = sum(os.path.getsize(os.path.join(model, name)) for name in os.listdir(model)) / 1e9
    out = os.path.join(folder, "out")
    words = [MCKPT, "convert", "hf-to-fsdp", model, out, "--tp", "2", "-q"]
    peak = 0
    with counted("P7", f"commands over a model of {gigabytes:.1f} GB in a control group of 256 MiB: convert, verify, verify --against, inspect, ls", 5) as count:
        limited = run(*words)
        count.one(expect(limited.returncode == 0, f"convert: {limited.returncode} {limited.stderr[:500]}"))
        peak = limited.peak_bytes
        for more in (["verify", out], ["verify", out, "--against", model], ["inspect", out], ["ls", out]):
            done = run(MCKPT, *more, "-q")
            count.one(expect(done.returncode == 0, f"{more}: {done.returncode} {done.stderr[:500]}"))
            peak = max(peak, done.peak_bytes)
    bounded("P7", "MiB of resident memory of these commands", 256, peak / (1 << 20))
    with open(os.path.join(out, "release", "mckpt_manifest.json")) as f:
        sums = f.read()  # of every file, and verify has found them right
    shutil.rmtree(out)
    with counted("P7", "the same bytes as with all memory", 1) as count:
        run_mckpt(*words[1:], timeout=3600)
        with open(os.path.join(out, "release", "mckpt_manifest.json")) as f:
            count.one(expect(sums == f.read(), "other bytes than with all memory"))
    shutil.rmtree(out)
    shutil.rmtree(model)

def split(whole, folder):
    """The model with a file for each tensor."""
    os.mkdir(folder)
    shutil.copy(os.path.join(whole, "config.json"), folder)
    tensors, weight_map = sorted(safetensors(whole).items()), {}
    for i, (name, (dtype, shape, data)) in enumerate(tensors, 1):
        weight_map[name] = f"model-{i:05}-of-{len(tensors):05}.safetensors"
        header = json.dumps({name: {"dtype": dtype, "shape": shape, "data_offsets": [0, len(data)]}}).encode()
        with open(os.path.join(folder, weight_map[name]), "wb") as f:
            f.write(struct.pack("<Q", len(header)) + header + data)
    with open(os.path.join(folder, "model.safetensors.index.json"), "w") as f:
        json.dump({"metadata": {"total_size": sum(len(data) for _, (_, _, data) in tensors)}, "weight_map": weight_map}, f)
    return folder


def many_shards(folder, run):
    """Each tensor has a file of its own."""
    whole = make_model(os.path.join(folder, "whole"), layers=so_many(28, 4), hidden=32, heads=2, kv=2, head_dim=16, vocab=64, experts=60, moe_ffn=16)
    model = split(whole, os.path.join(folder, "shards"))
    files = [name for name in os.listdir(model) if name.endswith(".safetensors")]
    expect(len(files) >= SHARDS, f"{len(files)} shards")
    headers = sum(data_of(os.path.join(model, name))[0] for name in files) + os.path.getsize(os.path.join(model, "model.safetensors.index.json"))
    out, peak = os.path.join(folder, "of_shards"), 0
    usual = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, usual[1]))
    with counted("P7", f"commands over {len(files):,} shards with 1,024 open files in 256 MiB: inspect, ls, verify, convert, export, verify --against", 6) as count:
        for words in (["inspect", model], ["ls", model], ["verify", model], ["convert", "hf-to-fsdp", model, out, "--ep", "4"], ["export", out, out + "_hf"],
                      ["verify", out, "--against", model]):
            done = run(MCKPT, *words, "-q")
            count.one(expect(done.returncode == 0, f"{words}: {done.returncode} {done.stderr[:300]}"))
            if words[0] in ("inspect", "ls"):
                peak = max(peak, done.peak_bytes)
    bounded("P7", f"MiB of resident memory to look at {len(files):,} shards, whose headers have {headers >> 20} MiB", 64 + round(4 * headers / (1 << 20)), peak / (1 << 20))
    expect(peak <= (64 << 20) + 4 * headers, f"looking took {peak >> 20} MiB")
    resource.setrlimit(resource.RLIMIT_NOFILE, usual)

with tempfile.TemporaryDirectory(prefix="mckpt_large_", dir=os.environ.get("TMPDIR", "/var/tmp")) as folder, memory_group(LIMIT) as run:
    needed = 1.2 * GIGABYTES * 1e9
    if shutil.disk_usage(folder).free < needed + 5e9:
        skip(f"{needed / 1e9:.0f} GB of disk are needed, and 5 to spare")
    many_shards(folder, run)
    large(folder, run)
finish(10)
