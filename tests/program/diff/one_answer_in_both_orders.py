"""Checkpoints of one run in every format, with its optimizer and without: `diff` says the same in both orders, also what a conversion into the format of one
side would leave out. `verify --against` takes what the conversion leaves out, and the iteration that it writes."""
import itertools
import json
import os
import tarfile
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

MIRROR = {"only_a": "only_b", "only_b": "only_a"}
# Name, source and conversion of each, and how many states of the optimizer it has. to-mcore makes main weights beside the moments.
MADE = (("ranks", "run", ("reshard", "--tp", "1", "--weights-only"), 0), ("released", "dist", ("to-pt", "--tp", "1"), 0),
        ("later", "dist", ("to-pt", "--tp", "1", "--iteration", "7"), 0), ("v2", "dist", ("to-fsdp", "--engine", "v2", "--dp", "1"), 76),
        ("fsdp", "run", ("to-fsdp", "--dp", "2"), 76), ("weights", "run", ("to-fsdp", "--dp", "2", "--weights-only"), 0),
        ("core", "run", ("to-mcore", "--tp", "2"), 114), ("core_weights", "dist", ("to-mcore", "--tp", "2", "--weights-only"), 0))


def rows_of(told, turned):
    """The rows without hints, as the answer of the other order has them if `turned`."""
    out = set()
    for row in told["rows"]:
        a, b, kind = row.get("a"), row.get("b"), row["kind"]
        out.add((MIRROR.get(kind, kind), row["name"], row.get("at"), b, a) if turned else (kind, row["name"], row.get("at"), a, b))
    return out


def made(scratch):
    with tarfile.open(os.path.join(DATA, "megatron_runs", "chunks.tar.xz")) as archive:
        archive.extractall(scratch, filter="data")
    base = os.path.join(scratch, "chunks")
    kinds = {"run": (os.path.join(base, "iter_0000003"), 76), "dist": (os.path.join(base, "torch_dist", "iter_0000003"), 76)}
    for name, source, (mode, *words), states in MADE:
        out = os.path.join(scratch, name)
        run = run_mckpt("convert", mode, kinds[source][0], out, *words, "--assets", os.path.join(base, "hf"), "-q", "--no-sync")
        expect(run.returncode == 0, f"{name}: {run.stderr}")
        kinds[name] = (os.path.join(out, run.stdout.strip().rsplit("/", 1)[-1]), states)
        against = run_mckpt("verify", out, "--against", kinds[source][0], *(["--weights-only"] if "--weights-only" in words else []))
        expect(against.returncode == 0 and against.stdout.rstrip().endswith(": equal"), f"{name}: {against.stdout} {against.stderr}")
    return kinds


def check_pair(one, other, kinds, config):
    (a, a_states), (b, b_states) = kinds[one], kinds[other]
    words = ["--assets", config] if {one, other} == {"run", "dist"} else []  # which came without the config of their model
    ends = [run_mckpt("diff", x, y, "--json", *words) for x, y in ((a, b), (b, a))]
    told = [json.loads(e.stdout) for e in ends]
    here, there = rows_of(told[0], False), rows_of(told[1], True)
    expect(ends[0].returncode == ends[1].returncode, f"{one} {other}: {[e.returncode for e in ends]}")
    expect(here == there, f"{one} {other}: {sorted(here ^ there, key=str)[:6]}")
    for key in ("equal", "alike", "tensors", "bit_equal", "differ"):
        expect(told[0][key] == told[1][key], f"{one} {other}: {key}: {[t[key] for t in told]}")
    expect(told[0]["differ"] == abs(a_states - b_states), f"{one} {other}: {told[0]['differ']} tensors differ")
    expect(a_states == b_states or not (told[0]["equal"] or told[0]["alike"]), f"{one} {other}: the states of one side")


with tempfile.TemporaryDirectory() as scratch:
    kinds = made(scratch)
    for pair in itertools.combinations(kinds, 2):
        check_pair(*pair, kinds, os.path.join(scratch, "chunks", "hf"))
finish(421)
