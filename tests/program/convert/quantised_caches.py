"""Models whose attention or cache alone is quantised are models of plain weights with scales beside them; no result
of values keeps a scale or a zero point of them, and codes under such a config are a contradiction.
"""

import json
import os
import shutil
import struct

from mckpt_tests.checks import expect, finish
from mckpt_tests.folders import scratch
from mckpt_tests.program import says
from mckpt_tests.setting import DATA, TINY_MODEL

temporary = scratch()
FP8 = os.path.join(DATA, "quantized", "deepseek_v3_128")
ATTENTION = {"weights": None, "input_activations": {"num_bits": 8, "type": "float"}, "targets": ["Qwen3Attention"]}
CACHE = {"num_bits": 8, "type": "int", "strategy": "tensor", "symmetric": False}
# As compressed-tensors 0.20.0 and ModelOpt write them.
ATTENTION_ALONE = {"quant_method": "compressed-tensors", "format": "dense", "config_groups": {"group_0": ATTENTION}}
CACHE_ALONE = {"quant_method": "compressed-tensors", "format": "dense", "config_groups": {}, "kv_cache_scheme": CACHE}
MODELOPT = {"quant_method": "modelopt", "quant_algo": None, "kv_cache_quant_algo": "FP8"}
OF_MODELS = {"attention": ATTENTION_ALONE, "cache": CACHE_ALONE, "modelopt": MODELOPT}


def at(*names):
    return os.path.join(temporary.name, *names)


def declare(folder, entry):
    path = os.path.join(folder, "config.json")
    with open(path) as f:
        config = {**json.load(f), "quantization_config": entry}
    with open(path, "w") as f:
        json.dump(config, f)


def model(name, source, entry):
    """A copy of a model with scales and zero points of queries, keys and values in a file of their own."""
    folder = at(name)
    shutil.copytree(source, folder)
    for file in ("mckpt_manifest.json", "model.safetensors.index.json"):
        if os.path.exists(os.path.join(folder, file)):
            os.remove(os.path.join(folder, file))
    header, data = {}, b""
    for part, kind, dtype, content in (
        (part, kind, dtype, content)
        for part in "qkv"
        for kind, dtype, content in (("scale", "BF16", b"\x00\x3f"), ("zero_point", "F8_E4M3" if part == "q" else "I8", b"\x01"))
    ):
        header[f"model.layers.0.self_attn.{part}_{kind}"] = {"dtype": dtype, "shape": [1], "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    with open(os.path.join(folder, "scales.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)
    weights = {}
    for file in sorted(os.listdir(folder)):
        if file.endswith(".safetensors"):
            with open(os.path.join(folder, file), "rb") as f:
                size = struct.unpack("<Q", f.read(8))[0]
                weights.update({tensor: file for tensor in json.loads(f.read(size)) if tensor != "__metadata__"})
    with open(os.path.join(folder, "model.safetensors.index.json"), "w") as f:
        json.dump({"metadata": {}, "weight_map": weights}, f)
    declare(folder, entry)
    return folder


def names(folder):
    return [tensor["name"] for tensor in json.loads(says(0, "", "ls", folder, "--json"))["tensors"]]


plain = names(TINY_MODEL)
for name, entry in OF_MODELS.items():
    folder = model(name, TINY_MODEL, entry)
    says(0, ": sound", "verify", folder)
    says(0, "left out 6 scales of activations or caches alone", "convert", "dequantize", folder, at(name + "_values"), "--no-sync")
    expect(names(at(name + "_values")) == plain, f"{name}: the values are not the tensors of the model")
    with open(at(name + "_values", "config.json")) as f:
        expect("quantization_config" not in json.load(f), f"{name}: the result of values declares a quantisation")
    says(0, ": sound", "verify", at(name + "_values"))
    says(0, "left out are 6 scales of activations or caches alone", "convert", "to-mcore", folder, at(name + "_mcore"), "--no-sync")
    says(0, "equal, but 6 scales", "verify", at(name + "_mcore"), "--against", folder)
    says(0, "equal, but 6 scales", "verify", folder, "--against", at(name + "_mcore"))
    says(0, "equal, but 6 scales", "verify", folder, "--against", at(name + "_values"))
    says(0, "", "export", at(name + "_mcore"), at(name + "_back"), "--no-sync")
    expect(names(at(name + "_back")) == plain, f"{name}: the exported model has other tensors")
    # No weight is quantised that a result could be like.
    says(2, "is not quantised", "convert", "quantize", TINY_MODEL, at("nothing"), "--like", folder, "--no-sync")

# ModelOpt's own file may declare the cache alone.
folder = model("modelopt_file", TINY_MODEL, None)
with open(os.path.join(folder, "hf_quant_config.json"), "w") as f:
    json.dump({"producer": {"name": "modelopt"}, "quantization": {"quant_algo": None, "kv_cache_quant_algo": "FP8"}}, f)
says(0, ": sound", "verify", folder)

# Beside quantised weights they are left out, too.
with open(os.path.join(FP8, "config.json")) as f:
    declared = json.load(f)["quantization_config"]
folder = model("both", FP8, declared)
says(0, "", "convert", "dequantize", folder, at("both_values"), "--no-sync")
left = [name for name in names(at("both_values")) if "zero_point" in name or "scale" in name]
expect(not left, f"left in a folder of plain numbers: {left}")

# Codes under a config that declares a cache alone.
declare(folder, CACHE_ALONE)
says(1, "the config declares no quantised weights", "verify", folder)
says(3, "MC2016", "convert", "dequantize", folder, at("nothing"), "--no-sync")
finish(30)
