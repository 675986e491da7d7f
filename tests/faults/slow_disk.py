"""`mckpt roundtrip` on a slow disk: no phase counts as one that hangs, and each ends soon when it is asked to."""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import uuid

from mckpt_tests.checks import expect, finish, in_parallel
from mckpt_tests.models import make_model
from mckpt_tests.setting import FAULTY_IO, MCKPT, MPIRUN

PROGRAM = MCKPT
RANKS = 2
LIMIT_S = 2  # of a phase in which nothing goes on; each takes longer
STOP_S = 4  # half of it is a busy machine's share


class Job:
    def __init__(self, model, call, mb_a_second, kept, flags=()):
        self.folder, self.mark = tempfile.mkdtemp(prefix="mckpt_slow_"), uuid.uuid4().hex
        os.mkdir(self.path("tmp"))
        out = [word for what in kept for word in (f"--{what}", self.path(what))]
        command = [
            MPIRUN,
            "-n",
            str(RANKS),
            PROGRAM,
            "roundtrip",
            model,
            "--dp",
            str(RANKS),
            "--threads",
            "1",
            *out,
            "--no-sync",
            "--progress",
            "json",
            "--json",
            *flags,
        ]
        environment = {
            **os.environ,
            "LD_PRELOAD": FAULTY_IO,
            "FAULTY_IO": f"{call}:{mb_a_second}:SLOW",
            "MCKPT_TEST_MARK": self.mark,
            "TMPDIR": self.path("tmp"),
        }
        self.err = open(self.path("err"), "w+")
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self.err, text=True, stdin=subprocess.DEVNULL, env=environment
        )

    def path(self, name):
        return os.path.join(self.folder, name)

    def told(self):
        with open(self.path("err")) as f:
            return f.read()

    def ranks(self):
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as f, open(f"/proc/{pid}/cmdline", "rb") as c:
                    if f"MCKPT_TEST_MARK={self.mark}".encode() in f.read().split(b"\0") and c.read().split(b"\0")[0] == PROGRAM.encode():
                        found.append(int(pid))
            except OSError:
                continue
        return found

    def end(self):
        out = self.process.communicate(timeout=200)[0]
        err = self.told()
        self.err.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        return out, err


def slow(model, call, mb_a_second, phases):
    job = Job(model, call, mb_a_second, ["checkpoint", "output"], ["--phase-timeout", str(LIMIT_S)])
    out, err = job.end()
    if not expect(job.process.returncode == 0, f"slow {call}: exit status {job.process.returncode}: {err[-800:]}"):
        return
    seconds = {p["name"]: p["seconds"] for p in json.loads(out)["phases"]}
    print(f"slow {call}: {seconds}", flush=True)
    for phase in phases:
        expect(seconds[phase] > 1.2 * LIMIT_S, f"slow {call}: {phase} takes {seconds[phase]} s, which shows nothing")


def stopped(model, call, phase, kept):
    """As a terminal stops a job: every rank is asked at once."""
    job = Job(model, call, 8, kept)
    deadline = time.time() + 120
    while f'"command": "{phase}"' not in job.told() and job.process.poll() is None and time.time() < deadline:
        time.sleep(0.05)
    before = {name for name in ("checkpoint/release", "output") if os.path.exists(job.path(name))}
    asked = job.ranks()
    for pid in asked:
        os.kill(pid, signal.SIGINT)
    begin = time.time()
    while job.ranks() and time.time() < begin + 100:
        time.sleep(0.02)
    took = time.time() - begin
    after = {name for name in ("checkpoint/release", "output") if os.path.exists(job.path(name))}
    err = job.end()[1]
    causes = re.findall(r"^error\[(MC\d+)\]: (.*)$", err, re.M)
    what = f"{phase}, stopped: out after {took:.1f} s, status {job.process.returncode}, {causes}"
    print(what, flush=True)
    expect(len(asked) == RANKS, f"{what}: {len(asked)} ranks were there")
    expect(took < STOP_S, f"{what}: too late")
    expect(len(causes) == 1 and "stopped before" in causes[0][1], f"{what}: not the one cause")
    expect(job.process.returncode == 130, f"{what}: another status")
    expect(after == before, f"{what}: published {after - before}")


with tempfile.TemporaryDirectory(prefix="mckpt_slow_") as scratch:
    model = make_model(os.path.join(scratch, "model"), layers=5, hidden=768, heads=12, kv=4, head_dim=64, ffn=2304, vocab=4096)
    slow(model, "pwrite", 12, ["save", "export"])
    slow(model, "pread", 20, ["check", "compare"])
    # These have no limit of a phase, and wait for the disk more than they compute.
    in_parallel(
        stopped,
        [(model, "pwrite", "save", ["checkpoint", "output"]), (model, "pwrite", "export", ["output"]), (model, "pread", "check", [])],
    )
finish(20)
