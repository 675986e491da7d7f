"""A rank of `mckpt roundtrip` is lost at any moment: all others are out soon, with one cause, and no checkpoint is published.

usage: lost_rank.py [--model MODEL] [--device cpu|cuda] [--ranks N] [--kills N] [--repeat N] [--seconds LIMIT] [--nccl-fault LIBRARY:NCCL] [flags of roundtrip]...

A rank is killed; with --nccl-fault (the library made of nccl_fault.cc, and NCCL's), work of NCCL fails in it instead, in each of the ways that the library knows.
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

from mckpt_tests.figures import tell
from mckpt_tests.setting import DATA, GOLDEN_MODEL, MCKPT, MPIRUN

GOLDEN = os.path.join(DATA, "golden", "models", "qwen3_moe")
parser = argparse.ArgumentParser(add_help=False)
parser.add_argument("--model", help="default: a golden model, drawn")
parser.add_argument("--device", default="cpu")
parser.add_argument("--ranks", type=int, default=2)
parser.add_argument("--kills", type=int, default=4)
parser.add_argument("--repeat", type=int, default=1)
parser.add_argument("--seconds", type=float, default=5)
parser.add_argument("--early", type=float, default=0.4, help="the share of a whole run in which ranks start and do not know each other yet")
parser.add_argument("--nccl-fault")
parser.add_argument("--phase-timeout", type=float, default=8)
a, flags = parser.parse_known_args()
failures = []
if a.device == "cuda":
    gpus = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True).stdout.count("GPU ") if shutil.which("nvidia-smi") else 0
    if gpus < a.ranks:
        print(f"skipped: {gpus} GPUs are here, {a.ranks} ranks need one each")
        sys.exit(77)
if not a.model:
    drawn = tempfile.TemporaryDirectory(prefix="mckpt_lost_")
    shutil.copy(os.path.join(GOLDEN, "config.json"), drawn.name)
    subprocess.run([GOLDEN_MODEL, os.path.join(GOLDEN, "tensors.txt"), os.path.join(drawn.name, "model.safetensors")], check=True)
    a.model = drawn.name


def start(folder, mark, environment={}):
    out = [word for what in ("checkpoint", "output") for word in (f"--{what}", os.path.join(folder, what))]
    command = [
        MPIRUN,
        "-n",
        str(a.ranks),
        MCKPT,
        "roundtrip",
        a.model,
        "--device",
        a.device,
        "--repeat",
        str(a.repeat),
        *out,
        "--no-sync",
        *(["--phase-timeout", str(a.phase_timeout)] if a.nccl_fault else []),
        *flags,
    ]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **environment, "MCKPT_TEST_MARK": mark},
    )


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
        if f"MCKPT_TEST_MARK={mark}".encode() in environment and rank and program == MCKPT.encode():
            found[int(rank[0])] = int(pid)
    return found


def published(folder):
    """The results that a reader would take for whole."""
    return [
        what
        for what in ("checkpoint/release", "checkpoint/latest_checkpointed_iteration.txt", "output")
        if os.path.exists(os.path.join(folder, what))
    ]


def look_to_the_end(what, job, mark, folder, since, limit, named, before=None):
    """`since`: gives the time at which the rank was lost, or None. `named`: what the one cause has to name. `before`: what was published then."""
    while rank_processes(mark) and time.time() < (since() or time.time()) + limit + 55:
        if before is None and since() is not None:
            before = published(folder)
        time.sleep(0.05)
    ended = time.time()
    out, err = job.communicate(timeout=60)
    causes = re.findall(r"^error\[MC\d+\]: (.*)$", err, re.M)
    what = f"{what}, out after {ended - (since() or ended):.1f} s, status {job.returncode}: {causes}"
    print(what, flush=True)
    wrong = []
    if job.returncode == 0 or since() is None:
        wrong.append("nothing was noticed" if since() else "nothing was lost")
    if ended - (since() or ended) > limit:
        wrong.append("too late")
    if len(causes) != 1 or not re.search(named, causes[0]):
        wrong.append(f"not one cause that names {named}")
    if late := [name for name in published(folder) if name not in (before or [])]:
        wrong.append(f"published after the loss: {late}")
    if wrong and a.nccl_fault is None and "every bit came back" in out:
        return "was done"  # before it was killed
    if wrong:
        failures.append(what)
        print(f"FAIL {wrong}\n{out[-800:]}{err[-1500:]}", flush=True)
    return "lost"


def killed(number, after, random_):
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
        lost = time.time()
        return look_to_the_end(
            f"kill {number}: rank {rank} after {lost - begin:.1f} s", job, mark, folder, lambda: lost, a.seconds, f"rank {rank} ", before
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def fault_environment(fault, log):
    return {"LD_PRELOAD": a.nccl_fault, "MCKPT_TEST_NCCL_FAULT": fault, "MCKPT_TEST_NCCL_LOG": log}


def logged(log, word):
    if os.path.exists(log):
        with open(log) as f:
            return next((float(line.split()[1]) for line in f if line.startswith(word)), None)


def failed(kind, call, random_):
    """Work number `call` of NCCL in some rank. Where it is lost without a word, the clock finds that ranks wait: --phase-timeout."""
    mark, folder = uuid.uuid4().hex, tempfile.mkdtemp(prefix="mckpt_lost_")
    try:
        log, rank = os.path.join(folder, "log"), random_.randrange(a.ranks)
        job = start(folder, mark, fault_environment(f"{kind}:{rank}:{call}", log))
        while not rank_processes(mark) and job.poll() is None:
            time.sleep(0.05)
        limit, named = (a.seconds + a.phase_timeout, "every rank has waited for other") if kind == "lost" else (a.seconds, "NCCL")
        return look_to_the_end(f"{kind}, call {call} of rank {rank}", job, mark, folder, lambda: logged(log, "fault"), limit, named)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


random_ = random.Random(3)
begin = time.time()
folder = tempfile.mkdtemp(prefix="mckpt_lost_")
log = os.path.join(folder, "log")
job = start(folder, uuid.uuid4().hex, fault_environment("", log) if a.nccl_fault else {})
out, err = job.communicate()
whole, calls = time.time() - begin, int(logged(log, "count") or 0)
shutil.rmtree(folder, ignore_errors=True)
if job.returncode != 0:
    sys.exit(f"a whole run ended with {job.returncode}: {out[-500:]}{err[-1500:]}")
print(f"a whole run takes {whole:.1f} s" + f", {calls} calls of NCCL" * bool(calls), flush=True)
if a.nccl_fault:
    if calls == 0:
        sys.exit("no call of NCCL was seen")
    seen = collections.Counter(
        failed(kind, random_.randrange(1, calls + 1), random_) for kind in ("refused", "later", "lost") for _ in range(a.kills)
    )
else:
    moments = [whole * (a.early + (1 - a.early) * (k + random_.random()) / a.kills) for k in range(a.kills)]
    seen = collections.Counter(killed(k, moment, random_) for k, moment in enumerate(moments))
print(f"{json.dumps(seen)}; {len(failures)} failures")
where = "GPUs" if a.device == "cuda" else "the CPU"
how = "fails in NCCL" if a.nccl_fault else "is killed"
tell("P13", f"{a.ranks} live ranks on {where}, one of which {how}: all out within {a.seconds:g} s, one cause, nothing published", str(seen["lost"] or 1),
     f"{seen['lost'] - len(failures):,} of {seen['lost']:,}", bool(seen["lost"]) and not failures, time.time() - begin)
if seen["lost"] == 0:
    sys.exit("no rank was lost in a run")
sys.exit(1 if failures else 0)
