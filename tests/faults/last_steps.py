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


def equal_experts(model):
    """A copy of the model in which expert 1 of every layer has the bytes of expert 0."""
    shutil.copytree(model, path("twins"))
    for name in os.listdir(path("twins")):
        if not name.endswith(".safetensors"):
            continue
        with open(path("twins", name), "r+b") as f:
            size = int.from_bytes(f.read(8), "little")
            header = json.loads(f.read(size))
            for tensor in header:
                twin = tensor.replace(".experts.0.", ".experts.1.")
                if twin != tensor and twin in header:
                    begin, end = header[tensor]["data_offsets"]
                    f.seek(8 + size + begin)
                    data = f.read(end - begin)
                    f.seek(8 + size + header[twin]["data_offsets"][0])
                    f.write(data)
    return path("twins")


def experts_are_compared_behind():
    """Experts that came out equal are looked for in the published result: what cannot be read there is no failure."""
    model = equal_experts(MODEL)
    not_compared = quiet = 0  # some reads have a second way, so that one without an effect is not the last
    for n in range(1, 10_000):
        shutil.rmtree(path("ck"), ignore_errors=True)
        result = run_mckpt(
            "convert", "hf-to-fsdp", model, path("ck"), "--no-sync", env={"LD_PRELOAD": FAULTY_IO, "FAULTY_IO": f"pread:{n}:EIO"}
        )
        published = os.path.exists(path("ck", "release"))
        expect(
            published == (result.returncode == 0),
            f"EIO at pread {n}: published {published}, exit status {result.returncode}: {result.stderr[:300]}",
        )
        if "experts were not compared" in result.stderr:
            not_compared += 1
        quiet = 0 if "EIO" in result.stderr or "Input/output" in result.stderr else quiet + 1
        if quiet == 20:
            break
    expect(not_compared > 0, "no read failed behind publishing")


def a_missing_report_is_told():
    """The result is published; the report fails when it is made."""
    result = run_mckpt(
        *CONVERT, path("reported"), "-q", "--report", path("report.json"), env={"LD_PRELOAD": FAULTY_IO, "FAULTY_IO": "rename:3:EIO"}
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
    in_order(named, "fsync deep/er", told, "fsync deep/er", ended)
    expect(
        not any(c.startswith("fsync") and c.split()[1].startswith(tmp) for c in done[done.index(named) :]), f"made durable too late: {done}"
    )
    done = calls(MCKPT, "export", path("deep", "er"), path("hf"), "-q", "-j1")
    for name in ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"):
        in_order(f"fsync .hf.mckpt-tmp/{name}", "fsync .hf.mckpt-tmp", "rename .hf.mckpt-tmp hf", "fsync .", "unlink hf/.plan")


experts_are_compared_behind()
a_missing_report_is_told()
what_is_durable()
finish(20)
