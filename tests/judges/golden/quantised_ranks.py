"""A release with INT4 experts, as the ranks of a real run held it: each value of the codes in bf16, on the rank and under the name
that Megatron-Bridge gave it. Such a model goes to files of ranks and to safetensors of its values, and its codes come back.
"""
import hashlib
import json
import os
import tempfile

from mckpt_tests.checks import expect, expect_equal, finish
from mckpt_tests.folders import safetensors
from mckpt_tests.golden import listing
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

MODEL = os.path.join(DATA, "quantized", "kimi_k25_int4")
DIGITS = 16


def golden_ranks():
    """The lines of each rank: name, type, shape, mark, digest (test_data/golden/README.md has the form of the file)."""
    lines, ranks, grid = [], [], []
    with open(MODEL + ".ranks.txt") as f:
        for line in f.read().splitlines():
            if line.startswith("run "):
                grid = line.split()[1:]
            elif line.startswith("rank "):
                spans = [span.split("-") for span in line.split()[1:]]
                ranks.append([n for span in spans for n in range(int(span[0]), int(span[-1]) + 1)])
            else:
                lines.append(line.split())
    return grid, [[lines[n] for n in rank] for rank in ranks]


def row(name, dtype, shape, digest):
    return f"{name} {dtype} {shape or '-'} {digest[:DIGITS]}"


def done(*args):
    run = run_mckpt(*args, "--no-sync", "-q", timeout=120)
    return expect(run.returncode == 0, f"{' '.join(args)}: {run.stdout}{run.stderr}")


grid, ranks = golden_ranks()
for number, lines in enumerate(ranks):
    rows = listing(MODEL, "--as", "megatron", "--rank", number, *[f"--{part}" for part in grid])
    if not expect(isinstance(rows, list), f"rank {number}: {rows}"):
        continue
    got = [row(r["name"], r["dtype"], "x".join(map(str, r["shape"])), r["sha256"]) for r in rows]
    want = [row(name, dtype, shape, digest) for name, dtype, shape, _, digest in lines]
    order = [[line for line in side if ".expert_bias " not in line] for side in (got, want)]
    expect_equal(f"rank {number}", *order)
    expect_equal(f"rank {number} buffers", *(sorted(set(side) - set(front)) for side, front in zip((got, want), order)))

with tempfile.TemporaryDirectory(prefix="mckpt_int4_") as scratch:
    values, ranks_of, back, codes = (os.path.join(scratch, name) for name in ("values", "ranks", "back", "codes"))
    for command in (("convert", "dequantize", MODEL, values), ("convert", "to-pt", MODEL, ranks_of, "--tp", "2", "--ep", "2", "--dp", "2"),
                    ("export", ranks_of, back), ("convert", "quantize", back, codes, "--scheme", "like-source", "--like", MODEL)):
        done(*command)
    mine, theirs = (safetensors(folder) if os.path.isdir(folder) else {} for folder in (back, values))
    expect_equal("values", sorted(mine), sorted(theirs))
    expect_equal("values", [hashlib.sha256(mine[n][2]).hexdigest() for n in sorted(mine)], [hashlib.sha256(theirs[n][2]).hexdigest() for n in sorted(theirs)])
    mine, theirs = (safetensors(folder) if os.path.isdir(folder) else {} for folder in (codes, MODEL))
    expect_equal("codes", sorted((n, t, tuple(s), hashlib.sha256(d).hexdigest()) for n, (t, s, d) in mine.items()),
                 sorted((n, t, tuple(s), hashlib.sha256(d).hexdigest()) for n, (t, s, d) in theirs.items()))
finish(400)
