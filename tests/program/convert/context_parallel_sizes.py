"""Context-parallel sizes that Megatron refuses for models with gated delta nets or Mamba mixers are refused by every
command that takes a grid, before anything is written.
"""

import os
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.models import Models
from mckpt_tests.program import run_mckpt

models = Models()
folder = tempfile.TemporaryDirectory(prefix="mckpt_cp_")


def ends(status, *args, word=""):
    run = run_mckpt(*args, timeout=60)
    expect(run.returncode == status, f"{args}: exit status {run.returncode}, not {status}: {run.stderr[-500:]}")
    expect(word in run.stderr, f"{args}: nothing of '{word}': {run.stderr[-500:]}")


# 4 key heads and 8 value heads; 8 heads in 4 groups.
for name, good, bad in (
    ("qwen3_5", [(1, 2), (2, 2), (1, 4)], [(1, 3), (2, 4), (1, 8), (4, 2)]),
    ("nemotron_h", [(1, 2), (1, 8), (2, 4)], [(1, 3), (2, 8), (4, 4)]),
):
    model, made = models.path(name), os.path.join(folder.name, name)
    ends(0, "convert", "hf-to-fsdp", model, made, "--vocab-size", 528, "--no-sync")
    out = os.path.join(folder.name, "out")
    commands = (
        ["convert", "hf-to-fsdp", model, out, "--vocab-size", "auto", "-n"],
        ["convert", "reshard", made, out, "-n"],
        ["ls", model, "--as", "fsdp", "--vocab-size", "auto"],
        ["ls", model, "--as", "megatron", "--vocab-size", "auto"],
    )
    for command in commands:
        for tp, cp in good:
            ends(0, *command, "--tp", tp, "--cp", cp)
        for tp, cp in bad:
            ends(4, *command, "--tp", tp, "--cp", cp, word="MC2007")
    # Who reads what a checkpoint of any run holds is not concerned.
    ends(0, "export", made, os.path.join(folder.name, f"{name}_back"), "--no-sync")
ends(0, "convert", "hf-to-fsdp", models.path("llama3"), os.path.join(folder.name, "llama"), "--cp", 7, "--vocab-size", "auto", "--no-sync")
finish(114)
