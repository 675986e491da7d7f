"""`mckpt roundtrip` on a slow disk: no phase counts as one that hangs.

usage: slow_disk.py MCKPT FAULTY_IO
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "convert"))
from made import MPIRUN, expect, finish, make_model  # noqa: E402

PROGRAM, FAULTY_IO = map(os.path.abspath, sys.argv[1:])
RANKS = 2
LIMIT_S = 2  # of a phase in which nothing goes on; each takes longer


class Job:
    def __init__(self, model, call, mb_a_second, kept, flags=()):
        self.folder = tempfile.mkdtemp(prefix="mckpt_slow_")
        os.mkdir(self.path("tmp"))
        out = [word for what in kept for word in (f"--{what}", self.path(what))]
        command = [MPIRUN, "-n", str(RANKS), PROGRAM, "roundtrip", model, "--dp", str(RANKS), "--threads", "1", *out, "--no-sync", "--progress", "json", "--json", *flags]
        environment = {**os.environ, "LD_PRELOAD": FAULTY_IO, "FAULTY_IO": f"{call}:{mb_a_second}:SLOW", "TMPDIR": self.path("tmp")}
        self.err = open(self.path("err"), "w+")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.err, text=True, stdin=subprocess.DEVNULL, env=environment)

    def path(self, name):
        return os.path.join(self.folder, name)

    def told(self):
        with open(self.path("err")) as f:
            return f.read()

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


with tempfile.TemporaryDirectory(prefix="mckpt_slow_") as scratch:
    model = make_model(os.path.join(scratch, "model"), layers=5, hidden=768, heads=12, kv=4, head_dim=64, ffn=2304, vocab=4096)
    slow(model, "pwrite", 12, ["save", "export"])
    slow(model, "pread", 20, ["check", "compare"])
finish(6)
