#!/usr/bin/env python3
"""Mutated files, read by mckpt and by a reference library in the same process: safetensors files by `safetensors`, files of torch.save by
torch.load(weights_only=True). Both take a file or both refuse it, and both see the same tensors, except for what a rule of
mckpt_tests/reference_rules.py explains. Whatever no rule explains fails.

usage: mutated_files.py [--only safetensors,torch] [--files N] [--minutes M] [--processes N] [--first N] [--keep FOLDER]

In scripts/test a sample; a million files of each under scripts/trust. --first: the first batch of 500 files; others make other files. --keep: where files that no rule explains are left. Where nothing is built,
$MCKPT_LIBRARY and $MCKPT_MUTATORS name the libraries that were brought along."""

import argparse
import os
import shutil
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from mckpt_tests.checks import expect, finish, need, skip  # noqa: E402

need("safetensors", "torch")
from mckpt_tests import mutated, reference_rules  # noqa: E402
from mckpt_tests.figures import END, so_many, tell  # noqa: E402
from mckpt_tests.mutated_runs import BATCH, THEIRS, Runs, one_of_each  # noqa: E402

# For each processor: mckpt waits a tick of the file system before it reads a file that was written just now, and takes a millisecond to read it.
PROCESSES = 12
KINDS = {"safetensors": reference_rules.Safetensors, "torch": reference_rules.Torch}


def parse():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("--only", type=lambda s: s.split(","), default=list(KINDS))
    parser.add_argument("--files", type=int, default=so_many(1_000_000, 3000))
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--processes", type=int, default=PROCESSES * os.cpu_count())
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--keep", default="")
    return parser.parse_args()


def report(args, name, suffix, unexplained):
    for i, (what, data, count) in enumerate(one_of_each(unexplained)):
        if args.keep:
            os.makedirs(args.keep, exist_ok=True)
            with open(os.path.join(args.keep, f"{name}_{i:03}{suffix}"), "wb") as f:
                f.write(data)
        expect(False, f"{name}_{i:03}, {count} files: {what[:600]}" + ("" if args.keep else f": {data[:300]!r}"))


def compare(args, name, folder, stop):
    kind, begin = KINDS[name], time.time()
    runs = Runs("mckpt_tests.reference_rules", kind.__name__, min(args.processes, -(-args.files // BATCH)), folder)
    runs.run(args.files, stop, args.first)
    report(args, name, kind.suffix, runs.unexplained)
    for fault in runs.faults:
        expect(False, f"{name}: {fault}")
    for rule in kind.rules:
        print(f"  {runs.counts[rule.name]:9,}  {rule.name}: {rule.why}")
    both, explained = runs.counts["good"], sum(runs.counts[rule.name] for rule in kind.rules)
    expect(both > runs.looked_at / 50, f"{name}: both accept only {both} of {runs.looked_at}")
    reached = f"{runs.looked_at:,}: both accept {both:,}, {explained:,} differences by rule, {runs.counts['unexplained']:,} by none"
    if runs.died[THEIRS]:
        reached += f"; the reference ended by a signal at {runs.died[THEIRS]:,}"
    good = not runs.unexplained and not runs.faults
    tell("P5", f"mutated files against {kind.reference}", f"{args.files:,}", reached, good and runs.looked_at >= args.files, time.time() - begin)


def main():
    args = parse()
    if not os.path.exists(mutated.MUTATORS):
        skip("the mutators are not built: cmake --build build --target mutators")
    folder = tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    end = min(time.time() + 60 * args.minutes, END)
    try:
        for i, name in enumerate(args.only):
            compare(args, name, folder, time.time() + (end - time.time()) / (len(args.only) - i))
    finally:
        shutil.rmtree(folder)
    finish(len(args.only))


if __name__ == "__main__":
    main()
