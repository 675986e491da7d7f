"""Twenty starts at once into one place: one makes the result, the others are refused by an error that says why, and the result is what a
run alone makes. For folders, files, runs and archives, and with --overwrite over an older result.
"""

from mckpt_tests.checks import expect, finish
from mckpt_tests.figures import counted, so_many, time_is_left
from mckpt_tests.races import race
from mckpt_tests.small_runs import small_runs

STARTS = 20
KINDS = ["hf-to-fsdp", "export", "to-pt", "pt-to-safetensors", "safetensors-to-pt", "to-dcp"]


def raced(run, overwrite):
    at = run.fresh()
    wrong = race(run, [at] * STARTS, overwrite)
    run.drop(at)
    return wrong


with small_runs(KINDS) as runs:
    rounds = so_many(5, 1)
    with counted("P16", f"races of {STARTS} starts into one place, one of which wins", 2 * rounds * len(runs)) as count:
        for _ in range(rounds):
            for run in runs:
                for overwrite in (False, True):
                    if time_is_left():
                        wrong = raced(run, overwrite)
                        count.one(expect(not wrong, f"{run.name}{' --overwrite' if overwrite else ''}: {wrong}"))
finish(10)
