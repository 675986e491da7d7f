"""A rank that is stopped before the ranks of a job have met, in MPI_Init or ahead of it: the job ends by itself, one rank
reports it, and nothing is published. A rank that is only late is waited for.
"""
import os
import re
import subprocess
import sys
import tempfile
import time

from mckpt_tests.setting import MCKPT, MPIRUN, TINY_MODEL

RANKS, LIMIT_S = 3, 4
SLACK_S = 45  # of a busy machine; the limit grows with the ranks per core, and a rank waits for its turn


def job(folder, fate):
    """Runs a conversion in which rank R does something first."""
    target = os.path.join(folder, "made")
    script = f'{fate}; exec "{MCKPT}" convert hf-to-fsdp "{TINY_MODEL}" "{target}" -q --no-sync --rank-timeout {LIMIT_S}'
    begin = time.time()
    done = subprocess.run([MPIRUN, "-n", str(RANKS), "bash", "-c", script], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=170)
    return done, time.time() - begin, os.path.exists(os.path.join(target, "release"))


def fail(what, done):
    sys.exit(f"FAILED: {what}: exit status {done.returncode}\n{done.stdout}{done.stderr}")


def stopped(rank):
    return f'if [ "$OMPI_COMM_WORLD_RANK" = {rank} ]; then kill -STOP $$; fi'


def stopped_soon(rank):
    """Wherever 0.15 s have led it: in the loader, in MPI_Init or in the exchange of addresses."""
    return f'if [ "$OMPI_COMM_WORLD_RANK" = {rank} ]; then (sleep 0.15; kill -STOP $$) & fi'


def late(rank):
    return f'if [ "$OMPI_COMM_WORLD_RANK" = {rank} ]; then sleep 1; fi'


for rank in range(RANKS):
    with tempfile.TemporaryDirectory(prefix="mckpt_meet_") as folder:
        done, seconds, published = job(folder, stopped(rank))
        causes = re.findall(r"^error\[(MC\d+)\]: (.*)$", done.stderr, re.M)
        print(f"rank {rank} stopped: {seconds:.1f} s, status {done.returncode}, {causes}", flush=True)
        if done.returncode == 0 or published:
            fail("it worked without a rank", done)
        if len(causes) != 1 or causes[0][0] != "MC4001" or "not all ranks of the job have started" not in causes[0][1] or "--rank-timeout" not in done.stderr:
            fail("not the one cause", done)
        if seconds > LIMIT_S * RANKS + SLACK_S:
            fail(f"{seconds:.1f} s", done)

for rank in (0, RANKS - 1):
    with tempfile.TemporaryDirectory(prefix="mckpt_meet_") as folder:
        done, seconds, published = job(folder, stopped_soon(rank))
        causes = re.findall(r"^error\[(MC\d+)\]: (.*)$", done.stderr, re.M)
        print(f"rank {rank} stopped after 0.15 s: {seconds:.1f} s, status {done.returncode}, {causes}", flush=True)
        # On a fast machine the work is done by then.
        if not published and (done.returncode == 0 or len(causes) != 1 or causes[0][0] != "MC4001"):
            fail("not the one cause", done)

with tempfile.TemporaryDirectory(prefix="mckpt_meet_") as folder:
    done, seconds, published = job(folder, late(1))
    if done.returncode != 0 or not published:
        fail("a rank that is late", done)
