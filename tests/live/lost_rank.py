"""A rank of `mckpt roundtrip` is killed at any moment: all others are out soon, with one cause, and no checkpoint is published.

usage: lost_rank.py MCKPT MODEL [GOLDEN_MODEL] [--device cpu|cuda] [--ranks N] [--kills N] [--repeat N] [--seconds LIMIT] [flags of roundtrip]...
"""
import argparse
import collections
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid

MPIRUN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "mpirun")
parser = argparse.ArgumentParser(add_help=False)
parser.add_argument("mckpt")
parser.add_argument("model")
parser.add_argument("--device", default="cpu")
parser.add_argument("--ranks", type=int, default=2)
parser.add_argument("--kills", type=int, default=4)
parser.add_argument("--repeat", type=int, default=1)
parser.add_argument("--seconds", type=float, default=5)
parser.add_argument("--early", type=float, default=0.4, help="the share of a whole run in which ranks start and do not know each other yet")
a, flags = parser.parse_known_args()
failures = []
if flags and not flags[0].startswith("--"):  # the program that draws golden models, which MODEL is one of
    drawn = tempfile.TemporaryDirectory(prefix="mckpt_lost_")
    shutil.copy(os.path.join(a.model, "config.json"), drawn.name)
    subprocess.run([flags.pop(0), os.path.join(a.model, "tensors.txt"), os.path.join(drawn.name, "model.safetensors")], check=True)
    a.model = drawn.name


def start(folder, mark):
    out = [word for what in ("checkpoint", "output") for word in (f"--{what}", os.path.join(folder, what))]
    command = [MPIRUN, "-n", str(a.ranks), a.mckpt, "roundtrip", a.model, "--device", a.device, "--repeat", str(a.repeat), *out, "--no-sync", *flags]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL, env={**os.environ, "MCKPT_TEST_MARK": mark})


def rank_processes(mark):
    """Process numbers by rank."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                environment = f.read().split(b"\0")
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                program = f.read().split(b"\0")[0]
        except OSError:
            continue
        rank = [e.split(b"=")[1] for e in environment if e.startswith(b"OMPI_COMM_WORLD_RANK=")]
        if f"MCKPT_TEST_MARK={mark}".encode() in environment and rank and program == a.mckpt.encode():
            found[int(rank[0])] = int(pid)
    return found


def published(folder):
    """What a reader would take for whole."""
    return [what for what in ("checkpoint/release", "checkpoint/latest_checkpointed_iteration.txt", "output") if os.path.exists(os.path.join(folder, what))]


def one(number, after, random_):
    mark, folder = uuid.uuid4().hex, tempfile.mkdtemp(prefix="mckpt_lost_")
    try:
        begin = time.time()
        job = start(folder, mark)
        time.sleep(after)
        rank = random_.randrange(a.ranks)
        pid = rank_processes(mark).get(rank)
        before = published(folder)
        if pid is None or job.poll() is not None:
            job.communicate()
            return "not there"
        os.kill(pid, signal.SIGKILL)
        killed = time.time()
        while rank_processes(mark) and time.time() < killed + 60:
            time.sleep(0.05)
        out_after = time.time() - killed
        out, err = job.communicate(timeout=60)
        causes = re.findall(r"^error\[MC\d+\]: (.*)$", err, re.M)
        what = f"kill {number}: rank {rank} after {killed - begin:.1f} s, out after {out_after:.1f} s, status {job.returncode}: {causes}"
        print(what, flush=True)
        if "every bit came back" in out:
            return "was done"
        wrong = []
        if job.returncode == 0:
            wrong.append("status 0")
        if out_after > a.seconds:
            wrong.append("too late")
        if len(causes) != 1 or f"rank {rank} " not in causes[0]:
            wrong.append("not one cause that names the rank")
        if late := [name for name in published(folder) if name not in before]:
            wrong.append(f"published after the loss: {late}")
        if wrong:
            failures.append(what)
            print(f"FAIL {wrong}\n{out[-800:]}{err[-1500:]}", flush=True)
        return "lost"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


random_ = random.Random(3)
begin = time.time()
folder = tempfile.mkdtemp(prefix="mckpt_lost_")
job = start(folder, uuid.uuid4().hex)
out, err = job.communicate()
whole = time.time() - begin
shutil.rmtree(folder, ignore_errors=True)
if job.returncode != 0:
    sys.exit(f"a whole run ended with {job.returncode}: {out[-500:]}{err[-1500:]}")
print(f"a whole run takes {whole:.1f} s", flush=True)
moments = [whole * (a.early + (1 - a.early) * (k + random_.random()) / a.kills) for k in range(a.kills)]
seen = collections.Counter(one(k, moment, random_) for k, moment in enumerate(moments))
print(f"{json.dumps(seen)}; {len(failures)} failures")
if sum(n for what, n in seen.items() if what not in ("not there", "was done")) == 0:
    sys.exit("no rank was lost in a run")
sys.exit(1 if failures else 0)
