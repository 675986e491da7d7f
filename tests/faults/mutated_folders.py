#!/usr/bin/env python3
"""Whole checkpoints of every format, with edits: nothing ends by a signal, hangs, or is an internal error; and what `verify` calls sound is converted.
A conversion that refuses such a checkpoint must not mean damage: mckpt_tests/mutated_folders.py has the codes that do not, each with its reason.

usage: mutated_folders.py [--cases N] [--minutes M] [--processes N] [--only REGEX] [--first N] [--keep FOLDER]

A sample in scripts/test, a hundred thousand under scripts/trust. There is no feedback of coverage: edits are drawn, and what is sound after them is
edited again. $MCKPT_LIBRARY: another libmckpt.so. In preset asan the library has sanitizers, and Python loads their runtime first. --first: the first batch of 500 cases; others make
other ones. --keep: where cases that fail are left."""

import argparse
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from mckpt_tests import mutated, mutated_folders  # noqa: E402
from mckpt_tests.checks import expect, finish, skip  # noqa: E402
from mckpt_tests.figures import END, so_many, tell  # noqa: E402
from mckpt_tests.mutated_runs import Runs, one_of_each  # noqa: E402
from mckpt_tests.setting import SANITIZED  # noqa: E402

COUNTED = ("sound and converted", "not sound and refused", "sound, refused for another reason than damage", "converted, not sound")


def parse():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("--cases", type=int, default=so_many(100_000, 400))
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--only", default="")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--keep", default="")
    return parser.parse_args()


def report(args, unexplained):
    for i, (what, case, count) in enumerate(one_of_each(unexplained)):
        if args.keep:
            case.write(os.path.join(args.keep, f"{i:03}"))
            with open(os.path.join(args.keep, f"{i:03}.txt"), "w") as f:
                f.write(f"{what}\n{case.conversions[case.number % len(case.conversions)]}\n")
        expect(False, f"{i:03}, {count} cases: {what[:700]}")


def with_sanitizers():
    """Starts this program anew with the sanitizers' runtime in front of everything."""
    runtime = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True).stdout.strip()
    if not os.path.isabs(runtime):
        skip("gcc has no libasan.so for Python to load first")
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "LD_PRELOAD": os.path.realpath(runtime), "ASAN_OPTIONS": "detect_leaks=0"})


def main():
    args = parse()
    if SANITIZED and "LD_PRELOAD" not in os.environ:
        with_sanitizers()
    if not os.path.exists(mutated.MUTATORS) or not os.path.exists(os.environ.get("MCKPT_LIBRARY") or os.path.join(mutated.BUILD, "libmckpt.so")):
        skip("the library or the mutators are not built: cmake --build build --target mckpt_api mutators")
    start = time.time()
    folder = tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    try:
        seeds = [seed for seed in mutated_folders.make_seeds() if re.search(args.only, seed.name)]
        expect(args.only or len(seeds) >= 30, f"only {len(seeds)} seeds: {[seed.name for seed in seeds]}")
        with open(os.path.join(folder, "seeds"), "wb") as f:
            pickle.dump(seeds, f)
        os.environ[mutated_folders.SEEDS] = os.path.join(folder, "seeds")
        runs = Runs("mckpt_tests.mutated_folders", "Folders", args.processes, folder)
        runs.run(args.cases, min(start + 60 * args.minutes, END), args.first)
    finally:
        shutil.rmtree(folder)
    report(args, runs.unexplained)
    for fault in runs.faults:
        expect(False, fault)
    for name in COUNTED:
        print(f"  {runs.counts[name]:9,}  {name}")
    expect(min(runs.counts[name] for name in COUNTED[:2]) > runs.looked_at / 50, f"one-sided: {dict(runs.counts)}")
    reached = f"{runs.looked_at:,} of {len(seeds)} seeds, " + ", ".join(f"{runs.counts[name]:,} {name}" for name in COUNTED)
    for promise in ("P4", "P5"):
        tell(promise, "whole checkpoints with edits: opened, verified, converted", f"{args.cases:,}", reached,
             not runs.unexplained and not runs.faults and runs.looked_at >= args.cases, time.time() - start)
    finish(2)


if __name__ == "__main__":
    main()
