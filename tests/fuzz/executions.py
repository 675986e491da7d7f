#!/usr/bin/env python3
"""How many inputs each fuzz target executes in the time that it has, and what they find.

usage: executions.py [--programs FOLDER] [--work FOLDER] [--targets NAME,...] [--processes N] [--minutes M] [--millions N] [--first N]
                     [--so-far FILE]

Each target is run by N processes at a time (one for each processor), which share the corpus: what one finds, the others go on from. They differ
in how long inputs may be, since most is reached by short ones, which take a fifth of the time of long ones. --programs: where NAME_fuzz are
(build/fuzz/fuzz); they need no clang, so that they can be carried to another machine. --work: seeds, corpus, logs, and inputs that fail
(build/fuzz/corpus). --minutes: for all targets together, which share the time alike. --first: the first number from which processes draw, so that a second
run makes other inputs. --so-far: a file that keeps what each program executed, by its SHA-256, so that runs of one build add up: a run then does what is
left of what is asked, from numbers that no run before it drew from, and figures are of all runs. Under scripts/trust the part has a time of its own.
Leaks are looked for by tests/fuzz/run alone."""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from mckpt_tests.checks import expect, finish, skip  # noqa: E402
from mckpt_tests.figures import END, so_many, tell  # noqa: E402

import targets  # noqa: E402

MILLIONS = {"safetensors": 100, "json": 100, "zip": 100, "pickle": 100}  # 20 for all others
# Of the first, second, ... process: how long its inputs are at most, and how many it executes in the time of one of the last.
LENGTHS = ((128, 8), (256, 7), (512, 5), (4096, 2))
# Options for speed; without them short inputs take two to three times as long. They leave out stacks of allocations (a finding is run again by hand), a
# large quarantine (freed memory is used again after 1 MiB, which is many inputs), a pattern in new memory, energies of the corpus, the search for
# shorter inputs that reach the same, and leaks. The limit of time is longer, since the clock also counts while a busy machine lets a process wait.
QUICK = ["-entropic=0", "-reduce_inputs=0", "-detect_leaks=0", "-reload=10", "-timeout=60"]
QUICK_ASAN = "malloc_context_size=0:max_malloc_fill_size=0:quarantine_size_mb=1:thread_local_quarantine_size_kb=64"


def parse():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("--programs", default=targets.PROGRAMS)
    parser.add_argument("--work", default=targets.WORK)
    parser.add_argument("--targets", type=lambda s: s.split(","))
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--millions", type=float)
    parser.add_argument("--first", type=int)
    parser.add_argument("--so-far")
    return parser.parse_args()


class SoFar:
    """The counts of each program in all runs that share the file; in this run alone where there is none."""

    def __init__(self, path):
        self.path, self.programs = path, {}
        if path and os.path.exists(path):
            with open(path) as f:
                self.programs = json.load(f)

    def of(self, program):
        with open(program, "rb") as f:
            key = hashlib.sha256(f.read()).hexdigest()
        return self.programs.setdefault(key, {"target": os.path.basename(program), "runs": 0, "executed": 0, "findings": 0, "seconds": 0, "next": 1})

    def keep(self):
        if self.path:
            with open(self.path + ".new", "w") as f:
                json.dump(self.programs, f, indent=1)
            os.replace(self.path + ".new", self.path)


def seconds_for(args, begin, left):
    """An equal share of the time that is left, for one of `left` targets."""
    if args.minutes:
        return max(5, int((begin + 60 * args.minutes - time.time()) / left))
    return so_many(60, 5) if END == float("inf") else max(5, int((END - time.time()) / left))


def run(args, target, first, asked, seconds):
    """Runs the processes of one target: how many inputs all executed, and the ends of the logs of those that found something."""
    targets.prepare(target, args.work)
    kinds = [LENGTHS[i % len(LENGTHS)] for i in range(args.processes)]
    share = asked / sum(weight for _, weight in kinds)
    running = []
    for i, (most_bytes, weight) in enumerate(kinds):
        log = os.path.join(args.work, target, f"process_{i}.log")
        options = [f"-seed={first + i}", f"-runs={int(share * weight) + 1}", f"-max_total_time={seconds}", f"-max_len={most_bytes}", *QUICK]
        command = targets.command(target, options, args.programs, args.work)
        with open(log, "w") as out:
            running.append((log, subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                                  env={**os.environ, "ASAN_OPTIONS": QUICK_ASAN})))
    executed, found = 0, []
    for log, process in running:
        status = process.wait()
        with open(log, errors="replace") as f:
            text = f.read()
        done = re.search(r"number_of_executed_units: *(\d+)", text)
        executed += int(done[1]) if done else 0
        if status != 0:
            found.append(text[-2000:])
    return executed, found


def main():
    args = parse()
    names = args.targets or targets.targets(args.programs)
    if not names:
        skip("the fuzz targets are not built: cmake --preset fuzz && cmake --build --preset fuzz")
    start, so_far = time.time(), SoFar(args.so_far)
    for i, target in enumerate(names):
        asked, begin = int((args.millions or MILLIONS.get(target, 20)) * 1_000_000), time.time()
        sums = so_far.of(os.path.join(args.programs, target + "_fuzz"))
        first = args.first or sums["next"]
        if first < sums["next"]:
            sys.exit(f"{args.so_far}: {target}: numbers up to {sums['next'] - 1} were drawn from before; --first {sums['next']} makes other inputs")
        found = []
        if sums["executed"] < asked:
            executed, found = run(args, target, first, asked - sums["executed"], seconds_for(args, start, len(names) - i))
            for name, more in (("runs", 1), ("executed", executed), ("findings", len(found)), ("seconds", round(time.time() - begin, 1))):
                sums[name] += more
            sums["next"] = first + args.processes
            so_far.keep()
        expect(not sums["findings"], f"{target}: {sums['findings']} findings{': ' + found[0] if found else ', all in earlier runs'}")
        words = (f" in {sums['runs']} runs" if sums["runs"] > 1 else "") + (f", {sums['findings']} FINDINGS" if sums["findings"] else ", no finding")
        for promise in ("P4", "P5") if target == "json" else ("P4",):
            tell(promise, f"inputs of fuzz target `{target}`", f"{asked:,}", f"{sums['executed']:,}{words}", not sums["findings"] and sums["executed"] >= asked,
                 sums["seconds"])
    finish(len(names))


main()
