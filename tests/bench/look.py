"""Times looking at checkpoints, whole processes, next to Python programs that look at the same files.

usage: look.py MCKPT [--rounds N] [--only WORD] [--update]

Contenders take turns, so that what else the machine does hits all of them alike; best and median of all rounds are shown, the median of what
their processors were busy for, and the ratio of medians. Peak memory is the kernel's, of the whole process. --update puts the table into docs/performance.md. This program imports no library,
because the memory of a process begins as a copy of its parent's; peers that need one are left out where it is missing.
"""

import argparse
import datetime
import os
import pathlib
import platform
import re
import statistics
import struct
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
DOCUMENT = HERE.parent.parent / "docs" / "performance.md"
MIB = 1 << 20

PEERS = {
    "json": "import json,struct,sys; f=open(sys.argv[1],'rb'); n,=struct.unpack('<Q',f.read(8)); print(len(json.loads(f.read(n))))",
    "safe_open": "import sys; from safetensors import safe_open\n"
    "with safe_open(sys.argv[1],'np') as f: print(sum(len(f.get_slice(k).get_shape()) for k in f.keys()))",
    "torch.load": "import sys,torch; print(len(torch.load(sys.argv[1],mmap=True,weights_only=True)))",
    "FileSystemReader": "import sys; from torch.distributed.checkpoint import FileSystemReader\n"
    "print(len(FileSystemReader(sys.argv[1]).read_metadata().state_dict_metadata))",
    "torch statistics": "import sys,torch; from safetensors.torch import load_file\n"
    "torch.set_num_threads(2)\n"
    "for t in load_file(sys.argv[1]).values():\n"
    "  f=t.float(); print(f.min(),f.max(),f.mean(),f.std(),(t==0).sum(),t.isnan().sum(),t.isinf().sum())",
}
NEEDS = {
    "safe_open": ["safetensors", "numpy"],
    "torch.load": ["torch"],
    "FileSystemReader": ["torch"],
    "torch statistics": ["torch", "safetensors"],
}


def has(*modules):
    find = "import importlib.util,sys; sys.exit(any(importlib.util.find_spec(m) is None for m in sys.argv[1:]))"
    return subprocess.run([sys.executable, "-c", find, *modules]).returncode == 0


# ---- Files. Each returns the path and the bytes of its header.


def program(name, *args):
    subprocess.run([sys.executable, HERE / name, *map(str, args)], check=True, stdout=subprocess.DEVNULL)


def many_safetensors(folder):
    path = folder / "many.safetensors"
    program("make_many_tensors.py", path, 10_000)
    return path, path.stat().st_size - 32 * 10_000


def many_pt(folder):
    path = folder / "many.pt"
    code = (
        "import sys,torch; torch.save({f'model.layers.{i//192}.mlp.experts.{i//3%64}.{i%3}.weight': torch.zeros(4,4,dtype=torch.bfloat16)"
        " for i in range(10_000)}, sys.argv[1])"
    )
    subprocess.run([sys.executable, "-c", code, path], check=True)
    return path, path.stat().st_size  # a record of 64 bytes or more for each tensor: nearly all of it is header


def dcp(folder, tensors, ranks):
    path = folder / f"dcp_{tensors}"
    program("make_dcp_metadata.py", path, "--tensors", tensors, "--ranks", ranks)
    return path, (path / ".metadata").stat().st_size


def sparse(folder):
    """70 GB in 2,000 tensors, on disk a few pages."""
    path, each, count = folder / "sparse.safetensors", 35_000_000, 2_000
    entries = ",".join(
        f'"model.layers.{i // 10}.mlp.{i % 10}.weight":{{"dtype":"BF16","shape":[{each // 2}],"data_offsets":[{i * each},{(i + 1) * each}]}}'
        for i in range(count)
    )
    header = ("{" + entries + "}").encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header)
        f.truncate(8 + len(header) + each * count)
    return path, len(header)


