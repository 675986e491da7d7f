"""Twenty starts at once into one place: one makes the result, the others are refused by an error that says why, and the result is what a
run alone makes. For folders, files, runs and archives, and with --overwrite over an older result.
"""

import os
import subprocess

from mckpt_tests.checks import expect, finish
from mckpt_tests.figures import counted, so_many, time_is_left
from mckpt_tests.folders import difference
from mckpt_tests.setting import MCKPT
from mckpt_tests.small_runs import small_runs

STARTS = 20
KINDS = ["hf-to-fsdp", "export", "to-pt", "pt-to-safetensors", "safetensors-to-pt", "to-dcp"]
REFUSED = ("error[MC3003]", "error[MC3004]")  # the place is taken; somebody is writing there


def race(run, overwrite):
    """"" or what is wrong after all have ended."""
    at = run.fresh()
    if overwrite:
        run.start(at)
    words = [MCKPT, *run.words(at), *(["--overwrite"] if overwrite else [])]
    all_of_them = [subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) for _ in range(STARTS)]
    texts = [(process.communicate(timeout=120)[1], process.returncode) for process in all_of_them]
    winners = sum(status == 0 for _, status in texts)
    wrong = [f"exit status {status}: {text[:300]}" for text, status in texts if status != 0 and not (status == 4 and text.startswith(REFUSED))]
    differs = difference(at, run.reference)
    run.drop(at)
    # Who begins after the first has ended may overwrite its result too.
    if winners != 1 and not (overwrite and winners > 1):
        return f"{winners} of {STARTS} ended well"
    return wrong[0] if wrong else differs and f"the result differs: {differs}"


with small_runs(KINDS) as runs:
    rounds = so_many(5, 1)
    with counted("P16", f"races of {STARTS} starts into one place, one of which wins", 2 * rounds * len(runs)) as count:
        for _ in range(rounds):
            for run in runs:
                for overwrite in (False, True):
                    if time_is_left():
                        wrong = race(run, overwrite)
                        count.one(expect(not wrong, f"{run.name}{' --overwrite' if overwrite else ''}: {wrong}"))
finish(10)
