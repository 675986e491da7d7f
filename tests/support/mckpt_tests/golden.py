"""The tensors that Megatron's own ranks held and saved (test_data/golden), and mckpt's list beside them."""
import hashlib
import json
import os

from mckpt_tests import checks
from mckpt_tests.checks import fail
from mckpt_tests.models import GOLDEN
from mckpt_tests.program import run_mckpt

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


def listing(folder, *args, digest=True):
    """The rows of `mckpt ls --as`, or the text of its error."""
    run = run_mckpt("ls", folder, *["--digest"] * digest, "--jsonl", "-q", "-j1", *args)
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


def report(runs):
    """Prints a line for each run: its text, or how many differences were found in it."""
    for run, text in sorted(runs.items()):
        found = sum(failure.startswith((run + " ", run + ",", run + ":")) for failure in checks.failures)
        print(f"{run}: {found} differences" if found else f"{run}: {text}")


def finish(lines, *folders):
    """Ends the test. Exactly so many lines must have been compared; with folders, from every file of theirs."""
    with open(os.path.join(GOLDEN, "contents.txt")) as f:
        contents = {name: int(count) for name, count in map(str.split, f)}
    expected = {name: count for name, count in contents.items() if name.split("/")[0] in folders}
    if folders and seen != expected:
        fail(f"the files seen are not those of contents.txt: {sorted(set(seen.items()) ^ set(expected.items()))}")
    if checks.checked != lines:
        fail(f"{checks.checked} lines compared, not {lines}")
    print(f"{len(seen)} files")
    checks.finish(lines)
