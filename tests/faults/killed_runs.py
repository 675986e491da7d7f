"""Conversions of every kind, killed at every call that changes a file or folder, and a larger one at random times beside an older
checkpoint: the new result is whole or not there, the older one is as it was, and the same command, with --resume and without, makes
what a run that was left alone makes.
"""

import os
import random
import signal
import subprocess
import time

from mckpt_tests.checks import expect, finish, in_parallel
from mckpt_tests.figures import counted, so_many, some_of, time_is_left
from mckpt_tests.folders import difference, scratch, snapshot
from mckpt_tests.models import make_model
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import MCKPT
from mckpt_tests.small_runs import MARKS, TRACKER, faulty, small_runs

CHANGING = {"pwrite", "write", "fsync", "fallocate", "ftruncate", "create", "mkdir", "rename", "unlink", "link", "symlink", "chmod", "utime"}


def killed_at_every_call():
    with small_runs() as runs:
        cases = [(run, n) for run in runs for n in range(1, sum(count for call, count in run.calls().items() if call in CHANGING) + 1)]
        with counted("P8", f"SIGKILL at every writing call of {len(runs)} conversions, then the same command", so_many(len(cases), 0) or None) as count:

            def check(run, n):
                if not time_is_left():
                    return
                at = run.fresh()
                result = run.start(at, env=faulty("changing", n, "KILL"))
                wrong = run.problems(at, result, killed=True)
                wrong = wrong or run.problems_again(at, *(["--resume"] if n % 2 and run.can_resume else []))
                run.drop(at)
                count.one(expect(not wrong, f"{run.name}: killed at changing call {n}: {wrong}"))

            in_parallel(check, some_of(cases, 60))


def killed_at_random(folder, times):
    """Kills of a run in a folder with an older iteration, whose tracker names it until the new one is published."""
    model = os.path.join(folder, "model")
    make_model(model, layers=2, hidden=256, heads=8, kv=4, head_dim=32, ffn=640, vocab=4096, shard_bytes=3_000_000)
    reference, r = os.path.join(folder, "reference"), random.Random(5)
    words = ["convert", "hf-to-fsdp", model, None, "-q", "-j2", "--tp", "2", "--iteration"]

    def convert(to, iteration):
        return [to if w is None else w for w in words] + [str(iteration)]

    begin = time.time()
    run_mckpt(*convert(reference, 7))
    usual = time.time() - begin
    with counted("P8", "SIGKILL at random times beside an older checkpoint, then the same command", times) as count:
        published = 0
        for i in range(times):
            if not time_is_left():
                break
            runs = os.path.join(folder, f"runs_{i}")
            run_mckpt(*convert(runs, 3), "--no-sync")
            before = snapshot(os.path.join(runs, "iter_0000003"))
            process = subprocess.Popen([MCKPT, *convert(runs, 7)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
            time.sleep(r.uniform(0, usual))
            process.send_signal(signal.SIGKILL)
            process.wait()
            made, wrong = os.path.join(runs, "iter_0000007"), ""
            if os.path.exists(made):
                published += 1
                wrong = difference(made, os.path.join(reference, "iter_0000007"), MARKS)
            with open(os.path.join(runs, TRACKER)) as f:
                tracked = f.read()
            wrong = wrong or tracked not in ("3", "7") and f"the tracker holds {tracked!r}"
            wrong = wrong or tracked == "7" and not os.path.exists(made) and "the tracker names what is not there"
            if not os.path.exists(made) or os.path.exists(os.path.join(made, ".plan")):
                again = run_mckpt(*convert(runs, 7), *(["--resume"] if i % 2 else []))
                wrong = wrong or again.returncode != 0 and f"the same command again: {again.stderr[:300]}"
                wrong = wrong or difference(made, os.path.join(reference, "iter_0000007")) or any(".mckpt-" in n for n in os.listdir(runs)) and "left behind"
            wrong = wrong or snapshot(os.path.join(runs, "iter_0000003")) != before and "the older checkpoint was touched"
            count.one(expect(not wrong, f"killed at random, time {i}: {wrong}"))
            subprocess.run(["rm", "-rf", runs])
        count.also = f"{published} were published already"


with scratch() as folder:
    killed_at_every_call()
    killed_at_random(folder, so_many(200, 15))
finish(70)
