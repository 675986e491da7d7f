"""model.safetensors beside an index that does not name it: transformers loads the file, vLLM the shards. Where their tensors
differ every command refuses the folder, and says so in text and JSON; `verify` and `inspect` show it. --model-files chooses.
"""

import json
import os
import shutil
import struct

from mckpt_tests.checks import expect, finish
from mckpt_tests.folders import scratch_paths
from mckpt_tests.program import run_mckpt, run_says as run
from mckpt_tests.setting import TINY_MODEL

path = scratch_paths()


def read(file):
    with open(file, "rb") as f:
        size = struct.unpack("<Q", f.read(8))[0]
        header = json.loads(f.read(size))
        header.pop("__metadata__", None)
        data = f.read()
    return {name: (e["dtype"], e["shape"], data[slice(*e["data_offsets"])]) for name, e in header.items()}


def write(file, tensors):
    header, data = {}, b""
    for name, (dtype, shape, items) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(items)]}
        data += items
    text = json.dumps(header).encode()
    with open(file, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def made(name, change):
    """The model, and beside it all its tensors in one file, changed."""
    shutil.copytree(TINY_MODEL, path(name))
    tensors = {}
    for file in sorted(os.listdir(TINY_MODEL)):
        if file.endswith(".safetensors"):
            tensors.update(read(path(name, file)))
    change(tensors)
    write(path(name, "model.safetensors"), tensors)
    return path(name)


def other_values(tensors):
    dtype, shape, items = tensors["lm_head.weight"]
    tensors["lm_head.weight"] = dtype, shape, items[:-1] + bytes([items[-1] ^ 1])


LOADS = "transformers loads model.safetensors; vLLM and SGLang load the shards"
CASES = {
    "values": (other_values, "'lm_head.weight' has other values in model.safetensors"),
    "type": (lambda t: t.update({"lm_head.weight": ("F16", *t["lm_head.weight"][1:])}), "has another type or shape in model.safetensors"),
    "less": (lambda t: t.pop("model.norm.weight"), "'model.norm.weight' is in the shards alone"),
    "more": (lambda t: t.update({"more": ("U8", [1], b"x")}), "'more' is in model.safetensors alone"),
}
for name, (change, words) in CASES.items():
    two = made(name, change)
    run(1, "verify", two, words=("MC1114", words, LOADS, "--model-files"), no_words=("not part of the model",))
    run(3, "convert", "hf-to-fsdp", two, path("ck"), words=("error[MC1114]", words, LOADS))
    expect(not os.path.exists(path("ck")), f"{name}: something was written")

two = path("values")
for command in (
    ("convert", "to-safetensors", two, path("one.safetensors")),
    ("convert", "quantize", two, path("q"), "--to", "fp8-block"),
    ("diff", two, TINY_MODEL),
    ("diff", TINY_MODEL, two),
    ("verify", TINY_MODEL, "--against", two),
    ("stats", two),
    ("average", two, TINY_MODEL, path("a")) if "average" in run_mckpt("--help").stdout else ("stats", two),
):
    run(3, *command, words=("error[MC1114]",))
result = run(3, "diff", two, TINY_MODEL, "--json")
expect(json.loads(result.stdout)["error"]["code"] == "MC1114", f"diff --json: {result.stdout[:300]}")
result = run(1, "verify", two, "--json")
found = [f for f in json.loads(result.stdout)["findings"] if f["code"] == "MC1114"]
expect(len(found) == 1 and found[0]["file"] == "model.safetensors", f"verify --json: {result.stdout[:300]}")
# Looking reads no data: what their headers do not show is said as such.
run(0, "inspect", two, words=("their data were not compared",))
run_inspect = run_mckpt("inspect", path("less"))
expect("'model.norm.weight' is in the shards alone" in run_inspect.stdout + run_inspect.stderr, f"inspect: {run_inspect.stdout[:500]}")

# A shard that is lost is what is wrong: nobody is told to remove the only whole model.
lost = made("lost", other_values)
os.remove(os.path.join(lost, sorted(file for file in os.listdir(lost) if file.startswith("model-"))[0]))
for command in (["ls", lost], ["convert", "hf-to-fsdp", lost, path("ck_lost"), "--no-sync"], ["verify", lost]):
    result = run_mckpt(*command)
    expect(result.returncode != 0 and "MC1106" in result.stdout + result.stderr and "MC1114" not in result.stdout + result.stderr,
           f"{command[0]}: {result.returncode} {result.stdout[:300]} {result.stderr[:300]}")

# One is chosen.
run(0, "convert", "to-safetensors", two, path("shards.safetensors"), "--model-files", "shards", "-q")
run(0, "convert", "to-safetensors", two, path("single.safetensors"), "--model-files", "single", "-q")
run(0, "diff", path("shards.safetensors"), TINY_MODEL, "-q")
run(1, "diff", path("single.safetensors"), TINY_MODEL, "-q")
run(0, "diff", path("single.safetensors"), path("values", "model.safetensors"), "-q")
run(0, "--model-files", "single", "verify", two, no_words=("MC1114",))
run(0, "verify", two, "--model-files", "shards", no_words=("problem",))
run(0, "convert", "hf-to-fsdp", two, path("ck"), "--model-files", "single", "-q", "--no-sync")
run(1, "verify", path("ck"), "--against", TINY_MODEL)
run(0, "verify", path("ck"), "--against", two, "--model-files", "single")
run(2, "verify", two, "--model-files", "both")

# Equal tensors, and an index that names the file, are not in question.
same = made("same", lambda tensors: None)
run(0, "verify", same, words=("with equal tensors",))
run(0, "diff", same, TINY_MODEL, "-q")
named = made("named", other_values)
for file in os.listdir(named):
    if file.startswith("model-"):
        os.remove(os.path.join(named, file))
with open(path("named", "model.safetensors.index.json")) as f:
    index = json.load(f)
index["weight_map"] = {name: "model.safetensors" for name in index["weight_map"]}
with open(path("named", "model.safetensors.index.json"), "w") as f:
    json.dump(index, f)
run(0, "verify", named, no_words=("MC1114",))
finish(40)
