"""Runs of the program in random orders: another number of threads, memory, ranks and cores, and threads and ranks that wait at random (the preloaded
`disturbed`); the answers and files of a run, without times.

    first = said_and_written(["stats", model, "--json"], in_order=PLAIN)
    again = said_and_written(["stats", model, "--json"], in_order=Order.drawn(r))
    unlike(first, again)                   "" or the first thing in which they differ
"""
import dataclasses
import functools
import hashlib
import os
import re
import shutil
import subprocess
import tempfile

from mckpt_tests.folders import files_of
from mckpt_tests.setting import MCKPT, MPIRUN, PRELOADS, built

DISTURBED = built("libdisturbed.so")
CORES = sorted(os.sched_getaffinity(0))

# Times and the memory of the process differ from run to run; the answer about a model in memory names its threads.
CHANGING = [(re.compile(rb'"(\w*seconds|peak_rss|threads)": ?[-\d.e+]+'), rb'"\1": <changing>'),
            (re.compile(rb" in \d+(\.\d+)? (ms|s|min)( \(\d+(\.\d+)? [KMGT]?i?B/s\))?"), b" in <time>")]


@dataclasses.dataclass
class Order:
    """`threads` and `memory` are for commands that take them, `ranks` for those that run as ranks; seed 0: nothing waits."""
    threads: int = 1
    memory: str = ""
    ranks: int = 1
    core: int = -1  # the only one; -1: any
    nice: int = 0
    seed: int = 0

    @classmethod
    def drawn(cls, r, ranks=(1,)):
        return cls(r.choice((1, 2, 3, 4, 8, 13)), r.choice(("", "1MiB", "3MiB", "40MiB")), r.choice(ranks),
                   r.choice((-1, -1, r.choice(CORES))), r.choice((0, 0, 5, 15)), r.randrange(1, 1 << 30))

    def front(self):
        """The words before the program."""
        out = ["taskset", "-c", str(self.core)] if self.core >= 0 and shutil.which("taskset") else []
        out += ["nice", "-n", str(self.nice)] if self.nice else []
        out += [MPIRUN, "-n", str(self.ranks), "--timeout", "200"] if self.ranks > 1 else []
        if self.seed and PRELOADS:
            out += ["env", f"LD_PRELOAD={DISTURBED}", f"DISTURBED={self.seed}:{(100, 400, 1500)[self.seed % 3]}"]
        return out

    def __str__(self):
        return " ".join(f"{name}={value}" for name, value in vars(self).items())


PLAIN = Order()


def steady(text):
    for pattern, word in CHANGING:
        text = pattern.sub(word, text)
    return text


def said_and_written(words, in_order, at=None, timeout=240):
    """Runs the program in an empty folder, which is removed. name -> text: exit status, both outputs, and the sum of each file that is
    there afterwards, of JSON the text. `{j}` and `{memory}` among the words become the options of the order."""
    options = {"{j}": ["-j", str(in_order.threads)], "{memory}": ["--max-memory", in_order.memory] if in_order.memory else []}
    words = [text for word in map(str, words) for text in options.get(word, [word])]
    # A busy machine shows progress after a while, and starts ranks late.
    words += ["--progress", "none"]
    if in_order.ranks > 1 and takes_rank_timeout(*words[:2 if words[0] == "convert" else 1]):
        words += ["--rank-timeout", "180"]
    with tempfile.TemporaryDirectory(prefix="run_", dir=at) as folder:
        done = subprocess.run([*in_order.front(), MCKPT, *words], cwd=folder, capture_output=True, stdin=subprocess.DEVNULL, timeout=timeout,
                              env={**os.environ, "COLUMNS": "120", "LC_ALL": "C.UTF-8", "NO_COLOR": "1"})
        out = {"exit status": str(done.returncode), "stdout": told(done.stdout), "stderr": told(done.stderr)}
        for name in files_of(folder):
            if ".mckpt-tmp" in name:
                continue  # an unfinished result has what threads had written when the run was refused
            with open(os.path.join(folder, name), "rb") as f:
                data = f.read()
            out[name] = told(data) if name.endswith(".json") else hashlib.sha256(steady(data) if name.endswith(".html") else data).hexdigest()
    return out


@functools.cache
def takes_rank_timeout(*command):
    return b"--rank-timeout" in subprocess.run([MCKPT, *command, "--help-all"], capture_output=True, check=True).stdout


def told(text):
    return steady(text).decode("utf-8", "replace")


def unlike(first, again):
    for name in sorted({*first, *again}, key=lambda name: (name not in ("exit status", "stderr", "stdout"), name)):
        a, b = first.get(name), again.get(name)
        if a == b:
            continue
        if a is None or b is None:
            return f"{name} is {'not ' if b is None else ''}there"
        if name == "exit status":
            return f"exit status {a} is now {b}: {again['stderr'][-1500:]}"
        i = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
        i = max(0, i - 60)
        return f"{name}: {a[i:i + 300]!r} is now {b[i:i + 300]!r}"
    return ""
