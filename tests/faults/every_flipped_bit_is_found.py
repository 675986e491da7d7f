"""Whatever bit is flipped of what mckpt wrote, in any file of a checkpoint or of an exported folder, verify says so.
"""
import concurrent.futures
import os
import random
import shutil
import threading

from mckpt_tests.checks import expect, finish
from mckpt_tests.folders import files_of, scratch
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import SHARE

SEED, RANDOM_BITS, SMALL = 17, 300, 700
MODEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "test_data", "models", "tiny_qwen3_moe")
folder = scratch()
local = threading.local()


def bits_of(made):
    """One bit of every byte of the small files, and random ones of all files."""
    random.seed(SEED)
    names = files_of(made)
    size = {name: os.path.getsize(os.path.join(made, name)) for name in names}
    bits = [(name, at, random.randrange(8)) for name in names if size[name] <= SMALL for at in range(size[name])]
    for _ in range(RANDOM_BITS):
        name = random.choice([name for name in names if size[name] > 0])
        bits.append((name, random.randrange(size[name]), random.randrange(8)))
    # The first bytes of each file: headers, and where archives begin.
    bits += [(name, at, random.randrange(8)) for name in names for at in range(0, min(size[name], 128), 5)]
    return random.sample(bits, len(bits) * SHARE // 100)


def flip(path, at, bit):
    with open(path, "r+b") as f:
        f.seek(at)
        byte = f.read(1)[0]
        f.seek(at)
        f.write(bytes([byte ^ 1 << bit]))


def look(made, name, at, bit):
    """Each thread has a copy of the folder of its own."""
    if getattr(local, "of", None) != made:
        local.of, local.copy = made, os.path.join(folder.name, f"copy_{threading.get_ident()}_{os.path.basename(made)}")
        shutil.copytree(made, local.copy)
    path = os.path.join(local.copy, name)
    flip(path, at, bit)
    status = run_mckpt("verify", local.copy, "-q", "-j1").returncode
    flip(path, at, bit)
    return status


def check(made):
    expect(run_mckpt("verify", made).returncode == 0, f"{made}: not sound as it was written")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        asked = [(bit, pool.submit(look, made, *bit)) for bit in bits_of(made)]
    for (name, at, bit), status in asked:
        expect(status.result() in (1, 3), f"{os.path.basename(made)}/{name}: bit {bit} of byte {at}: exit status {status.result()}")


checkpoint, exported = (os.path.join(folder.name, name) for name in ("ck", "hf"))
for command in (["convert", "hf-to-fsdp", MODEL, checkpoint, "--tp", "2", "--ep", "4", "--no-sync", "-q"],
                ["export", checkpoint, exported, "--max-shard-size", "6KB", "--no-sync", "-q"]):
    made = run_mckpt(*command)
    if not expect(made.returncode == 0, f"{command}: {made.stderr}"):
        finish(1)
check(os.path.join(checkpoint, "release"))
check(exported)
finish(10 * SHARE)
