"""A hybrid model in groups, through a checkpoint and back: what is saved names the pattern that it is of, is sound, and
is read again by commands that know nothing of the round trip.
"""
import json
import os
import re
import subprocess
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.models import Models, hybrid_with_mtp
from mckpt_tests.setting import MCKPT, MPIRUN

models = Models()


def mckpt(*args, ranks=1):
    start = [MPIRUN, "-n", str(ranks), "--timeout", "100"] if ranks > 1 else []
    return subprocess.run([*start, MCKPT, *map(str, args)], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)


def done(what, *args, ranks=1, status=0):
    run = mckpt(*args, ranks=ranks)
    expect(run.returncode == status, f"{what}: exit status {run.returncode}, not {status}: {run.stdout[-600:]}{run.stderr[-600:]}")
    return run


def check_answer(pattern, told, flags):
    """Everything as often as was asked for; with groups as units, a sharded module for each group."""
    times, names = (flags[flags.index("--repeat") + 1] if "--repeat" in flags else 1), [p["name"] for p in told["phases"]]
    want = ["load"] * times + ["unshard"] * times + ["check"] + ["save", "reload"] * times + ["export", "compare"]
    expect(names == want, f"{pattern}: phases {names}")
    if "HybridStack" not in flags:
        return
    items = re.findall(r"\[.*?\]|.", pattern.split("/")[0])
    groups = [f"decoder.layers.{i}" for i, item in enumerate(items) if item[0] == "["]
    expect(sorted({g["module"] for g in told["groups"]}) == [*groups, "model"], f"{pattern}: sharded {told['groups']}")


def check(model, pattern, *flags, ranks=1):
    with tempfile.TemporaryDirectory(prefix="mckpt_grouped_") as scratch:
        saved, back, flat = (os.path.join(scratch, name) for name in ("saved", "back", "flat"))
        run = done(pattern, "roundtrip", model, "--hybrid-pattern", pattern, "--checkpoint", saved, "--no-sync", "--json", *flags, ranks=ranks)
        check_answer(pattern, json.loads(run.stdout), flags)
        done(f"{pattern}: verify", "verify", saved)
        told = json.loads(done(f"{pattern}: inspect", "inspect", saved, "--args", "--json").stdout)
        args = json.dumps(told)
        expect(json.dumps(pattern)[1:-1] in args, f"{pattern}: the args have another pattern")
        done(f"{pattern}: export", "export", saved, back, "--no-sync")
        done(f"{pattern}: back", "verify", back, "--against", model)
        done(f"{pattern}: ungroup", "convert", "ungroup", saved, flat, "--no-sync")


PATTERNS = ("[M-]M[*-]", "M[-M][*-]", "[M-][M*-]", "[M-]M*-", "M-M[*-]", "M-[M*-]", "[M-M*-]")
hybrid = models.path("nemotron_h")
for pattern in PATTERNS:
    check(hybrid, pattern)
with tempfile.TemporaryDirectory(prefix="mckpt_mtp_") as scratch:
    mtp = hybrid_with_mtp(os.path.join(scratch, "mtp"))
    check(mtp, "[ME][*M]E/*E")
    # Groups as units over two ranks: each is gathered while the one before computes, saved and loaded twice.
    for model, pattern in [(hybrid, p) for p in PATTERNS] + [(mtp, p) for p in ("[ME][*M]E/*E", "[ME][*ME]/*E")]:
        check(model, pattern, "--fsdp-unit", "HybridStack", "--repeat", 2, ranks=2)
    run = done("no MTP part", "roundtrip", mtp, "--hybrid-pattern", "[ME][*M]E", status=2)
    expect("ME*ME/*E, with brackets" in run.stderr, f"what is missing is named: {run.stderr}")
finish(140)
