"""SIGINT, SIGTERM and SIGHUP at random moments of a conversion, and one of them twice: the command ends within 2 s with 130, 143 or 129, or had its whole
result already; an older checkpoint is as it was; what is left is what the same command goes on with, and it makes what a run that was left
alone makes.
"""

import os
import random
import shutil
import signal
import subprocess
import time

from mckpt_tests.checks import expect, finish
from mckpt_tests.figures import bounded, counted, so_many, time_is_left
from mckpt_tests.folders import difference, scratch, snapshot
from mckpt_tests.models import make_model
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import FAULTY_IO, MCKPT

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
LIMIT = 2


def default_signals():
    """A shell in between has some of them ignored in what it starts beside itself."""
    for one in SIGNALS:
        signal.signal(one, signal.SIG_DFL)


def start(words, env=None):
    return subprocess.Popen([MCKPT, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
                            preexec_fn=default_signals, env={**os.environ, **(env or {})})


def wait_until_it_writes(process, at):
    while process.poll() is None and not any(".mckpt-tmp" in name for name in os.listdir(at)):
        time.sleep(0.001)


with scratch() as folder:
    model = make_model(os.path.join(folder, "model"), layers=2, hidden=256, heads=8, kv=4, head_dim=32, ffn=640, vocab=16000, shard_bytes=3_000_000)
    reference = os.path.join(folder, "reference")

    def convert(to, *more):
        return ["convert", "hf-to-fsdp", model, to, "-q", "-j1", "--tp", "2", "--iteration", "7", *more]

    run_mckpt(*convert(reference))
    # The disk is as slow as makes the conversion take half a second, so that most moments are in the middle of it.
    slow = {"LD_PRELOAD": FAULTY_IO, "FAULTY_IO": "pwrite:60:SLOW"}
    begin = time.time()
    run_mckpt(*convert(os.path.join(folder, "slow")), env=slow)
    usual = time.time() - begin
    r, slowest, late = random.Random(3), 0.0, 0
    with counted("P15", "signals at random moments, then the same command", so_many(50, 9)) as count:
        for i in range(so_many(50, 9)):
            if not time_is_left():
                break
            runs, one = os.path.join(folder, f"runs_{i}"), SIGNALS[i % 3]
            run_mckpt("convert", "hf-to-fsdp", model, runs, "-q", "--iteration", "3", "--no-sync")
            before = snapshot(os.path.join(runs, "iter_0000003"))
            process = start(convert(runs), slow)
            if i % 5 == 4:  # in the first moments, when the source is looked at
                time.sleep(r.uniform(0, 0.05))
            else:
                wait_until_it_writes(process, runs)
                time.sleep(r.uniform(0, 0.8 * usual))
            sent = time.time()
            process.send_signal(one)
            _, text = process.communicate(timeout=60)
            took, made = time.time() - sent, os.path.join(runs, "iter_0000007")
            wrong = ""
            if process.returncode == 0:
                late += 1
                wrong = difference(made, os.path.join(reference, "iter_0000007"))
            elif process.returncode == -one:  # before the program had said what is to be done with signals
                wrong = os.path.exists(made) and "published"
            else:
                slowest = max(slowest, took)
                wrong = process.returncode != STATUS[one] and f"exit status {process.returncode}: {text[:300]}"
                wrong = wrong or "error[MC3002]" not in text and f"no MC3002: {text[:300]}"
                wrong = wrong or os.path.exists(made) != ("is published as" in text) and f"published, or not, and: {text[:300]}"
            if not wrong and process.returncode != 0:
                again = run_mckpt(*convert(runs, *(["--resume"] if any(".mckpt-" in n for n in os.listdir(runs)) else [])))
                if not os.path.exists(made) or again.returncode not in (0, 4):
                    wrong = f"the same command again: {again.returncode} {again.stderr[:300]}"
                wrong = wrong or difference(made, os.path.join(reference, "iter_0000007")) or any(".mckpt-" in n for n in os.listdir(runs)) and "left behind"
            wrong = wrong or snapshot(os.path.join(runs, "iter_0000003")) != before and "the older checkpoint was touched"
            count.one(expect(not wrong, f"{one.name}, time {i}: {wrong}"))
            shutil.rmtree(runs)
        count.also = f"{late} came after the end"
    bounded("P15", "s from the signal to the end", LIMIT, slowest)
    expect(slowest <= LIMIT, f"a signal took {slowest:.2f} s")

    # A command that a hanging disk holds up is not waited for by who asks twice.
    runs = os.path.join(folder, "hanging")
    os.mkdir(runs)
    process = start(convert(runs), {"LD_PRELOAD": FAULTY_IO, "FAULTY_IO": "pwrite:3:HANG"})
    wait_until_it_writes(process, runs)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    begin = time.time()
    process.send_signal(signal.SIGINT)
    try:
        process.wait(20)
        took = time.time() - begin
    except subprocess.TimeoutExpired:
        process.kill()
        took = 20.0
    expect(process.returncode in (130, -signal.SIGINT), f"the second SIGINT: {process.returncode}")
    bounded("P15", "s from a second SIGINT to the end, while a write hangs", LIMIT, took)
    expect(took <= LIMIT, f"the second SIGINT took {took:.2f} s")
finish(10)