def values(folder):
    """1 GiB of bfloat16 in 16 tensors: a normal distribution's bits, over and over."""
    path, each, count = folder / "values.safetensors", 64 * MIB, 16
    header = (
        "{"
        + ",".join(f'"w{i}":{{"dtype":"BF16","shape":[{each // 2}],"data_offsets":[{i * each},{(i + 1) * each}]}}' for i in range(count))
        + "}"
    ).encode()
    header += b" " * (-len(header) % 8)
    import array
    import random

    r = random.Random(1)
    bits = array.array("H", (struct.unpack("<I", struct.pack("<f", r.gauss(0, 0.02)))[0] >> 16 for _ in range(1 << 18)))
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header)
        for _ in range(each * count // (2 * len(bits))):
            bits.tofile(f)
    return path, len(header)


# name, files, commands of mckpt, peer, hold in s (None: not a time), reach
CASES = [
    ("10,000 tensors, .safetensors", many_safetensors, ["inspect", "ls"], ["json", "safe_open"], 0.020, "5-10 ms"),
    ("10,000 tensors, .pt", many_pt, ["inspect", "ls"], ["torch.load"], 0.020, "5-10 ms"),
    ("10,000 tensors, DCP", lambda f: dcp(f, 10_000, 8), ["inspect", "ls"], ["FileSystemReader"], 0.020, "5-10 ms"),
    ("100,000 tensors, DCP", lambda f: dcp(f, 100_000, 64), ["inspect", "ls"], ["FileSystemReader"], 0.5, "0.2 s"),
    ("70 GB sparse .safetensors, 2,000 tensors", sparse, ["inspect", "ls"], ["json", "safe_open"], 0.020, "5-10 ms"),
    ("1 GiB of bfloat16, every value", values, ["stats"], ["torch statistics"], None, ""),
]


def run(command):
    """Wall seconds, seconds of processors, and peak bytes."""
    begin = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    errors = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - begin
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"look.py: {' '.join(map(str, command))} ended with {child.returncode}: {errors.decode()}")
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def seconds_text(s):
    return f"{s * 1000:.1f} ms" if s < 0.1 else f"{s:.2f} s"


def measure(mckpt, case, rounds, folder):
    name, make, commands, peers, hold, reach = case
    path, header = make(folder)
    contenders = {f"`{c}`": [mckpt, c, path] for c in commands}
    contenders |= {p: [sys.executable, "-c", PEERS[p], path] for p in peers if has(*NEEDS.get(p, []))}
    times, used = {who: [] for who in contenders}, {who: [] for who in contenders}
    peaks = dict.fromkeys(contenders, 0)
    for n in range(rounds):
        for who, command in contenders.items():
            if who in peers and n >= max(3, rounds // 4):  # they take seconds
                continue
            seconds, processor_seconds, peak = run(command)
            times[who].append(seconds)
            used[who].append(processor_seconds)
            peaks[who] = max(peaks[who], peak)
    best_of_ours = min(statistics.median(times[f"`{c}`"]) for c in commands)
    rows = []
    for who in contenders:
        median, best = statistics.median(times[who]), min(times[who])
        ours = who.startswith("`")
        allowed = 64 * MIB + 4 * header
        memory = f"{peaks[who] / MIB:.0f} MiB" + (f" of {allowed / MIB:.0f}" if ours else "")
        held = ""
        if ours and hold:
            held = f"{seconds_text(hold)}; {reach}"
        elif ours:
            size = path.stat().st_size
            held = f"3 GB/s: {size / best / 1e9:.1f} best, {size / median / 1e9:.1f} median"
        ratio = "" if ours else f"{median / best_of_ours:.0f}x"
        rows.append(
            f"| {name} | {who} | {seconds_text(best)} | {seconds_text(median)} | {seconds_text(statistics.median(used[who]))} | {memory} | {held or ratio} |"
        )
        name = ""
    return rows


def processor():
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mckpt")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--only", default="")
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    version = subprocess.run([options.mckpt, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    lines = [
        f"{datetime.date.today()}, {processor()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the beginning, {version}, "
        f"`tests/bench/look.py build/mckpt --rounds {options.rounds}`.",
        "",
        "| files | who | best | median | processor time | peak memory | hold; reach, or how much slower |",
        "|---|---|---|---|---|---|---|",
    ]
    print(*lines, sep="\n", flush=True)
    for case in CASES:
        if not re.search(options.only, case[0]):
            continue
        if case[1] is not many_safetensors and case[1] is not sparse and case[1] is not values and not has("torch"):
            print(f"{case[0]}: left out, there is no torch to write it")
            continue
        with tempfile.TemporaryDirectory(prefix="mckpt_look_") as folder:
            rows = measure(options.mckpt, case, options.rounds, pathlib.Path(folder))
        print(*rows, sep="\n", flush=True)
        lines += rows
    if options.update:
        text = DOCUMENT.read_text()
        table = "\n".join(lines)
        DOCUMENT.write_text(re.sub(r"(?<=<!-- look.py begins -->\n).*?(?=<!-- look.py ends -->)", lambda _: table + "\n", text, flags=re.S))


main()
