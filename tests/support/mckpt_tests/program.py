"""Runs the program that is tested."""
import os
import subprocess

from mckpt_tests.checks import expect
from mckpt_tests.setting import MCKPT, MPIRUN


def run_mckpt(*args, ranks=1, env=None, cwd=None, timeout=120):
    """mckpt with these arguments, alone or as ranks: its exit status, and what it printed as text."""
    start = [MPIRUN, "-n", str(ranks), "--timeout", str(timeout - 20)] if ranks > 1 else []
    return subprocess.run([*start, MCKPT, *map(str, args)], capture_output=True, text=True, timeout=timeout, cwd=cwd,
                          stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})})


def run_says(status, *command, words=(), no_words=()):
    """Runs mckpt and expects its exit status, and words in its two outputs together."""
    run = run_mckpt(*command)
    text = run.stdout + run.stderr
    what = " ".join(os.path.basename(str(c)) for c in command)
    expect(run.returncode == status, f"{what}: exit status {run.returncode}, not {status}: {text[:600]}")
    for word in words:
        expect(word in text, f"{what}: lacks {word!r}: {text[:900]}")
    for word in no_words:
        expect(word not in text, f"{what}: has {word!r}: {text[:900]}")
    return run


def says(status, text, *command):
    """run_says() with one text. Returns what mckpt wrote to stdout."""
    return run_says(status, *command, words=(text,)).stdout
