"""Runs the program that is tested."""
import os
import subprocess

from mckpt_tests.setting import MCKPT, MPIRUN


def run_mckpt(*args, ranks=1, env=None, cwd=None, timeout=120):
    """mckpt with these arguments, alone or as ranks: its exit status, and what it printed as text."""
    start = [MPIRUN, "-n", str(ranks), "--timeout", str(timeout - 20)] if ranks > 1 else []
    return subprocess.run([*start, MCKPT, *map(str, args)], capture_output=True, text=True, timeout=timeout, cwd=cwd,
                          stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})})
