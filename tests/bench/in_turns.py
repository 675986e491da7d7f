"""The common part of programs that time whole processes in turns: their options, a folder for their files,
and files in the page cache. Standard library only, and little of it: the memory of a process begins as a copy
of its parent's."""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time


def options():
    """MCKPT [--folder DIR] [--rounds N] [--threads N] [--mib N] [--only WORD]"""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("mckpt")
    parser.add_argument("--folder")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--mib", type=int, default=2048)
    parser.add_argument("--only", default="")
    return parser.parse_args()


def work_folder(named):
    """The folder that was named, or a new one; it is there."""
    folder = pathlib.Path(named or tempfile.mkdtemp(prefix="mckpt_bench_"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def has_torch():
    """Asked of another process, so that this one stays small."""
    return subprocess.run([sys.executable, "-c", "import torch, safetensors"], capture_output=True).returncode == 0


def make_model(folder, options):
    """Makes the model (make_model.py) unless the folder is there."""
    if not folder.exists():
        here = pathlib.Path(__file__).resolve().parent
        subprocess.run([sys.executable, here / "make_model.py", folder, *map(str, options)], check=True)
    return folder


def warm(folder):
    """Reads all files of the folder, so that they are in the page cache."""
    for path in folder.rglob("*"):
        if path.is_file():
            with open(path, "rb") as file:
                while file.read(8 << 20):
                    pass


def run(command):
    """seconds, processor seconds, bytes read, bytes written, calls, peak bytes"""
    begin = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    seconds = time.perf_counter() - begin
    io = dict(line.split(": ") for line in pathlib.Path(f"/proc/{child.pid}/io").read_text().splitlines())
    errors = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"{command}: {errors.decode()}")
    return (
        seconds,
        usage.ru_utime + usage.ru_stime,
        int(io["rchar"]),
        int(io["wchar"]),
        int(io["syscr"]) + int(io["syscw"]),
        usage.ru_maxrss * 1024,
    )
