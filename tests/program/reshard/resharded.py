"""convert reshard: from one grid to another it writes, byte for byte, what converting to the other at once writes; and chains of
random grids carry weights, optimizer states and objects of real runs without a changed bit.
"""

import collections
import filecmp
import json
import os
import random
import sys
import tempfile

from mckpt_tests.checks import expect_equal, fail, failures, in_parallel
from mckpt_tests.models import GOLDEN, Models
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA, SANITIZED

models = Models()
GRIDS = [
    "--tp 1 --dp 1",
    "--tp 2 --dp 1",
    "--tp 1 --dp 3",
    "--tp 2 --dp 2 --ep 4",
    "--tp 2 --cp 2 --ep 2",
    "--tp 4 --ep 2",
    "--ep 8 --dp 8",
    "--tp 2 --ep 2 --etp 2",
    "--dp 4 --hsdp 2 --hsdp-outer shard",
    "--tp 2 --dp 4 --hsdp 2 --hsdp-outer replicate",
    "--dp 5 --strategy optim",
]
PAIRS = 1 if SANITIZED else 4  # of grids, for each model
outcomes = collections.Counter()
random.seed(7)


def mckpt(*args, status=0):
    run = run_mckpt(*args, "-q")
    if status is not None and run.returncode != status:
        fail(f"{' '.join(args)}: {run.stdout}{run.stderr}")
    return run


def unlike(a, b):
    names = sorted(set(os.listdir(a)) | set(os.listdir(b)))
    return [
        n
        for n in names
        if n != "hf_assets"
        and not (
            os.path.exists(os.path.join(a, n))
            and os.path.exists(os.path.join(b, n))
            and filecmp.cmp(os.path.join(a, n), os.path.join(b, n), shallow=False)
        )
    ]


def words_of_args(grid):
    return [word for word in ("--strategy", "--hsdp ", "shard", "--cp") if word in grid]


def vocabulary(source):
    config = json.load(open(os.path.join(source, "config.json")))
    rows = config.get("vocab_size") or config["text_config"]["vocab_size"]
    return str(-(-rows // 8) * 8)


def from_grid_to_grid(model, first, second):
    source = models.path(model)
    with tempfile.TemporaryDirectory(prefix="mckpt_reshard_") as folder:
        a, b, ab = (os.path.join(folder, name) for name in ("a", "b", "ab"))
        convert = ["convert", "hf-to-fsdp", source]
        common = ["--no-sync", "--vocab-size", vocabulary(source), "--freeze", "none"]
        if any(mckpt(*convert, target, *common, *grid.split(), status=None).returncode for target, grid in ((a, first), (b, second))):
            outcomes["no such grid"] += 1
            return
        mckpt("convert", "reshard", a, ab, "--no-sync", "--freeze", "none", *second.split())
        outcomes["resharded"] += 1
        # The args keep the words of the first run; only the numbers of its grid are replaced.
        differ = unlike(os.path.join(b, "release"), os.path.join(ab, "release"))
        if words_of_args(first) == words_of_args(second) and differ:
            fail(f"{model} {first} -> {second}: {differ}")
        mckpt("verify", ab, "--against", b)
        mckpt("verify", b, "--against", a)  # item by item, also where fused tensors are stored rank after rank


def contents(folder):
    """Digests of all tensors, and the names of all objects."""
    listed = json.loads(mckpt("ls", folder, "--json", "--digest").stdout)
    seen = json.loads(mckpt("inspect", folder, "--json").stdout)
    return sorted((t["name"], t["dtype"], t["shape"], t["sha256"]) for t in listed["tensors"]), seen.get("objects")


def chain(start, assets, steps):
    with tempfile.TemporaryDirectory(prefix="mckpt_reshard_") as folder:
        want, at = contents(start), start
        for step in range(steps):
            grid = random.choice(
                [
                    "--dp 1",
                    "--dp 2",
                    "--dp 3",
                    "--dp 4 --hsdp 2",
                    "--dp 4 --hsdp 2 --hsdp-outer shard",
                    "--dp 7",
                    "--cp 2 --dp 2",
                    "--dp 2 --strategy optim",
                ]
            )
            to = os.path.join(folder, f"step{step}")
            mckpt("convert", "reshard", at, to, "--assets", assets, "--no-sync", *grid.split())
            at = to
            expect_equal(f"{start} step {step} {grid}", contents(at), want)
        mckpt("verify", at)
        outcomes["steps"] += steps


def main():
    pairs = [
        (model, first, second)
        for model in sorted(os.listdir(os.path.join(GOLDEN, "models")))
        for first, second in (random.sample(GRIDS, 2) for _ in range(PAIRS))
    ]
    in_parallel(from_grid_to_grid, pairs)
    chain(os.path.join(DATA, "dcp", "fsdp_dtensor_optim"), models.path("tiny_llama1"), 20)
    print(dict(outcomes))
    if outcomes["resharded"] < 15 * PAIRS:
        fail(f"only {outcomes}")
    sys.exit(1 if failures else 0)


main()
