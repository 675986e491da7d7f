"""A folder whose names cannot be read to the end, and calls that a signal breaks off: an error with its code, or no
error at all, and never one of the program's own (MC99..).
"""

import os
import shutil
import signal

from mckpt_tests.checks import expect, finish
from mckpt_tests.folders import scratch
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import FAULTY_IO, TINY_MODEL

folder = scratch()
begun, runs = os.path.join(folder.name, "begun"), os.path.join(folder.name, "runs")


def convert(target, *options, wish=None):
    env = {"LD_PRELOAD": FAULTY_IO, "FAULTY_IO": wish} if wish else None
    return run_mckpt("convert", "hf-to-fsdp", TINY_MODEL, target, "-q", "-j1", *options, env=env)


# The folder of a run with other options is removed first: that folder is listed too.
killed = convert(begun, wish="fsync:5:KILL")
expect(killed.returncode == -signal.SIGKILL and os.path.isdir(os.path.join(begun, ".release.mckpt-tmp")), "no interrupted run")
reached = 0
for n in range(1, 1000):
    shutil.rmtree(runs, ignore_errors=True)
    shutil.copytree(begun, runs)
    result = convert(runs, "--tp", "2", "--overwrite", wish=f"readdir:{n}:EIO")
    if result.returncode == 0 and n > 60:
        break
    reached += result.returncode != 0
    expect(result.returncode in (0, 3, 5) and "MC99" not in result.stderr, f"EIO at readdir {n}: {result.returncode} {result.stderr[:300]}")
expect(reached > 5, f"readdir failed {reached} times only")

for n in range(1, 9):
    shutil.rmtree(runs, ignore_errors=True)
    result = convert(runs, "--follow-links", wish=f"openat:{n}:EINTR")
    expect(result.returncode == 0, f"EINTR at openat {n}: exit status {result.returncode}: {result.stderr[:300]}")
finish(60)
