"""Loading a Hugging Face model onto GPUs: mckpt.load beside the program's own load and beside other libraries, one process
each, in turns. Prints a table.

usage: load.py MCKPT [--folder DIR] [--shape dense|moe] [--ranks 1|2] [--repeat N] [--rounds N] [--only NAME]...

Everything is in the page cache. "process" is the time from the start of the process to its end, with its imports, the
driver and one load; "first" is the first load of a process that has imported the library and torch and has used
the GPU through torch once; "best" and "median" are of all later loads. With two ranks each process loads the whole model onto a
GPU of its own, at the same time. Libraries that are not installed are left out. PYTHONPATH and MCKPT_LIBRARY find the package.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
parser = argparse.ArgumentParser(add_help=False)
parser.add_argument("mckpt")
parser.add_argument("--folder", default="/tmp/mckpt_live_bench")
parser.add_argument("--shape", choices=["dense", "moe"], default="dense")
parser.add_argument("--ranks", type=int, default=1)
parser.add_argument("--repeat", type=int, default=5)
parser.add_argument("--rounds", type=int, default=2)
parser.add_argument("--device", default="cuda")
parser.add_argument("--only", action="append")
a = parser.parse_args()

model = os.path.join(a.folder, a.shape)
# live.py makes the model; no run of the program is wanted from it.
subprocess.run([sys.executable, os.path.join(HERE, "live.py"), "true", "--shape", a.shape, "--folder", a.folder, "--repeat", "0"], stdout=subprocess.DEVNULL, check=False)
files = [os.path.join(model, f) for f in sorted(os.listdir(model)) if f.endswith(".safetensors")]
size = sum(os.path.getsize(f) for f in files)

# Each defines load(), which returns what keeps the tensors alive.
LIBRARIES = {
    "mckpt.load": """
import mckpt
def load():
    return mckpt.load(model, device, progress=False).torch()
""",
    "mckpt.load tp 2 rank 1": """
import mckpt
def load():
    return mckpt.load(model, device, rank=1, tp=2, progress=False).torch()
""",
    "safetensors prefetch": """
from safetensors import safe_open
def load():
    kept = []
    loaders = [safe_open(f, "pt", device=device).prefetch(threads=8) for f in files]
    for loader in loaders:
        kept += [tensor for _, tensor in loader]
    return kept
""",
    "safetensors load_file": """
from safetensors.torch import load_file
def load():
    return [load_file(f, device=device) for f in files]
""",
    "fastsafetensors": """
from fastsafetensors import SafeTensorsFileLoader, SingleGroup
def load():
    loader = SafeTensorsFileLoader(SingleGroup(), device, nogds=True)
    loader.add_filenames({0: files})
    buffers = loader.copy_files_to_device()
    return loader, buffers, [buffers.get_tensor(k) for k in loader.get_keys()]
""",
    "instanttensor": """
from instanttensor import safe_open
def load():
    with safe_open(files, framework="pt", device=int(device[5:])) as f:
        return dict(f.tensors())
""",
    "runai_model_streamer": """
import os
os.environ.setdefault("RUNAI_STREAMER_CONCURRENCY", "16")
from runai_model_streamer import SafetensorsStreamer
def load():
    out = {}
    with SafetensorsStreamer() as s:
        s.stream_files(files)
        for name, tensor in s.get_tensors():
            out[name] = tensor.to(device)
    return out
""",
}
RUN = """
import gc, json, sys, time
files, model, device, repeat = json.loads(sys.argv[1])
{library}
if repeat:
    import torch
    sync = torch.cuda.synchronize if device != "cpu" else (lambda: None)
    torch.ones(1, device=device)
    sync()
times = []
for i in range(max(repeat, 1)):
    begin = time.time()
    kept = load()
    if repeat: sync()
    times.append(time.time() - begin)
    del kept
    gc.collect()
    if repeat and device != "cpu": torch.cuda.empty_cache()
print(json.dumps(times))
"""


def start(name, repeat, rank):
    device = f"cuda:{rank}" if a.device == "cuda" else a.device
    code = RUN.format(library=LIBRARIES[name])
    return subprocess.Popen([sys.executable, "-c", code, json.dumps([files, model, device, repeat])], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(name, repeat):
    """The times of each rank, and the time of the slowest process."""
    begin = time.time()
    children = [start(name, repeat, rank) for rank in range(a.ranks)]
    out = [child.communicate() for child in children]
    wall = time.time() - begin
    if any(child.returncode for child in children):
        return (out[0][1].strip().splitlines() or ["no message"])[-1], wall
    return [json.loads(text.strip().splitlines()[-1]) for text, _ in out], wall


def program():
    """Seconds of the loads of the program itself, bf16 alone, on one GPU."""
    done = subprocess.run([a.mckpt, "roundtrip", model, "--device", a.device, "--until", "load", "--main-dtype", "none", "--repeat", str(a.repeat), "--json"],
                          capture_output=True, text=True)
    if done.returncode or not done.stdout:
        return (done.stderr.strip().splitlines() or ["no message"])[0]
    return [p["seconds"] for p in json.loads(done.stdout)["phases"] if p["name"] == "load"]


for f in files * 2:
    with open(f, "rb", buffering=0) as source:
        while source.read(16 << 20):
            pass
print(f"{a.shape}: {size / 1e9:.1f} GB in {len(files)} files, {a.ranks} ranks; GB/s for each rank", flush=True)
found = {name: {"process": [], "first": [], "later": []} for name in ["program", *LIBRARIES]}
failed = {}
for done in range(a.rounds):
    if a.ranks == 1:
        times = program()
        if isinstance(times, str):
            failed["program"] = times
        else:
            found["program"]["later"] += times
    for name in a.only or LIBRARIES:
        alone, wall = run(name, 0)
        times, _ = run(name, a.repeat) if not isinstance(alone, str) else (alone, 0)
        if isinstance(times, str):
            failed[name] = times
            continue
        found[name]["process"].append(wall)
        found[name]["first"] += [t[0] for t in times]
        found[name]["later"] += [x for t in times for x in t[1:]]
        print(f"  round {done + 1}: {name} {' '.join(f'{x:.2f}' for t in times for x in t)} s", flush=True)
for name, times in found.items():
    if name in failed:
        print(f"  {name:24} not run: {failed[name]}")
    elif times["later"]:
        bytes_each = size / 2 if "tp 2" in name else size
        rate = lambda seconds: f"{bytes_each / seconds / 1e9:6.2f}"
        print(f"  {name:24} best {rate(min(times['later']))}  median {rate(statistics.median(times['later']))}" +
              (f"  first {rate(statistics.median(times['first']))} ({statistics.median(times['first']):.2f} s)  process {statistics.median(times['process']):.2f} s" if times["first"] else ""), flush=True)
