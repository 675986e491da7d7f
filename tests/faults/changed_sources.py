"""A source that changes while it is read: the program is stopped at one of its reads, a file of the source is changed, and the
program goes on. Its result or answer equals a run over the source as it is then; otherwise it ends with an
error that names a file, and nothing is published.
"""

import os
import shutil
import signal
import subprocess
import time

from mckpt_tests.checks import expect, finish
from mckpt_tests.folders import difference, scratch
from mckpt_tests.models import make_model
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import FAULTY_IO, HAS_MPI, MCKPT, MPIRUN

folder = scratch()
CHANGED = "was changed while it was read"


def path(name):
    return os.path.join(folder.name, name)


def done(*args):
    result = run_mckpt(*args)
    expect(result.returncode == 0, f"{args}: {result.stderr[:500]}")


def rewrite_half(file):
    """As a save over the old one does, and one that hides it: size and time of the last write stay."""
    stamp = os.stat(file)
    with open(file, "r+b") as f:
        data = f.read()
        f.seek(len(data) // 2)
        f.write(bytes(b ^ 1 if b > 127 else b for b in data[len(data) // 2 :]))
    os.utime(file, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))


def replace(file):
    shutil.copy2(file, file + ".new")
    rewrite_half(file + ".new")
    os.rename(file + ".new", file)


def truncate(file):
    os.truncate(file, os.path.getsize(file) * 2 // 3)


def touch(file):
    os.utime(file)


def remove(file):
    os.remove(file)


CHANGES = [rewrite_half, replace, truncate, touch, remove]


class Look:
    """A command that answers about ORIGINAL; `files` are the files of it that the command reads."""

    def __init__(self, original, files, *command):
        self.original, self.files, self.command = original, files, command

    def arguments(self, source, target):
        return [a.format(source=source, target=target) for a in self.command]

    def name(self):
        return " ".join(self.command[:2])

    def made(self, target):
        return target


class Make(Look):
    """One that makes something of it."""

    def made(self, target):
        return (
            os.path.join(target, "release")
            if "hf-to-fsdp" in self.command or self.original == "ckpt" and "convert" in self.command
            else target
        )


def stopped(job, n, change, file):
    """Whether it was stopped at its nth read; then the file is changed, and what comes of it is checked."""
    source, target, fresh = path("source"), path("target"), path("fresh/target")  # whose name is in a .pt file
    for old in (source, target, fresh):
        shutil.rmtree(old, ignore_errors=True)
        if os.path.exists(old):
            os.remove(old)
    shutil.copytree(path(job.original), source)
    env = {**os.environ, "LD_PRELOAD": FAULTY_IO, "FAULTY_IO": f"pread:{n}:STOP"}
    run = subprocess.Popen(
        [MCKPT, *job.arguments(source, target)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        env=env,
    )
    _, status = os.waitpid(run.pid, os.WUNTRACED)
    if not os.WIFSTOPPED(status):
        run.communicate()
        return False
    published = os.path.exists(job.made(target))  # what was published before is looked at again for the account
    change(os.path.join(source, file))
    os.kill(run.pid, signal.SIGCONT)
    out, err = run.communicate(timeout=60)
    what = f"{job.name()}: {change.__name__} {file} at read {n}"
    told = CHANGED in err + out
    if run.returncode in (0, 1) and not told:
        again = run_mckpt(*job.arguments(source, fresh))
        if published:
            pass
        elif isinstance(job, Make):
            same = again.returncode == run.returncode == 0 and made_alike(job.made(target), job.made(fresh))
            expect(same, f"{what}: published what is of neither state")
        else:
            expect(
                (again.returncode, again.stdout) == (run.returncode, out),
                f"{what}: an answer about neither state: {out} instead of {again.stdout}",
            )
    else:
        expect(run.returncode in (1, 3, 4), f"{what}: exit status {run.returncode}: {err[:300]}")
        expect(run.returncode != 1 or told, f"{what}: exit status 1: {out[:300]}")
        expect(published or not os.path.exists(job.made(target)), f"{what}: published")
    seen.add((job.name(), file, told))
    return True


def stopped_rank(run, source):
    """The process of a job of ranks that reads the source and was stopped; None where the job ends."""
    while run.poll() is None:
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline") as c, open(f"/proc/{pid}/stat") as s:
                    if source in c.read().split("\0") and s.read().rsplit(")", 1)[1].split()[0] == "T":
                        return int(pid)
            except OSError:
                pass
        time.sleep(0.01)
    return None


def of_ranks(file, rank, n):
    """Rank 0 looks for all: a change of a file that another rank reads is reported as well."""
    source, target = path("source"), path("target")
    for old in (source, target):
        shutil.rmtree(old, ignore_errors=True)
    shutil.copytree(path("model"), source)
    env = {**os.environ, "LD_PRELOAD": FAULTY_IO, "FAULTY_IO": f"pread:{n}:STOP", "FAULTY_IO_RANK": str(rank)}
    run = subprocess.Popen(
        [MPIRUN, "-n", "2", "--timeout", "100", MCKPT, "convert", "hf-to-fsdp", source, target, "-j1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        env=env,
    )
    pid = stopped_rank(run, source)
    if expect(pid is not None, f"rank {rank} makes less than {n} reads"):
        rewrite_half(os.path.join(source, file))
        os.kill(pid, signal.SIGCONT)
    _, err = run.communicate(timeout=100)
    what = f"rank {rank} of 2, {file} at read {n}"
    expect(err.count("error[") == 1 and CHANGED in err, f"{what}: {err[:500]}")
    expect(not os.path.exists(os.path.join(target, "release")), f"{what}: published")


def made_alike(a, b):
    if os.path.isdir(a):
        return difference(a, b) == ""
    with open(a, "rb") as f, open(b, "rb") as g:
        return f.read() == g.read()


model = make_model(path("model"), layers=2, hidden=48, heads=6, kv=3, head_dim=8, vocab=64, experts=4, moe_ffn=16)
done("convert", "hf-to-fsdp", model, path("ckpt"), "--tp", "1", "--ep", "2")
done("convert", "safetensors-to-pt", path("model"), path("model.pt"))
os.mkdir(path("pt"))
os.mkdir(path("fresh"))
os.rename(path("model.pt"), path("pt/model.pt"))
HF = ["model.safetensors", "config.json"]
DCP = ["release/__1_0.distcp", "release/.metadata", "release/hf_assets/config.json", "latest_checkpointed_iteration.txt"]
ckpt, hf = path("ckpt"), path("model")
JOBS = [
    Make("model", HF, "convert", "hf-to-fsdp", "{source}", "{target}", "--ep", "2", "-q", "-j1"),
    Make("ckpt", DCP, "export", "{source}", "{target}", "-q", "-j1"),
    Make("ckpt", DCP, "convert", "reshard", "{source}", "{target}", "--dp", "3", "-q", "-j1"),
    Make("ckpt", DCP[:2], "convert", "gpt-to-hybrid", "{source}", "{target}", "--pattern", "*E*E", "-q", "-j1"),
    Make("model", HF[:1], "convert", "safetensors-to-pt", "{source}", "{target}", "-q", "-j1"),
    Make("pt", ["model.pt"], "convert", "pt-to-safetensors", "{source}", "{target}", "-q", "-j1"),
    Look("model", HF, "verify", "{source}", "-j1"),
    Look("ckpt", DCP[:3], "verify", "{source}", "-j1"),
    Look("ckpt", DCP, "verify", "{source}", "--against", hf, "-j1"),
    Look("model", HF, "verify", ckpt, "--against", "{source}", "-j1"),
    Look("model", HF[:1], "stats", "{source}", "-j1"),
    Look("model", HF[:1], "ls", "{source}", "--digest", "-j1"),
    Look("model", HF, "ls", "{source}", "--digest", "--as", "megatron", "--ep", "2", "--rank", "0", "-j1"),
    Look("model", HF[:1], "cat", "{source}", "lm_head.weight[0:4, 0:4]", "-q"),
    Look("ckpt", DCP[:2], "inspect", "{source}", "--args"),
]
seen = set()
turn = 0
for job in JOBS:
    for file in job.files:
        # Ever further apart, then closer and closer to the last read.
        last, beyond = 0, None
        while beyond is None or beyond - last > 1:
            n = last + max(1, last // 2) if beyond is None else (last + beyond) // 2
            if stopped(job, n, CHANGES[turn % len(CHANGES)], file):
                last = n
            else:
                beyond = n
            turn += 1
    for file in job.files:
        expect((job.name(), file, True) in seen, f"{job.command}: no change of {file} was told")
if HAS_MPI:
    for rank, n in ((1, 3), (1, 8), (0, 8)):
        of_ranks("model.safetensors", rank, n)
finish(500)
