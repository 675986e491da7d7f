"""pytorch_model.bin, or its index, beside safetensors files of other names than transformers looks for: transformers loads the .bin, vLLM the
others. Every command refuses the folder, in text and JSON. Names that transformers prefers, and the weights of an adapter, are not in question."""

import json
import os
import shutil

from mckpt_tests.checks import expect, finish
from mckpt_tests.folders import scratch_paths
from mckpt_tests.program import run_says as run
from mckpt_tests.setting import TINY_MODEL

path = scratch_paths()
LOADS = "; vLLM and SGLang load the safetensors files"


def folder_of(name, *files):
    os.mkdir(path(name))
    shutil.copy(os.path.join(TINY_MODEL, "config.json"), path(name))
    for file, source in files:
        shutil.copy(source, path(name, file))
    return path(name)


run(0, "convert", "safetensors-to-pt", TINY_MODEL, path("m.bin"), "-q")
run(0, "convert", "to-safetensors", TINY_MODEL, path("m.safetensors"), "-q")
shards = sorted(name for name in os.listdir(TINY_MODEL) if name.endswith(".safetensors"))
with open(path("index.json"), "w") as f:
    json.dump({"weight_map": {}}, f)

TWO = {
    "foo": [("pytorch_model.bin", path("m.bin")), ("foo.safetensors", path("m.safetensors"))],
    "variant": [("pytorch_model.bin", path("m.bin")), ("model.fp16.safetensors", path("m.safetensors"))],
    "consolidated": [("pytorch_model.bin", path("m.bin")), ("consolidated.safetensors", path("m.safetensors"))],
    "set": [("pytorch_model.bin", path("m.bin")), *((name, os.path.join(TINY_MODEL, name)) for name in shards)],
    "index": [("pytorch_model.bin", path("m.bin")), ("other.safetensors.index.json", os.path.join(TINY_MODEL, "model.safetensors.index.json")),
              *((name, os.path.join(TINY_MODEL, name)) for name in shards)],
    "sharded": [("pytorch_model.bin.index.json", path("index.json")), ("pytorch_model-00001-of-00001.bin", path("m.bin")),
                ("foo.safetensors", path("m.safetensors"))],
}
for name, files in TWO.items():
    two = folder_of(name, *files)
    words = ("MC1114", f"transformers loads {files[0][0]}{LOADS}", "move the files of the model that is not meant")
    run(1, "verify", two, words=words, no_words=("sound;",))
    for command in (["inspect", two], ["ls", two], ["stats", two], ["export", two, path("out")], ["convert", "hf-to-fsdp", two, path("out")],
                    ["convert", "to-safetensors", two, path("out.safetensors")], ["diff", two, TINY_MODEL], ["diff", TINY_MODEL, two],
                    ["verify", TINY_MODEL, "--against", two]):
        run(3, *command, words=words)
    run(1, "verify", two, "--against", TINY_MODEL, words=("MC1114", "not proven equal"))
    expect(not os.path.exists(path("out")) and not os.path.exists(path("out.safetensors")), f"{name}: something was written")

two = path("foo")
# Neither is chosen by the option for shards of one model.
run(3, "ls", two, "--model-files", "shards", words=("MC1114",))
error = json.loads(run(3, "diff", two, TINY_MODEL, "--json").stdout)["error"]
expect(error["code"] == "MC1114", f"diff --json: {error}")
findings = [f for f in json.loads(run(1, "verify", two, "--json").stdout)["findings"] if f["code"] == "MC1114"]
expect(len(findings) == 1 and "pytorch_model.bin and foo.safetensors" in findings[0]["message"], f"verify --json: {findings}")
# Such a folder does not describe a model for others either.
run(0, "convert", "hf-to-fsdp", TINY_MODEL, path("ck"), "-q", "--no-sync")
run(3, "export", path("ck"), path("out"), "--assets", two, words=("MC1114",))

# One model, as transformers takes it.
run(0, "diff", folder_of("usual", ("pytorch_model.bin", path("m.bin")), ("model.safetensors", path("m.safetensors")),
                         ("foo.safetensors", path("m.safetensors"))), TINY_MODEL, "-q")
run(0, "diff", folder_of("alone", ("foo.safetensors", path("m.safetensors")), ("other.bin", path("m.bin"))), TINY_MODEL, "-q")
run(0, "diff", folder_of("bin", ("pytorch_model.bin", path("m.bin"))), TINY_MODEL, "-q")
# An adapter changes a model that is elsewhere.
adapter = folder_of("adapter", ("pytorch_model.bin", path("m.bin")), ("adapter_model.safetensors", path("m.safetensors")))
run(3, "ls", adapter, words=("MC1114",))
with open(path("adapter", "adapter_config.json"), "w") as f:
    json.dump({"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["q_proj"]}, f)
run(0, "ls", adapter, no_words=("MC1114",))
finish(70)
