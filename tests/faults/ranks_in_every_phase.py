"""usage: ranks_in_every_phase.py [2 | 4 | 8]

Conversions of 2, 4 and 8 ranks, the first or last of which is killed, stopped, ends, fails, hangs or only sleeps: at MPI_Init, at each collective call,
at its first reads and writes, when files are made durable, and in MPI_Finalize. All ranks end, one cause is told, and it names the rank;
nothing is published, or the whole result; and one rank alone goes on with what is left. A rank that only sleeps is waited for.

The watch of ranks stands at the end of the phase "start"; until then it may be the launcher alone that tells the end of a rank, several ranks may tell
that not all have started, and nobody knows the rank that is stopped. A rank that hangs inside of a call of MPI waits like all others: then the
error says that every rank waits, and no more. A rank that leaves with status 0 before MPI_Init is a matter of the launcher: Open MPI ends the job
with status 1, mostly with words of its own, and with many ranks now and then without any.
"""

import os
import subprocess
import sys
import tempfile
import threading
import time

from mckpt_tests.checks import expect, finish, skip
from mckpt_tests.figures import bounded, counted, so_many, some_of, time_is_left
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import FAULTY_IO, HAS_MPI
from mckpt_tests.small_runs import faulty, small_runs

if not HAS_MPI:
    skip("mpi is not built")
SIZES = [int(size) for size in sys.argv[1:]] or so_many((2, 4, 8), (3,))
FATES = {"kill": "KILL", "stop": "STOP", "exit": "EXIT", "throw": "EIO", "hang": "HANG", "sleep": "SLEEP"}
SILENCE = 6  # of a rank that stands still, in seconds; it only sleeps for three
ENDS = ("mpi_init", "mpi_finalize")
LONGEST = SILENCE + 2 + 60  # seconds of a job, on a busy machine too
SMALL = 2  # jobs of each size and phase
BEFORE = "exit before MPI_Init"  # with status 0: the launcher ends the job, or waits for the others, which miss the rank after the silence
LAUNCHER = 1  # its exit status for a job that it has ended; mckpt's for lost ranks is another


def start(run, at, ranks, env):
    limits = ["--rank-timeout", str(SILENCE), "--phase-timeout", str(SILENCE + 2)]
    begin = time.time()
    try:
        result = run_mckpt(*run.words(at), *limits, ranks=ranks, env=env, timeout=140)
    except subprocess.TimeoutExpired:
        result = None
    return result, time.time() - begin


def points_of(run, ranks, rank):
    """phase -> the calls of this rank in it, as (family, number), as one healthy run makes them."""
    with tempfile.NamedTemporaryFile("r") as log:
        at = run.fresh()
        start(run, at, ranks, {"LD_PRELOAD": FAULTY_IO, "FAULTY_IO_LOG": log.name, "FAULTY_IO_RANK": str(rank)})
        run.drop(at)
        calls = log.read().split()
    phases, counts, now = {}, {}, "start"
    for call in calls:
        counts[call] = counts.get(call, 0) + 1
        if call == "mpi_finalize":
            now = "MPI_Finalize"
        elif now == "start" and call == "pread":
            now = "plan and prove"
        elif now in ("start", "plan and prove") and call == "pwrite":
            now = "copy"
        elif now == "copy" and call in ("rename", "fsync"):
            now = "publish"
        if call in ("collective", *ENDS) or call in ("pread", "pwrite", "fsync", "rename") and counts[call] == 1:
            phases.setdefault(now, []).append((call, counts[call]))
    return phases


def problems(run, at, ranks, phase, rank, call, n, fate):
    result, took = start(run, at, ranks, faulty(call, n, FATES[fate], FAULTY_IO_RANK=str(rank)))
    if result is None:
        return "does not end", took
    told = [line for line in result.stderr.splitlines() if line.startswith("error[")]
    shown = f"exit status {result.returncode}, told {told}"
    if run.is_published(at) and (differs := run.is_whole(at)):
        return f"published, and not whole: {differs}; {shown}", took
    if fate == "sleep":
        return "" if result.returncode == 0 and run.is_published(at) else f"a rank that only slept: {shown}", took
    if call == "mpi_finalize" and run.is_published(at):  # all is done; the launcher says what it thinks of the rank
        return "" if took < LONGEST else f"{took:.0f} s until all ranks had ended: {shown}", took
    if result.returncode == 0:
        return f"nothing is told: {shown}", took
    watched = phase != "start" and call not in ENDS
    if (call, fate) == ("mpi_init", "exit") and result.returncode == LAUNCHER and not result.stderr and not run.is_published(at):
        return run.problems_again(at), took
    if watched and len(told) != 1 or not told and not result.stderr:
        return shown, took
    in_mpi = fate == "hang" and call == "collective" and "every rank has waited for other ranks" in told[0] if told else False
    if told and fate != "throw" and watched and not in_mpi and f"rank {rank} (host" not in result.stderr:
        return f"rank {rank} is not named: {shown} {result.stderr[:300]}", took
    if not run.is_published(at):
        again = run.problems_again(at)
        return again, took
    return "", took


def walk(run, ranks, slowest):
    cases = {}
    for rank in (0, ranks - 1):
        for phase, calls in points_of(run, ranks, rank).items():
            cases.setdefault(phase, []).extend((rank, call, n, fate) for call, n in calls for fate in FATES)
    for phase, of_phase in cases.items():
        chosen = some_of(of_phase, SMALL)
        with counted("P13", f"{ranks} ranks, {phase}: kill, stop, exit, throw, hang, sleep of the first and the last", len(chosen)) as count:
            left, lock = iter(chosen), threading.Lock()

            def work():
                while time_is_left():
                    with lock:
                        case = next(left, None)
                    if case is None:
                        return
                    at = run.fresh()
                    wrong, took = problems(run, at, ranks, phase, *case)
                    if wrong:  # a machine that is too busy for the limits says nothing about the watch: once more, alone
                        run.drop(at)
                        at = run.fresh()
                        with lock:
                            wrong, took = problems(run, at, ranks, phase, *case)
                    run.drop(at)
                    rank, call, n, fate = case
                    end = BEFORE if fate == "exit" and call == "mpi_init" else fate
                    slowest[end] = max(slowest.get(end, 0), took)
                    count.one(expect(not wrong, f"{ranks} ranks, {phase}, {fate} of rank {rank} at {call} {n}: {wrong}"))

            at_once = so_many(max(1, 3 * os.cpu_count() // ranks), 3)  # most of a job is waiting
            workers = [threading.Thread(target=work) for _ in range(at_once)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()


with small_runs(["hf-to-fsdp"]) as (run,):
    slowest = {}
    for ranks in SIZES:
        walk(run, ranks, slowest)
    for fate in ("kill", "exit", "throw", BEFORE, "stop", "hang"):
        if fate in slowest:
            at_most = 5 if fate in ("kill", "exit", "throw") else SILENCE + 2 + 30
            bounded("P13", f"s of the slowest whole job of {', '.join(map(str, SIZES))} ranks, one of which meets its end by `{fate}`", at_most + 5, slowest[fate])
finish(8)
