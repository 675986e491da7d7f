"""Codes of methods that are not decoded are never called values: with and without a config that declares them."""

import json
import os
import struct

from mckpt_tests.checks import expect, finish
from mckpt_tests.folders import scratch
from mckpt_tests.program import run_says

temporary = scratch()
FRONT = "model.layers.0.self_attn.q_proj."
KINDS = {
    "gptq": {"qweight": ("I32", [2, 4]), "qzeros": ("I32", [1, 1]), "scales": ("F16", [1, 4]), "g_idx": ("I32", [16])},
    "bitsandbytes": {"weight": ("I8", [4, 4]), "SCB": ("F32", [4]), "weight_format": ("U8", [])},
}
BYTES = {"I32": 4, "F16": 2, "I8": 1, "F32": 4, "U8": 1, "BF16": 2}


def says(status, texts, *command):
    run = run_says(status, *command, words=texts)
    return run.stdout + run.stderr


def write(folder, tensors, config):
    os.makedirs(folder)
    header, data = {}, b""
    for name, (dtype, shape) in tensors.items():
        size = BYTES[dtype]
        for n in shape:
            size *= n
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + size]}
        data += b"\x01" * size
    text = json.dumps(header).encode()
    with open(os.path.join(folder, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump({"model_type": "mystery", **config}, f)
    return folder


result = os.path.join(temporary.name, "result")
for method, parts in KINDS.items():
    for declared in (True, False):
        tensors = {FRONT + part: entry for part, entry in parts.items()} | {"model.norm.weight": ("BF16", [4])}
        config = {"quantization_config": {"quant_method": method, "bits": 4}} if declared else {}
        folder = write(os.path.join(temporary.name, f"{method}{declared}"), tensors, config)
        cause = f"quantised by {method}" if declared else "shows that the weights are quantised"
        for command in (("dequantize",), ("quantize", "--scheme", "fp8-block"), ("quantize", "--like", folder)):
            out = says(3, ("MC2004", cause), "convert", command[0], folder, result, *command[1:], "--no-sync")
            expect("are the values" not in out, f"codes are called values: {out}")
        shown = FRONT + ("qweight" if method == "gptq" else "weight")
        for command in (("stats", folder), ("cat", folder, shown)):
            out = says(0, ("warning", cause, "codes and scales, not values"), *command)
            expect(declared or FRONT in out.split("; the numbers of such")[0], f"no tensor is named: {out}")
            expect("not values" not in says(0, (), *command, "--raw"), "a warning where codes were asked for")
    # Packed codes are counted one by one, and nothing beside them.
    parameters = 64 + 4 if method == "gptq" else 16 + 4
    says(0, (f"{parameters} params",), "inspect", folder)
plain = write(os.path.join(temporary.name, "plain"), {"a.weight": ("BF16", [4, 4])}, {})
for command in (("stats", plain), ("cat", plain, "a.weight")):
    expect("warning" not in says(0, (), *command), "a warning of plain numbers")
says(3, ("use the source as it is",), "convert", "dequantize", plain, result, "--no-sync")
finish(40)
