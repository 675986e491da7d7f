"""The calls of a conversion when its result has its name, and the files that are durable by then."""

import json
import os
import re
import shutil
import subprocess

from mckpt_tests.checks import expect, finish
from mckpt_tests.folders import scratch
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import FAULTY_IO, MCKPT, TINY_MODEL

folder = scratch()
MODEL = TINY_MODEL
CONVERT = ["convert", "hf-to-fsdp", MODEL]


def path(*names):
    return os.path.join(folder.name, *names)


def a_missing_report_is_told():
    """The result is published; the report fails when it is made."""
    result = run_mckpt(
        *CONVERT, path("reported"), "-q", "--report", path("report.json"), env={"LD_PRELOAD": FAULTY_IO, "FAULTY_IO": "rename:4:EIO"}
    )
    expect(
        result.returncode == 5 and f"the result is published as {path('reported', 'release')}" in result.stderr,
        f"report: {result.returncode} {result.stderr[:300]}",
    )
    expect("--resume" not in result.stderr, f"report: {result.stderr}")


def calls(*command):
    """The calls that name or make durable, as "fsync NAME", "rename FROM TO", "unlink NAME"; nothing where none can be watched."""
    log = path("calls")
    watched = subprocess.run(
        ["strace", "-f", "-y", "-o", log, "-e", "trace=fsync,rename,renameat,renameat2,unlink,unlinkat,mkdir", *map(str, command)],
        capture_output=True,
        text=True,
    )
    expect(watched.returncode == 0, f"strace: {watched.stderr[:300]}")
    found = []
    with open(log) as f:
        for line in f:
            if call := re.search(r"(fsync|rename|unlink|mkdir)\w*\((.*)\) += 0", line):
                names = re.findall(r'"([^"]*)"', call[2]) or re.findall(r"<([^>]*)>", call[2])
                found.append(" ".join([call[1], *(os.path.relpath(os.path.join(path(), n), path()) for n in names)]))
    return found


def what_is_durable():
    """New folders and all that they hold, before the result has its name; the name, before the tracker says it."""
    if not shutil.which("strace") or subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True).returncode != 0:
        return print("no strace: the order of calls is not looked at")
    done = calls(MCKPT, *CONVERT, path("deep", "er"), "-q", "-j1")
    tmp = "deep/er/.release.mckpt-tmp"

    def in_order(*wanted):
        at = -1
        for call in wanted:
            later = [i for i, c in enumerate(done) if c == call and i > at]
            if not expect(later, f"no '{call}' behind the others of {wanted}: {done}"):
                return
            at = later[0]

    named, told, ended = (
        f"rename {tmp} deep/er/release",
        "rename latest_checkpointed_iteration.txt deep/er/latest_checkpointed_iteration.txt",
        "unlink deep/er/release/.plan",
    )
    in_order("mkdir deep", "fsync .", named)
    in_order("mkdir deep/er", "fsync deep", named)
    for name in ("__0_0.distcp", ".metadata", "hf_assets/config.json", "hf_assets", ".plan"):
        in_order(f"fsync {tmp}/{name}", f"fsync {tmp}", named)
    in_order(f"fsync {tmp}", f"fsync {tmp}/.publish", f"rename {tmp}/.publish {tmp}/.plan", f"fsync {tmp}", named)
    in_order(named, "fsync deep/er", told, "fsync deep/er", ended)
    expect(
        not any(c.startswith("fsync") and c.split()[1].startswith(tmp) for c in done[done.index(named) :]), f"made durable too late: {done}"
    )
    done = calls(MCKPT, "export", path("deep", "er"), path("hf"), "-q", "-j1")
    for name in ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"):
        in_order(f"fsync .hf.mckpt-tmp/{name}", "fsync .hf.mckpt-tmp", "rename .hf.mckpt-tmp hf", "fsync .", "unlink hf/.plan")


a_missing_report_is_told()
what_is_durable()
finish(20)
