"""A file of weights is not written into a folder whose other files are then another model, also where the source is named as a file: no
command would read that folder afterwards. The name that programs load first is written, and so is a file in another folder."""

import json
import os
import shutil

from mckpt_tests.checks import expect, finish
from mckpt_tests.folders import scratch_paths, snapshot
from mckpt_tests.program import run_says as run
from mckpt_tests.setting import TINY_MODEL

path = scratch_paths()
TWO = "the folder of the result would then hold two models"


def refused(folder, *command, words):
    before = snapshot(path(folder))
    for more in ([], ["--dry-run"]):
        run(4, "convert", *command, "--no-sync", *more, words=("error[MC3003]", *words))
    expect(snapshot(path(folder)) == before, f"{command}: something was written")


def read(folder):
    """Every command reads the folder as before."""
    run(0, "ls", path(folder), no_words=("MC1114",))
    run(0, "diff", path(folder), TINY_MODEL, "-q")


for name in ("bin", "other"):
    os.mkdir(path(name))
    shutil.copy(os.path.join(TINY_MODEL, "config.json"), path(name))
source = path("bin", "pytorch_model.bin")
run(0, "convert", "safetensors-to-pt", TINY_MODEL, source, "-q", "--no-sync")
refused("bin", "pt-to-safetensors", source, path("bin", "x.safetensors"),
        words=(TWO, "pytorch_model.bin", "name the result model.safetensors"))
refused("bin", "pt-to-safetensors", path("bin"), path("bin", "x.safetensors"), words=("written into the source",))
read("bin")
run(0, "convert", "pt-to-safetensors", source, path("bin", "model.safetensors"), "--no-sync", "-q")
read("bin")
run(0, "convert", "pt-to-safetensors", source, path("bin", "again.safetensors"), "--no-sync", "-q")
read("bin")
run(0, "convert", "pt-to-safetensors", source, path("x.safetensors"), "--no-sync", "-q")

# The other way round, and a name that transformers does not load.
shutil.copy(path("x.safetensors"), path("other", "x.safetensors"))
refused("other", "safetensors-to-pt", path("other", "x.safetensors"), path("other", "pytorch_model.bin"), words=(TWO, "choose another folder"))
run(0, "convert", "safetensors-to-pt", path("other", "x.safetensors"), path("other", "x.bin"), "--no-sync", "-q")
read("other")

# Where config.json names the file of the weights, every reader takes that file.
os.mkdir(path("named"))
with open(os.path.join(TINY_MODEL, "config.json")) as f:
    config = json.load(f)
with open(path("named", "config.json"), "w") as f:
    json.dump({**config, "transformers_weights": "x.safetensors"}, f)
shutil.copy(source, path("named", "pytorch_model.bin"))
run(0, "convert", "pt-to-safetensors", path("named", "pytorch_model.bin"), path("named", "x.safetensors"), "--no-sync", "-q")
run(0, "verify", path("named"), "--against", TINY_MODEL, no_words=("MC1114",))

# The file that a save is named by means its folder.
run(0, "convert", "to-dcp", TINY_MODEL, path("dcp"), "-q", "--no-sync")
shutil.copy(os.path.join(TINY_MODEL, "config.json"), path("dcp"))
for name in (".metadata", ""):
    refused("dcp", "to-safetensors", path("dcp", name), path("dcp", "model.safetensors"), words=("written into the source",))
refused("dcp", "safetensors-to-pt", TINY_MODEL, path("dcp", "pytorch_model.bin"), words=(TWO, "a save of torch DCP, and config.json"))
read("dcp")
finish(60)
