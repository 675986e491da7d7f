"""The same conversion, and the way back, give the same bytes with any number of threads, under any bound of memory and as
any number of ranks; with tensors that are larger than what the engine takes at a time.
"""
import json
import os
import shutil

from mckpt_tests.checks import expect, finish
from mckpt_tests.folders import difference, scratch
from mckpt_tests.models import make_model
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import HAS_MPI

folder = scratch()
DENSE = dict(layers=2, hidden=512, heads=8, kv=4, head_dim=64, ffn=1536, vocab=8192, shard_bytes=9_000_000)
HUB = dict(layers=2, hidden=256, heads=8, kv=4, head_dim=32, vocab=4096, experts=8, moe_ffn=640, hub=True)
APART = dict(layers=2, hidden=256, heads=8, kv=4, head_dim=32, vocab=4096, experts=8, moe_ffn=320)
CASES = [
    ("dense", DENSE, "--tp 2"),
    ("dense", DENSE, "--dp 3 --strategy optim_grads"),
    ("hub", HUB, "--tp 2 --ep 2 --dp 2"),  # which are turned
    ("apart", APART, "--tp 2 --etp 2 --ep 2 --dp 2 --dtype fp32"),
]
WAYS = [("-j2", ["-j2"], 1), ("-j7", ["-j7"], 1), ("little memory", ["-j3", "--max-memory", "1MiB"], 1)]
if HAS_MPI:
    WAYS += [(f"{n} ranks", ["-j1"], n) for n in (2, 3, 5)]


def path(name):
    return os.path.join(folder.name, name)


def every_way(what, command, source, target, options):
    """Carries it out in every way, compares, and leaves the first result."""
    first = run_mckpt(*command, source, path(target), "-j1", "--no-sync", "--json", *options)
    if not expect(first.returncode == 0, f"{what}: {first.stderr}"):
        return
    for way, flags, ranks in WAYS:
        again = path(target + "_again")
        result = run_mckpt(*command, source, again, "--no-sync", "--json", *flags, *options, ranks=ranks)
        if expect(result.returncode == 0, f"{what}, {way}: exit status {result.returncode}: {result.stderr[-500:]}"):
            expect(difference(path(target), again) == "", f"{what}, {way}: {difference(path(target), again)}")
            lines = result.stdout.splitlines()
            expect(len(lines) == 1 and json.loads(lines[0])["bytes"] == json.loads(first.stdout)["bytes"], f"{what}, {way}: {lines}")
            expect(result.stderr.count("plan    ") == 1, f"{what}, {way}: the plan is not told once")
        shutil.rmtree(again, ignore_errors=True)


models = {}
for model, sizes, grid in CASES:
    if model not in models:
        models[model] = make_model(path(model), **sizes)
    what = f"{model} {grid}"
    layout = ["--expert-layout", "hub"] if model == "hub" else []
    every_way(what, ["convert", "hf-to-fsdp"], models[model], "checkpoint", [*grid.split(), *layout])
    every_way(f"{what}, export", ["export"], path("checkpoint"), "back", ["--max-shard-size", "9MB", *layout])
    equal = run_mckpt("verify", path("back"), "--against", models[model], *layout)
    expect(equal.returncode == 0, f"{what}: what comes back is not the model: {equal.stderr} {equal.stdout}")
    for made in ("checkpoint", "back"):
        shutil.rmtree(path(made), ignore_errors=True)
finish(len(CASES) * 2 * (1 + 3 * len(WAYS)))
