"""One table of sources and commands: a model in a folder, in the hub's cache by either of its folders, in a folder without
config.json and in a lone file. Each command answers of all of them as it does of the folder; without a config the commands
that need one refuse both in the same words, and take both with --assets."""

import json
import os
import shutil

from mckpt_tests.checks import expect, finish
from mckpt_tests.folders import scratch
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

folder = scratch()
MODEL = os.path.join(DATA, "models", "tiny_qwen3_moe")


def path(*names):
    return os.path.join(folder.name, *names)


def make_sources():
    shutil.copytree(MODEL, path("whole"))
    hub = path("models--org--name")
    for name in ("blobs", "refs", "snapshots/abc"):
        os.makedirs(os.path.join(hub, name))
    with open(os.path.join(hub, "refs", "main"), "w", encoding="utf-8") as f:
        f.write("abc")
    for name in os.listdir(MODEL):
        shutil.copyfile(os.path.join(MODEL, name), os.path.join(hub, "blobs", name))
        os.symlink(f"../../blobs/{name}", os.path.join(hub, "snapshots", "abc", name))
    shutil.copytree(MODEL, path("bare"))
    os.remove(path("bare", "config.json"))
    made = run_mckpt("convert", "to-safetensors", path("whole"), path("lone.safetensors"), "--no-sync")
    assert made.returncode == 0, made.stderr


# The tensors of a model with its table; tensors of it; tensors outside the model.
WITH_TABLE = (
    ("convert", "to-fsdp", "@", "out", "--tp", "1", "--dp", "2"),
    ("convert", "hf-to-fsdp", "@", "out", "--tp", "2"),
    ("convert", "to-mcore", "@", "out", "--tp", "2"),
    ("convert", "to-pt", "@", "out", "--tp", "2"),
)
TENSORS = (
    ("convert", "to-dcp", "@", "out"),
    ("convert", "to-safetensors", "@", "out.safetensors"),
    ("convert", "to-hdf5", "@", "out.h5"),
)
REFUSED = (
    ("export", "@", "out"),
    ("convert", "reshard", "@", "out", "--dp", "2"),
    ("convert", "dequantize", "@", "out"),
)
WHOLE = ("whole", "models--org--name", os.path.join("models--org--name", "snapshots", "abc"))
BARE = ("bare", "lone.safetensors")


def answer(command, source, *more):
    """The exit status, and what is planned of how many tensors, or why nothing is."""
    words = [path(source) if word == "@" else path(word) if word.startswith("out") else word for word in command]
    result = run_mckpt(*words, "--dry-run", "--json", *more)
    said = json.loads(result.stdout)
    if result.returncode != 0:
        return result.returncode, said["error"]["code"], said["error"]["message"]
    return 0, {name: said[name] for name in ("tensors_in", "tensors_out", "copied", "fused", "dropped", "invented", "format")}


def alike(command, sources, *more):
    first = answer(command, "whole")
    for source in sources:
        got = answer(command, source, *more)
        expect(got == first, f"{' '.join(command)} of {source}: {got}, of the folder {first}")
    return first


make_sources()
for command in WITH_TABLE + TENSORS:
    expect(alike(command, WHOLE)[0] == 0, f"{' '.join(command)} takes the folder")
for command in REFUSED:
    expect(alike(command, WHOLE)[0] != 0, f"{' '.join(command)} refuses the folder")
    alike(command, BARE)
for command in TENSORS:
    alike(command, BARE)
for command in WITH_TABLE:
    refused = [answer(command, source) for source in BARE]
    expect(refused == 2 * [(3, "MC1001", "config.json was not found, and without it the model is not known")],
           f"{' '.join(command)} without a config: {refused}")
    alike(command, BARE, "--assets", path("whole"))
# Commands that only look at the model.
for command in (("layout", "@", "--tp", "2"), ("ls", "@", "--as", "fsdp", "--tp", "2"), ("mappings", "check", "@"),
                ("plot", "@", "--as", "fsdp", "-o", "out.svg")):
    words = [path(word) if word.startswith("out") else word for word in command]
    for source in WHOLE:
        result = run_mckpt(*(path(source) if word == "@" else word for word in words))
        expect(result.returncode == 0, f"{' '.join(command)} of {source}: {result.stderr[:300]}")
    for source in BARE:
        result = run_mckpt(*(path(source) if word == "@" else word for word in words))
        expect(result.returncode == 3 and "config.json was not found" in result.stderr,
               f"{' '.join(command)} of {source}: {result.stderr[:300]}")
# Either side of a comparison.
for source in WHOLE + BARE:
    for one, other in ((source, "whole"), ("whole", source)):
        result = run_mckpt("verify", path(one), "--against", path(other), "--json")
        expect(result.returncode == 0, f"verify {one} --against {other}: {result.stdout[:300]}")
finish(90)
