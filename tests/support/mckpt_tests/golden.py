"""What the golden tests share: the models drawn again from their recipes, and listings of single ranks."""
import concurrent.futures
import hashlib
import json
import os
import struct
import subprocess
import sys
import tempfile

from mckpt_tests.setting import DATA, GOLDEN_MODEL, MCKPT

GOLDEN = os.path.join(DATA, "golden")
failures = []
checked = 0
seen = {}  # packed file -> its lines


def sections(name):
    """The lines of a packed file: those before the first rank, then a list for each rank."""
    with open(os.path.join(GOLDEN, name)) as f:
        lines = f.read().splitlines()
    seen[name] = len(lines)
    head, ranks = [], []
    for line in lines:
        if line.startswith("rank "):
            ranks.append([])
        elif ranks:
            ranks[-1].append(line)
        else:
            head.append(line)
    return head, ranks


def fail(what):
    failures.append(what)
    if len(failures) <= 10:
        print("FAIL", what)


def expect_equal(what, got, want):
    """Lists in order; tells the first difference."""
    global checked
    checked += len(want)
    if got == want:
        return
    for i in range(max(len(got), len(want))):
        g, w = (side[i] if i < len(side) else None for side in (got, want))
        if g != w:
            return fail(f"{what}: line {i}: got {g}, want {w}")


class Models:
    """A folder of the golden models, drawn on first use."""

    def __init__(self):
        self.root = tempfile.TemporaryDirectory(prefix="mckpt_golden_")
        names = sorted(os.listdir(os.path.join(GOLDEN, "models")))
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(self.draw, names))

    def path(self, model):
        return os.path.join(self.root.name, model)

    def draw(self, model):
        source, folder = os.path.join(GOLDEN, "models", model), self.path(model)
        os.mkdir(folder)
        with open(os.path.join(source, "config.json")) as f, open(os.path.join(folder, "config.json"), "w") as out:
            out.write(f.read())
        subprocess.run([GOLDEN_MODEL, os.path.join(source, "tensors.txt"), os.path.join(folder, "model.safetensors")], check=True)

    def tensors(self, model):
        """name -> (shape, bytes), read here and not by mckpt."""
        return {name: (shape, data) for name, (_, shape, data) in safetensors(self.path(model)).items()}


def safetensors(folder):
    """name -> (type, shape, bytes) of all files of a folder."""
    tensors = {}
    for file in sorted(name for name in os.listdir(folder) if name.endswith(".safetensors")):
        with open(os.path.join(folder, file), "rb") as f:
            blob = f.read()
        n = struct.unpack("<Q", blob[:8])[0]
        tensors.update((name, (t["dtype"], t["shape"], blob[8 + n + t["data_offsets"][0]:8 + n + t["data_offsets"][1]]))
                       for name, t in json.loads(blob[8:8 + n]).items() if name != "__metadata__")
    return tensors


def listing(folder, *args, digest=True):
    """The rows of `mckpt ls --as`, or the text of its error."""
    run = subprocess.run([MCKPT, "ls", folder, *["--digest"] * digest, "--jsonl", "-q", "-j1", *map(str, args)],
                         capture_output=True, text=True, timeout=60)
    if run.returncode:
        return run.stderr
    return [json.loads(line) for line in run.stdout.splitlines()]


def text(numbers):
    return "x".join(map(str, numbers)) if numbers else "-"


def run_flags(line):
    """"run tp=2 dp=2 strategy=optim dtype=fp32 ..." of a golden Megatron-FSDP run as flags."""
    flags = ["--vocab-size", "auto", "--bucket-size", "0"]
    for part in line.split()[1:]:
        key, value = part.split("=")
        flags += [{"outer": "--hsdp-outer"}.get(key, f"--{key}"), value]
    return flags


def is_expert_bias(line):
    return ".mlp.experts.linear_fc" in line and ".bias" in line


def sha(*parts):
    return hashlib.sha256(b"".join(parts)).hexdigest()


def in_parallel(work, items):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for future in [pool.submit(work, *item) for item in items]:
            future.result()


def finish(lines, *folders):
    """Ends the test. Exactly so many lines must have been compared; with folders, from every file of theirs."""
    with open(os.path.join(GOLDEN, "contents.txt")) as f:
        contents = {name: int(count) for name, count in map(str.split, f)}
    expected = {name: count for name, count in contents.items() if name.split("/")[0] in folders}
    if folders and seen != expected:
        fail(f"the files seen are not those of contents.txt: {sorted(set(seen.items()) ^ set(expected.items()))}")
    if checked != lines:
        fail(f"{checked} lines compared, not {lines}")
    print(f"{len(seen)} files, {checked} lines compared, {len(failures)} differences")
    sys.exit(1 if failures else 0)
