"""How many inputs each fuzz target executes in the time that it has, and what they find; needs build/fuzz beside the program, and clang.

usage: executions.py [SECONDS]     for each target; under scripts/trust the time is shared among them"""

import glob
import os
import re
import subprocess
import sys
import time

from mckpt_tests.checks import expect, finish, skip
from mckpt_tests.figures import END, so_many, tell
from mckpt_tests.setting import SOURCE

MILLIONS = {"safetensors": 100, "json": 100, "zip": 100, "pickle": 100}  # 20 for all others
programs = sorted(glob.glob(os.path.join(SOURCE, "build", "fuzz", "fuzz", "*_fuzz")))
if not programs:
    skip("the fuzz targets are not built: cmake --preset fuzz && cmake --build --preset fuzz")
RUN = os.path.join(SOURCE, "tests", "fuzz", "run")


def seconds_for(left):
    """An equal share of the time that is left."""
    if len(sys.argv) > 1:
        return int(sys.argv[1])
    return so_many(60, 5) if END == float("inf") else max(5, int((END - time.time()) / left))


for i, program in enumerate(programs):
    target = os.path.basename(program).removesuffix("_fuzz")
    asked, begin = MILLIONS.get(target, 20) * 1_000_000, time.time()
    run = subprocess.run([RUN, target, f"-max_total_time={seconds_for(len(programs) - i)}", f"-runs={asked}"], capture_output=True, text=True, errors="replace")
    done = re.search(r"number_of_executed_units: *(\d+)", run.stderr)
    executed = int(done[1]) if done else 0
    expect(run.returncode == 0, f"{target}: a finding: {run.stderr[-2000:]}")
    found = "no finding" if run.returncode == 0 else "A FINDING"
    for promise in ("P4", "P5") if target == "json" else ("P4",):
        tell(promise, f"inputs of fuzz target `{target}`", f"{asked:,}", f"{executed:,}, {found}", run.returncode == 0 and executed >= asked, time.time() - begin)
finish(5)
