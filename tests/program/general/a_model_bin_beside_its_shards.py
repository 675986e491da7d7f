"""pytorch_model.bin beside the shards pytorch_model-*-of-N.bin of another save: transformers loads the file. The folder is refused where
their tensors differ, as one with two models in safetensors files is, and --model-files chooses. safetensors files come first."""

import os
import shutil

from mckpt_tests.checks import expect, finish
from mckpt_tests.folders import scratch_paths
from mckpt_tests.program import run_says as run
from mckpt_tests.setting import DATA, TINY_MODEL

path = scratch_paths()
OTHER = os.path.join(DATA, "pt", "one_tensor.pt")
SINGLE = "pytorch_model.bin"


shards = sorted(name for name in os.listdir(TINY_MODEL) if name.endswith(".safetensors"))
os.mkdir(path("two"))
shutil.copy(os.path.join(TINY_MODEL, "config.json"), path("two"))
for name in shards:
    run(0, "convert", "safetensors-to-pt", os.path.join(TINY_MODEL, name), path("two", name.replace("model-", "pytorch_model-").replace(".safetensors", ".bin")), "-q")
shutil.copytree(path("two"), path("alone"))
run(0, "convert", "safetensors-to-pt", TINY_MODEL, path("two", SINGLE), "-q")

# Equal tensors are not in question, but are said.
run(0, "verify", path("two"), words=("with equal tensors",), no_words=("not part of the model",))
run(0, "diff", path("two"), TINY_MODEL, "-q")

for name, words in (("values", "has other values in"), ("names", "is in the shards alone"), ("damaged", "cannot be read")):
    two = path(name)
    shutil.copytree(path("two"), two)
    if name == "values":
        run(0, "convert", "pt-to-safetensors", path("two", SINGLE), path("as.safetensors"), "-q")
        with open(path("as.safetensors"), "r+b") as f:
            f.seek(-1, 2)
            last = f.read(1)[0]
            f.seek(-1, 2)
            f.write(bytes([last ^ 1]))
        run(0, "convert", "safetensors-to-pt", path("as.safetensors"), os.path.join(two, SINGLE), "-q", "--overwrite")
    elif name == "names":
        shutil.copy(OTHER, os.path.join(two, SINGLE))
    else:
        os.truncate(os.path.join(two, SINGLE), 1000)
    loads = "transformers loads pytorch_model.bin; vLLM and SGLang load all of them, over each other"
    run(1, "verify", two, words=("MC1114", words, loads, "--model-files"), no_words=("not part of the model",))
    for command in (["export", two, path("out")], ["convert", "hf-to-fsdp", two, path("out")], ["diff", two, TINY_MODEL], ["diff", TINY_MODEL, two], ["stats", two]):
        run(3, *command, words=("error[MC1114]", words, loads))
    expect(not os.path.exists(path("out")), f"{name}: something was written")
run(0, "inspect", path("values"), words=("their data were not compared",))

# One is chosen.
two = path("values")
run(0, "diff", two, TINY_MODEL, "-q", "--model-files", "shards")
run(1, "diff", two, TINY_MODEL, "-q", "--model-files", "single")
run(0, "diff", two, path("values", SINGLE), "-q", "--model-files", "single")
run(0, "export", two, path("single"), "--model-files", "single", "-q", "--no-sync")
run(0, "diff", path("single"), path("values", SINGLE), "-q")
run(0, "verify", two, "--model-files", "single", words=("which was not chosen",), no_words=("MC1114",))
run(0, "verify", two, "--model-files", "shards", words=("which was not chosen",))
run(0, "verify", path("alone"), no_words=("MC1114",))

# Files of torch.save beside safetensors are read by nobody who finds the safetensors first.
shutil.copytree(TINY_MODEL, path("both"))
shutil.copy(path("values", SINGLE), path("both"))
run(0, "diff", path("both"), TINY_MODEL, "-q")
run(0, "inspect", path("both"), words=("beside this checkpoint, not shown: pytorch_model.bin",))
finish(60)
