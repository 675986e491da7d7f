"""The live model on GPUs: loading, unsharding next to raw NCCL, export and saving next to the disk. Prints tables.

usage: live.py MCKPT [--ranks N] [--folder DIR] [--shape dense|moe|qwen3_5_moe|nemotron_h] [--grid "--tp 2"]... [--more "--until unshard"] [--repeat N] [--checkpoint N] [--cold]

The model is made in DIR (16 to 20 GB by default) unless it is there. --cold needs root. load.py measures loading beside other libraries.
"""

import argparse
import json
import mmap
import os
import shutil
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
parser = argparse.ArgumentParser(add_help=False)
parser.add_argument("mckpt")
parser.add_argument("--ranks", type=int, default=1)
parser.add_argument("--folder", default="/tmp/mckpt_live_bench")
parser.add_argument("--shape", choices=["dense", "moe", "qwen3_5_moe", "nemotron_h"], default="dense")
parser.add_argument("--layers", type=int, help="of dense and moe; of the others, how often the few layers of the golden model come again")
parser.add_argument("--grid", action="append")
parser.add_argument("--more", default="")
parser.add_argument("--repeat", type=int, default=5)
parser.add_argument("--device", default="cuda")
parser.add_argument("--cold", action="store_true")
parser.add_argument(
    "--checkpoint", type=int, default=0, help="so many times, saved, loaded back and exported, next to the disk's own speed"
)
a = parser.parse_args()

SHAPES = {
    "dense": dict(layers=36, hidden=4096, heads=32, kv=8, head_dim=128, ffn=12288, vocab=151936),
    "moe": dict(layers=12, hidden=2048, heads=32, kv=4, head_dim=128, ffn=6144, vocab=151936, experts=128, moe_ffn=768),
    "qwen3_5_moe": dict(like="qwen3_5_moe", width=32, depth=8),
    "nemotron_h": dict(like="nemotron_h", width=40, depth=24),
}
model = os.path.join(a.folder, a.shape)


def make():
    if not os.path.exists(os.path.join(model, "config.json")):
        shape = SHAPES[a.shape]
        if "like" in shape:
            shape = (
                shape
                | {"like": os.path.join(ROOT, "test_data", "golden", "models", shape["like"])}
                | ({"depth": a.layers} if a.layers else {})
            )
        elif a.layers:
            shape = shape | {"layers": a.layers}
        flags = [word for key, value in shape.items() for word in ("--" + key.replace("_", "-"), str(value))]
        subprocess.run([sys.executable, os.path.join(HERE, "make_model.py"), model, *flags, "--shard-bytes", str(4 << 30)], check=True)
    return [os.path.join(model, f) for f in sorted(os.listdir(model)) if f.endswith(".safetensors")]


files = make()
size = sum(os.path.getsize(f) for f in files)
print(f"{a.shape}: {size / 1e9:.1f} GB in {len(files)} files, {a.ranks} ranks", flush=True)


def warm():
    for f in files:
        with open(f, "rb", buffering=0) as source:
            while source.read(16 << 20):
                pass


def cool():
    os.sync()
    for f in files:
        fd = os.open(f, os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def launch(command, ranks=None, env=None):
    ranks = ranks or a.ranks
    start = [os.path.join(ROOT, "scripts", "mpirun"), "-n", str(ranks)] if ranks > 1 else []
    begin = time.time()
    run = subprocess.run([*start, *command], capture_output=True, text=True, env={**os.environ, **(env or {})})
    return run, time.time() - begin


def rates(name, times):
    found = [b / s / 1e9 for s, b in times if s > 0]
    print(
        f"    {name:8} best {max(found):7.2f}  median {statistics.median(found):7.2f} GB/s   {' '.join(f'{s:.3f}' for s, _ in times)} s of {times[0][1] / 1e9:.1f} GB",
        flush=True,
    )


def roundtrip(grid, repeat, *more, before=()):
    """Prints a run and its phases, after the phases of runs `before`; returns all of them."""
    run, wall = launch(
        [a.mckpt, "roundtrip", model, "--device", a.device, *grid.split(), "--repeat", str(repeat), "--json", *more, *a.more.split()]
    )
    try:
        told = json.loads(run.stdout)
    except ValueError:
        print(f"  {grid}: exit status {run.returncode}: {run.stdout[-500:]} {run.stderr[-2000:]}", flush=True)
        return list(before)
    phases = {}
    all_phases = [*before, *told["phases"]]
    for p in all_phases:
        phases.setdefault(p["name"], []).append((p["seconds"], p["bytes"]))
    print(
        f"  {told['grid']} {told['strategy']} {' '.join(more)}: {'DIFFERENT ' + str(told['differences'][:3]) if told['differences'] else 'equal' if told['equal'] else 'not compared'}, "
        f"{told['tensors']} tensors, {wall:.1f} s, weights {told['weights_bytes'] >> 20} MiB, gathered {told['gathered_bytes'] >> 20} MiB, host {told['peak_rss'] >> 20} MiB"
    )
    for name, times in phases.items():
        rates(name, times)
    return all_phases


def disk_read():
    """The speed that the disk gives to 16 threads that read past the page cache."""
    cool()
    script = """
import mmap, os, sys, threading, time
files, done, lock, step = sys.argv[1:], [0], threading.Lock(), 32 << 20
work = [(f, at) for f in files for at in range(0, os.path.getsize(f) // step * step, step)]
def read():
    buffer = mmap.mmap(-1, step)
    while True:
        with lock:
            if not work: return
            f, at = work.pop(0)
        fd = os.open(f, os.O_RDONLY | os.O_DIRECT)
        n = os.preadv(fd, [buffer], at); os.close(fd)
        with lock: done[0] += n
begin = time.time()
threads = [threading.Thread(target=read) for _ in range(16)]
[t.start() for t in threads]; [t.join() for t in threads]
print(f"{done[0] / (time.time() - begin) / 1e9:.2f} GB/s")
"""
    run = subprocess.run([sys.executable, "-c", script, *files], capture_output=True, text=True)
    print("  the disk read by 16 threads, O_DIRECT:", run.stdout.strip() or run.stderr[-300:], flush=True)


def disk_write():
    """The time of one thread that writes so; as durable as what is measured beside it."""
    step, count, path = 32 << 20, 128, os.path.join(a.folder, "written")
    buffer = mmap.mmap(-1, step)
    buffer.write(os.urandom(step))
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_DIRECT)
    os.posix_fallocate(fd, 0, count * step)
    begin = time.time()
    for i in range(count):
        os.pwrite(fd, buffer, i * step)
    os.fsync(fd)
    print(f"  the disk written by one thread, O_DIRECT: {count * step / (time.time() - begin) / 1e9:.2f} GB/s", flush=True)
    os.close(fd)
    os.unlink(path)


if a.cold:
    disk_read()
print("warm, from the page cache:", flush=True)
warm(), warm()
for grid in a.grid or [""]:
    roundtrip(grid, a.repeat)
if a.checkpoint:
    kept = os.path.join(a.folder, "kept")
    for grid in a.grid or [""]:
        phases = []
        for _ in range(a.checkpoint):
            shutil.rmtree(kept, ignore_errors=True)
            disk_write()
            phases = roundtrip(
                grid, 1, "--checkpoint", os.path.join(kept, "saved"), "--output", os.path.join(kept, "exported"), before=phases
            )
        shutil.rmtree(kept, ignore_errors=True)
if a.cold:
    print("cold, from the disk:", flush=True)
    for grid in a.grid or [""]:
        cool()
        roundtrip(grid, 1)
