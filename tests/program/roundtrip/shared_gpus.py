"""Grids of more ranks than there are GPUs: `mckpt roundtrip --device cuda` on 4 and 8 ranks that share what
is here, over the stand-in for NCCL. The saved files must be the files that `convert` writes, byte by byte."""

import os
import shutil
import subprocess
import sys
import tempfile

gpus = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True).stdout.count("GPU ") if shutil.which("nvidia-smi") else 0
if gpus == 0:
    print("skipped: no GPU is here")
    sys.exit(77)
from mckpt_tests.checks import expect, finish
from mckpt_tests.folders import difference
from mckpt_tests.models import Models
from mckpt_tests.setting import MCKPT, MPIRUN, built

GRIDS = {
    4: ["--tp 4 --ep 2", "--tp 2 --cp 2 --ep 2", "--tp 2 --ep 4", "--dp 4", "--dp 4 --hsdp 2"],
    8: ["--ep 8", "--tp 2 --ep 4 --dp 4", "--tp 4 --ep 2 --dp 2", "--tp 2 --cp 2 --ep 2 --dp 2", "--dp 8"],
}
FAMILIES = ["qwen3_dense", "qwen3_moe", "qwen3_5_moe", "nemotron_h", "nemotron_h_moe"]
environment = {**os.environ, "LD_PRELOAD": built("libnccl_stand_in.so"), "MCKPT_TEST_GPUS": str(gpus)}
models = Models()


def run(command, what, **more):
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=200, **more)
    return expect(done.returncode == 0, f"{what}: exit status {done.returncode}: {done.stdout[-600:]}{done.stderr[-600:]}")


def check(family, ranks, grid):
    what, source = f"{family}, {ranks} ranks, {grid}", models.path(family)
    flags = [*grid.split(), "--vocab-size", "auto", "--no-sync"]
    with tempfile.TemporaryDirectory(prefix="mckpt_shared_") as folder:
        saved, converted = os.path.join(folder, "saved"), os.path.join(folder, "converted")
        start = [MPIRUN, "-n", str(ranks), "--timeout", "150", MCKPT, "roundtrip", source, "--device", "cuda", "--checkpoint", saved]
        if run([*start, *flags], what, env=environment) and run(
            [MCKPT, "convert", "hf-to-fsdp", source, converted, *flags, "--params-dtype", "auto", "--dtype", "fp32"], what
        ):
            expect(difference(saved, converted) == "", f"{what}: saved is not what is converted: {difference(saved, converted)}")


for family in FAMILIES:
    for ranks, grids in GRIDS.items():
        for grid in grids:
            check(family, ranks, grid)
finish(3 * 10 * len(FAMILIES))
