"""The families of golden/families on the five grids through the program: `convert hf-to-fsdp`, `verify`, `verify --against`,
`export`, whose file is the source's byte by byte, `convert reshard` to one rank, `convert to-mcore` and the exports of both; and
on one of the grids each, in turn, `roundtrip` of the live model over eight ranks. A model that none of the grids can hold takes the same way on
one rank. unit/convert/run/family_round_trips has the conversions in one process, unit/live/model/round_trip the live models; this is the long form.
"""

import os
import shutil
import subprocess
import sys
import tempfile

from mckpt_tests.checks import fail, failures, in_parallel
from mckpt_tests.models import Models
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import MCKPT, MPIRUN

GRIDS = {"tp2 ep4": "--tp 2 --ep 4 --dp 4", "ep8": "--ep 8 --dp 8", "tp2": "--tp 2 --dp 4", "tp4 ep2": "--tp 4 --ep 2 --dp 2",
         "tp2 cp2 ep2": "--tp 2 --cp 2 --ep 2 --dp 2"}
ALONE = {"one rank": "--tp 1 --dp 1"}  # no shard begins inside a row of a parameter here
# Refusals of such grids, or of models that Megatron-FSDP cannot hold (family_round_trips_test.cc counts
# them).
REFUSALS = ("MC0203", "MC0204", "MC2007")
models = Models("families")
scratch = tempfile.TemporaryDirectory(prefix="mckpt_every_family_")
outcomes = {}


def run(what, *args, may=()):
    """Whether the command ended well; one that is refused with a code of `may` is none."""
    done = run_mckpt(*args, "-q", "-j1", timeout=100)
    if done.returncode == 0:
        return True
    if not any(f"error[{code}]" in done.stderr for code in may):
        fail(f"{what}: {' '.join(map(str, args[:2]))}: exit status {done.returncode}: {done.stderr[:400]}")
    return False


def same(what, folder, source):
    with open(os.path.join(folder, "model.safetensors"), "rb") as a, open(os.path.join(source, "model.safetensors"), "rb") as b:
        if a.read() != b.read():
            fail(f"{what}: the export is not the source")


def check(model, grid, live):
    what, source = f"{model} {grid}", models.path(model)
    folder = tempfile.mkdtemp(dir=scratch.name)
    at = {name: os.path.join(folder, name) for name in ("ckpt", "back", "alone", "alone_back", "mcore", "mcore_back", "live")}
    flags = {**GRIDS, **ALONE}[grid].split()
    outcomes[model, grid] = "refused"
    if run(what, "convert", "hf-to-fsdp", source, at["ckpt"], *flags, "--vocab-size", "auto", "--no-sync", may=REFUSALS):
        outcomes[model, grid] = "equal"
        run(what, "verify", at["ckpt"])
        run(what, "verify", at["ckpt"], "--against", source)
        if run(what, "export", at["ckpt"], at["back"], "--no-sync"):
            same(what, at["back"], source)
            run(what, "verify", at["back"], "--against", at["ckpt"])
        if run(what, "convert", "reshard", at["ckpt"], at["alone"], "--tp", 1, "--dp", 1, "--no-sync"):
            run(what, "export", at["alone"], at["alone_back"], "--no-sync") and same(f"{what}, resharded", at["alone_back"], source)
        if run(what, "convert", "to-mcore", source, at["mcore"], *flags, "--vocab-size", "auto", "--no-sync", may=REFUSALS):
            run(what, "export", at["mcore"], at["mcore_back"], "--no-sync") and same(f"{what}, torch_dist", at["mcore_back"], source)
        if live:
            ranks = "1" if grid in ALONE else "8"
            done = subprocess.run([MPIRUN, "-n", ranks, "--timeout", "200", MCKPT, "roundtrip", source, *flags, "--output", at["live"], "--no-sync", "-q"],
                                  capture_output=True, text=True, timeout=260, stdin=subprocess.DEVNULL)
            if done.returncode != 0:
                fail(f"{what}: roundtrip: exit status {done.returncode}: {done.stdout[-300:]}{done.stderr[-400:]}")
            elif run(f"{what}, live", "verify", at["live"], "--against", source):  # its files have another order of tensors
                outcomes[model, grid] += ", live"
    shutil.rmtree(folder)


names = sorted(os.listdir(models.root.name))
only = sys.argv[1:] or names
in_parallel(check, [(model, grid, False) for model in only for grid in GRIDS])
refused = [model for model in only if all(outcomes[model, grid] == "refused" for grid in GRIDS)]
in_parallel(check, [(model, grid, False) for model in refused for grid in ALONE])
for number, model in enumerate(only):  # eight processes each: one after the other
    for grid in [*GRIDS, *GRIDS][number % 5 : number % 5 + 5] + [*ALONE]:
        if outcomes.get((model, grid)) == "equal":
            check(model, grid, True)
            break
counts = {word: sum(o == word for o in outcomes.values()) for word in ("equal", "equal, live", "refused")}
print(f"{len(only)} models, {len(GRIDS)} grids: {counts}, {len(failures)} failures; on one rank: {', '.join(refused)}")
sys.exit(1 if failures or counts["equal, live"] != len(only) else 0)
