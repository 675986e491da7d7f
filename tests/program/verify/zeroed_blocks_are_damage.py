"""Blocks of a DCP folder that became zeros, as after a crash of the machine: the error says that the file is damaged, which one, and of which
tensor the bytes were. A path of zeros is not a path that leads out of the folder.
"""

import json
import os
import shutil

from mckpt_tests.checks import expect, finish
from mckpt_tests.folders import scratch
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

temporary = scratch()
SOURCE = os.path.join(DATA, "dcp", "fsdp2")


def zeroed(name, file, begin, length):
    folder = os.path.join(temporary.name, name)
    shutil.copytree(SOURCE, folder)
    with open(os.path.join(folder, file), "r+b") as f:
        f.seek(begin)
        f.write(bytes(length))
    return folder


def says(folder, code, *texts):
    for run in (run_mckpt("verify", folder), run_mckpt("convert", "to-dcp", folder, folder + "_out", "--no-sync")):
        out = run.stdout + run.stderr
        expect(run.returncode in (1, 3), f"{folder}: exit status {run.returncode}: {out}")
        for text in (code, *texts):
            expect(text in out, f"{text} is not in {out}")
        expect("MC1004" not in out and "outside" not in out, out)
    expect(not os.path.exists(folder + "_out"), "a result was published")


with open(os.path.join(SOURCE, ".metadata"), "rb") as f:
    metadata = f.read()
tensors = json.loads(run_mckpt("ls", SOURCE, "--json").stdout)["tensors"]
for length in (1, 4, len("__1_0.distcp")):
    says(zeroed(f"path{length}", ".metadata", metadata.index(b"__1_0.distcp"), length), "MC1301", ".metadata", "damaged",
         "bytes that are zero", "tensor")
chunk = next(c for t in tensors if t["chunks"] and len(t["chunks"]) > 1 for c in t["chunks"] if c["file"] == "__1_0.distcp")
name = next(t["name"] for t in tensors if t["chunks"] and chunk in t["chunks"])
says(zeroed("record", chunk["file"], chunk["offset"], chunk["bytes"]), "MC1310", chunk["file"], name, "damaged", "zeros")
says(zeroed("head", chunk["file"], chunk["offset"], 64), "MC1310", chunk["file"], name, "damaged")
finish(least=30)
