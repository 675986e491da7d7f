"""Times comparing and cards on a model of 2 GiB, whole processes, next to `cmp`, `sha256sum`, `torch.equal` and `cp -r` of the same bytes.

usage: prove.py MCKPT [--folder DIR] [--rounds N] [--threads N] [--mib N] [--only WORD]

Contenders take turns, so that what else the machine does hits all of them alike. The table has best and
median wall time, both as multiples of cp's, and processor time. Files are in the page cache. `every value
differs`: the last bit of each value. Standard library only, but for torch.equal, which is left out where
torch is missing.
"""

import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

from in_turns import has_torch, make_model, options, warm, work_folder

a = options()

EQUAL = """
import sys, glob, os, torch
from safetensors import safe_open
same = True
for f in sorted(glob.glob(sys.argv[1] + '/*.safetensors')):
    with safe_open(f, 'pt') as one, safe_open(os.path.join(sys.argv[2], os.path.basename(f)), 'pt') as other:
        for k in one.keys():
            same &= torch.equal(one.get_tensor(k), other.get_tensor(k))
sys.exit(not same)
"""
TORCH = has_torch()


def run(command, status):
    """seconds, processor seconds"""
    begin = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    errors = child.stderr.read()
    _, ended, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - begin
    child.returncode = os.waitstatus_to_exitcode(ended)
    if child.returncode != status:
        sys.exit(f"{command} ended with {child.returncode}: {errors.decode()}")
    return seconds, usage.ru_utime + usage.ru_stime


def data_begin(f):
    return 8 + int.from_bytes(f.read(8), "little")


def differ(folder):
    """Flips the last bit of every value of 16 bits."""
    for path in folder.glob("*.safetensors"):
        with open(path, "r+b") as f:
            at = data_begin(f)
            while True:
                f.seek(at)
                block = f.read(8 << 20)
                if not block:
                    break
                number = int.from_bytes(block, "little") ^ int.from_bytes(b"\1\0" * (len(block) // 2), "little")
                f.seek(at)
                f.write(number.to_bytes(len(block), "little"))
                at += len(block)


work = work_folder(a.folder)
mckpt = str(pathlib.Path(a.mckpt).resolve())
quiet = ["-j", str(a.threads), "-q", "--progress", "none"]
model, same, other, ckpt, out = (work / name for name in ("model", "same", "other", "ckpt", "out"))
make_model(model, ["--layers", max(1, a.mib // 170), "--hidden", 4096, "--heads", 32, "--kv", 8, "--head-dim", 128, "--ffn", 3584,
                   "--vocab", 8192, "--shard-bytes", 512 << 20])
if not same.exists():
    shutil.copytree(model, same)
if not other.exists():
    shutil.copytree(model, other)
    differ(other)
if not ckpt.exists():
    subprocess.run([mckpt, "convert", "hf-to-fsdp", model, ckpt, "--tp", "2", "--dp", "2", *quiet], check=True, stdout=subprocess.DEVNULL)
card, old = str(work / "card.json"), str(work / "old.json")
subprocess.run([mckpt, "verify", model, "--report", old, *quiet], check=True, stdout=subprocess.DEVNULL)
files = sorted(str(f) for f in model.glob("*.safetensors"))
contenders = {
    "cp -r": (["cp", "-r", model, out], 0),
    "cmp, file by file": (["sh", "-c", 'for f in "$0"/*; do cmp "$f" "$1/${f##*/}" || exit 1; done', model, same], 0),
    "torch.equal": ([sys.executable, "-c", EQUAL, model, same], 0),
    "diff, all bits equal": ([mckpt, "diff", model, same, *quiet], 0),
    "diff, every value differs": ([mckpt, "diff", model, other, *quiet], 1),
    "diff, another grid": ([mckpt, "diff", ckpt, model, *quiet], 0),
    "sha256sum, one process": (["sha256sum", *files], 0),
    "sha256sum, two at once": (["sh", "-c", 'printf "%s\\0" "$@" | xargs -0 -n1 -P2 sha256sum', "sh", *files], 0),
    "verify": ([mckpt, "verify", model, *quiet], 0),
    "verify --report": ([mckpt, "verify", model, "--report", card, *quiet], 0),
    "verify --card": ([mckpt, "verify", model, "--card", old, *quiet], 0),
    "verify, sharded": ([mckpt, "verify", ckpt, *quiet], 0),
    "verify --report, sharded": ([mckpt, "verify", ckpt, "--report", card, *quiet], 0),
    "export": ([mckpt, "export", ckpt, out, "--no-sync", *quiet], 0),
    "export --card": ([mckpt, "export", ckpt, out, "--no-sync", "--card", card, *quiet], 0),
}
if not TORCH:
    del contenders["torch.equal"]
contenders = {who: c for who, c in contenders.items() if a.only in who or who == "cp -r"}
for folder in (model, same, other, ckpt):
    warm(folder)
results = {who: [] for who in contenders}
for _ in range(a.rounds):
    for who, (command, status) in contenders.items():
        shutil.rmtree(out, ignore_errors=True)
        results[who].append(run(command, status))
shutil.rmtree(out, ignore_errors=True)
best = {who: min(r[0] for r in rows) for who, rows in results.items()}
median = {who: statistics.median(r[0] for r in rows) for who, rows in results.items()}
bytes_ = sum(f.stat().st_size for f in model.rglob("*"))
print(f"{bytes_ / 2**30:.2f} GiB, {a.threads} threads, {a.rounds} rounds in turns; load {os.getloadavg()[0]:.1f}")
print("| what | best, median | wall / cp: best, median | processor time / cp's | GiB/s |\n|---|---|---|---|---|")
busy = {who: min(r[1] for r in rows) for who, rows in results.items()}
for who in contenders:
    print(f"| {who} | {best[who]:.2f} s, {median[who]:.2f} s | {best[who] / best['cp -r']:.2f} / {median[who] / median['cp -r']:.2f} "
          f"| {busy[who] / busy['cp -r']:.2f} | {bytes_ / 2**30 / best[who]:.1f} |", flush=True)
if not a.folder:
    shutil.rmtree(work)
