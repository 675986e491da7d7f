#!/usr/bin/env python3
"""Runs of one fuzz program add up in the file that --so-far names: a run does what is left, from numbers that no run before it drew from;
another program begins anew, and a finding of any run stays."""
import json
import os
import re
import subprocess
import sys
import tempfile

from mckpt_tests.checks import expect, expect_equal, finish
from mckpt_tests.setting import SOURCE

SCRIPT = os.path.join(SOURCE, "tests", "fuzz", "executions.py")
# Executes 500 inputs, and says from which number it draws and how many it is asked for.
PROGRAM = """#!/bin/sh
# {}
for word; do case $word in -runs=*) runs=${{word#-runs=}} ;; -seed=*) seed=${{word#-seed=}} ;; esac; done
echo $seed $runs >>{}
echo "stat::number_of_executed_units: 500"
exit {}
"""


def main(folder):
    programs, drawn, kept = os.path.join(folder, "programs"), os.path.join(folder, "drawn"), os.path.join(folder, "so_far.json")
    os.mkdir(programs)

    def build(version, status=0):
        path = os.path.join(programs, "zip_fuzz")
        with open(path, "w") as f:
            f.write(PROGRAM.format(version, drawn, status))
        os.chmod(path, 0o755)

    def run(*arguments):
        """The words of the row, the status, the numbers that were drawn from, and about how many inputs were asked for."""
        open(drawn, "w").close()
        done = subprocess.run([sys.executable, SCRIPT, "--programs", programs, "--work", os.path.join(folder, "work"), "--targets", "zip", "--processes", "2",
                               "--minutes", "1", "--millions", "0.004", "--so-far", kept, *arguments], text=True, capture_output=True,
                              env={**os.environ, "MCKPT_FIGURES": ""})
        row = re.search(r"`zip`: (.*) \(asked: 4,000(, NOT met)?\)", done.stdout)
        with open(drawn) as f:
            numbers, runs = zip(*sorted(tuple(map(int, line.split())) for line in f)) if os.path.getsize(drawn) else ((), ())
        return row[1] if row else done.stdout + done.stderr, done.returncode, list(numbers), round(sum(runs), -1)

    build("one")
    expect_equal("the first run", run(), ("1,000, no finding", 0, [1, 2], 4000))
    expect_equal("the second run", run(), ("2,000 in 2 runs, no finding", 0, [3, 4], 3000))
    words, status, numbers, _ = run("--first", "4")
    expect("numbers up to 4 were drawn from before" in words and status != 0 and not numbers, f"numbers that were drawn from: {words}")
    expect_equal("a run from number 9", run("--first", "9"), ("3,000 in 3 runs, no finding", 0, [9, 10], 2000))
    build("two")
    expect_equal("another program", run(), ("1,000, no finding", 0, [1, 2], 4000))
    build("three", status=77)
    expect_equal("a run that finds something", run(), ("1,000, 2 FINDINGS", 1, [1, 2], 4000))
    with open(kept) as f:
        sums = json.load(f)
    for one in sums.values():
        one["executed"] = 4000
    with open(kept, "w") as f:
        json.dump(sums, f)
    expect_equal("nothing is left, and the finding stays", run(), ("4,000, 2 FINDINGS", 1, [], 0))
    build("one")
    expect_equal("nothing is left of the first program", run(), ("4,000 in 3 runs, no finding", 0, [], 0))


with tempfile.TemporaryDirectory() as folder:
    main(folder)
finish(29)
