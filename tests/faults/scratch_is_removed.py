"""`mckpt roundtrip` without --output exports into a temporary folder: whatever becomes of a rank, it is gone when the job is."""

import os
import subprocess
import tempfile
import time

from mckpt_tests.checks import expect, finish, in_parallel
from mckpt_tests.models import Models
from mckpt_tests.setting import FAULTY_IO, MCKPT, MPIRUN

RANKS = 2
models = Models()
source = models.path("qwen3_moe")


def start(temporary, call, n, what, rank, *flags):
    command = [MPIRUN, "-n", str(RANKS), "--timeout", "100", MCKPT, "roundtrip", source, "--dp", str(RANKS), "--vocab-size", "auto", *flags]
    fault = {"LD_PRELOAD": FAULTY_IO, "FAULTY_IO": f"{call}:{n}:{what}", "FAULTY_IO_RANK": str(rank)} if call else {}
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": temporary, **fault},
    )


def left(temporary):
    return [name for name in os.listdir(temporary) if name.startswith("mckpt_roundtrip_")]


def lost(call, n, what, rank, cause, *flags):
    label = f"rank {rank}, {what} at {call} {n}"
    with tempfile.TemporaryDirectory(prefix="mckpt_scratch_") as temporary:
        job = start(temporary, call, n, what, rank, *flags)
        out, err = job.communicate(timeout=120)
        told = [line for line in err.splitlines() if line.startswith("error[")]
        expect(job.returncode not in (0, 124) and len(told) == 1 and cause in err, f"{label}: {job.returncode} {out[-300:]}{err[-600:]}")
        for _ in range(50):  # ranks that mpirun does not wait for
            if not left(temporary):
                break
            time.sleep(0.1)
        expect(not left(temporary), f"{label}: left behind: {left(temporary)}")


fates = [("pwrite", 2, "HANG", 1, "rank 1 (host", "--phase-timeout", "10")]  # waits, while others run
for rank in range(RANKS):  # the one that makes the folder, and another one
    fates += [("pwrite", 1, "KILL", rank, f"rank {rank} (host"), ("pwrite", 2, "DEAD", rank, "MC3001")]
in_parallel(lost, [*fates, ("create", 2, "KILL", 0, "rank 0 (host")])
with tempfile.TemporaryDirectory(prefix="mckpt_scratch_") as temporary:
    out, err = (job := start(temporary, None, 0, "", 0)).communicate(timeout=120)
    expect(job.returncode == 0 and not left(temporary), f"nothing is wrong: {job.returncode} {left(temporary)} {err[-300:]}")
finish(13)
