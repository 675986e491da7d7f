"""Integers of 3, 5, 6 and 7 bits as compressed-tensors packed them up to 0.17.1, with whole codes in each word: the values are its own, and
`like-source` gives its codes back. The number of words says which packing it is, or the version in the config; where neither does, the model
is refused."""

import hashlib
import json
import os
import shutil
import struct

from mckpt_tests.checks import expect, finish
from mckpt_tests.folders import safetensors, scratch
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

folder = scratch()
WHOLE = os.path.join(DATA, "quantized", "whole_codes")
with open(os.path.join(WHOLE, "expected.json")) as f:
    EXPECTED = json.load(f)


def path(*names):
    return os.path.join(folder.name, *names)


def run(status, *command, words=()):
    result = run_mckpt(*command)
    text = result.stdout + result.stderr
    what = " ".join(os.path.basename(str(c)) for c in command)
    expect(result.returncode == status, f"{what}: exit status {result.returncode}, not {status}: {text[:600]}")
    expect(all(word in text for word in words), f"{what}: lacks one of {words}: {text[:900]}")
    return result


def with_version(name, source, version):
    shutil.copytree(source, path(name))
    file = path(name, "config.json")
    with open(file) as f:
        config = json.load(f)
    config["quantization_config"].pop("version")
    if version is not None:
        config["quantization_config"]["version"] = version
    with open(file, "w") as f:
        json.dump(config, f)
    return path(name)


for name in ("int3", "int5", "int6", "int7"):
    source = os.path.join(WHOLE, name)
    run(0, "convert", "dequantize", source, path(name), "-q", "--no-sync")
    values = safetensors(path(name))
    for tensor, (dtype, shape, items) in values.items():
        want = EXPECTED.pop(f"{name}/{tensor}")
        expect(dtype == "BF16" and shape == want["shape"], f"{name} {tensor}: {dtype} {shape}")
        expect(hashlib.sha256(items).hexdigest() == want["sha256"], f"{name} {tensor}: other values")
    run(0, "verify", source, words=("sound",))
    run(0, "verify", path(name), "--against", source)
    # Codes of today's version for the same values would be others, in the same number of words.
    run(0, "convert", "quantize", path(name), path(name + "_again"), "--to", "like-source", "--like", source, "-q", "--no-sync")
    expect(safetensors(path(name + "_again")) == safetensors(source), f"{name}: other codes")

    for version in ("0.8.0", "0.17.1", "0.15.0.1"):
        old = with_version(f"{name}_{version}", source, version)
        run(1, "diff", old, source, words=("no tensor differs",))
    # A version of today, as of a config that another program wrote anew, decides what the words do not: other values.
    new = with_version(f"{name}_new", source, "0.18.0")
    expect("no tensor differs" not in run(1, "diff", new, source).stdout, f"{name}: the same values by another packing")
    for version in (None, "0.17.2a20260301", "of mine"):
        none = with_version(f"{name}_{version}", source, version)
        words = ("MC2016", f"packs codes of {name[3]} bits in two ways", "up to 0.17.1, or from 0.18 on")
        run(3, "convert", "dequantize", none, path("out"), words=words)
        run(1, "verify", none, words=words[:2])
        error = json.loads(run(3, "convert", "dequantize", none, path("out"), "--json").stdout)["error"]
        expect(error["code"] == "MC2016", f"--json: {error}")
        expect(not os.path.exists(path("out")), f"{name}: something was written")
expect(not EXPECTED, f"not read: {sorted(EXPECTED)}")

# Bits between the codes of two words are damage.
damaged = path("damaged")
shutil.copytree(os.path.join(WHOLE, "int3"), damaged)
with open(os.path.join(damaged, "model.safetensors"), "r+b") as f:
    size = struct.unpack("<Q", f.read(8))[0]
    begin = json.loads(f.read(size))["model.layers.2.mlp.up_proj.weight_packed"]["data_offsets"][0]
    f.seek(8 + size + begin + 3)
    byte = f.read(1)[0]
    f.seek(-1, 1)
    f.write(bytes([byte | 0x80]))
run(1, "verify", damaged, words=("behind the codes of a word, of 96 columns: 1 of 20, the first is row 0",))
finish(120)
