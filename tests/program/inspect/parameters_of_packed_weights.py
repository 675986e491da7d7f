"""`inspect` counts the parameters of packed weights as the model has them: every width of compressed-tensors in both packings, rows that do not
fill their last word, codes of six bits, codes of four in signed bytes, and every width of GPTQ, which is not decoded."""
import json
import math
import os
import struct

from mckpt_tests.checks import expect, finish
from mckpt_tests.folders import scratch, write_safetensors
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

temporary = scratch()
SIZES = {"I32": 4, "I64": 8, "BF16": 2, "F16": 2, "F32": 4, "I8": 1, "U8": 1, "F8_E4M3": 1, "F8_E8M0": 1}
CHECKS = 0


def folder(tensors, quantization):
    path = os.path.join(temporary.name, str(CHECKS))
    os.makedirs(path)
    write_safetensors(path + "/model.safetensors",
                      {name: (dtype, shape, bytes(SIZES[dtype] * math.prod(shape)) if raw is None else raw) for name, (dtype, shape, raw) in tensors.items()})
    with open(path + "/config.json", "w") as f:
        json.dump({"model_type": "mystery", "quantization_config": quantization}, f)
    return path


def counts(path, parameters, what):
    """In the text and in JSON."""
    global CHECKS
    CHECKS += 1
    run, text = run_mckpt("inspect", path, "--json"), run_mckpt("inspect", path).stdout
    expect(run.returncode == 0 and json.loads(run.stdout)["parameters"] == parameters, f"{what}: not {parameters}: {run.stdout[:500]}")
    expect(f" {parameters:,} params" in text or f"({parameters:,}) params" in text, f"{what}: not {parameters}: {text[:500]}")


def packed(bits, rows, columns, whole):
    words = -(-columns // (32 // bits)) if whole else -(-columns * bits // 32)
    return {"a.weight_packed": ("I32", [rows, words], None), "a.weight_scale": ("BF16", [rows, 1], None),
            "a.weight_shape": ("I64", [2], struct.pack("<2q", rows, columns)), "norm.weight": ("BF16", [7], None)}


def declared(weights, form="pack-quantized", **more):
    return {"quant_method": "compressed-tensors", "format": form, "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}}, **more}


for bits in range(2, 9):
    weights = {"num_bits": bits, "type": "int", "strategy": "channel", "symmetric": True}
    for columns in (10, 33, 96, 100):
        for whole in (False, True):
            version = "0.17.1" if whole else "0.18.0"
            path = folder(packed(bits, 5, columns, whole), declared(weights, version=version))
            counts(path, 5 * columns + 7, f"{bits} bits, {columns} columns, packed by {version}")
    # The config need not say how many bits they have, or as a text.
    counts(folder(packed(bits, 5, 96, False), declared(weights | {"num_bits": str(bits)})), 5 * 96 + 7, f"{bits} bits in a text")
    whole = {"a.weight": ("I8", [5, 33], None), "a.weight_scale": ("BF16", [5, 1], None)}
    counts(folder(whole, declared(weights, "int-quantized")), 5 * 33, f"{bits} bits in bytes")
    # GPTQ: the bits of a column are in words one below the other; of 3 bits, 32 values in 3 words.
    gptq = {"a.qweight": ("I32", [160 * bits // 32, 24], None), "a.qzeros": ("I32", [1, 24 * bits // 32], None), "a.scales": ("F16", [1, 24], None),
            "a.g_idx": ("I32", [160], None), "norm.weight": ("BF16", [7], None)}
    counts(folder(gptq, {"quant_method": "gptq", "bits": bits}), 160 * 24 + 7, f"GPTQ, {bits} bits")

# Two widths in one model.
both = packed(3, 5, 33, False) | {name.replace("a.", "b."): tensor for name, tensor in packed(8, 6, 30, False).items()}
groups = {f"group_{bits}": {"targets": ["Linear"], "weights": {"num_bits": bits, "type": "int", "strategy": "channel", "symmetric": True}} for bits in (3, 8)}
counts(folder(both, {"quant_method": "compressed-tensors", "format": "pack-quantized", "version": "0.18.0", "config_groups": groups}),
       5 * 33 + 6 * 30 + 7, "3 and 8 bits")
# Four codes of six bits in three bytes, two of four bits in one.
floats = {"num_bits": 6, "type": "float", "strategy": "group", "group_size": 32, "symmetric": True}
mxfp6 = {"a.weight_packed": ("U8", [5, 48], None), "a.weight_scale": ("U8", [5, 2], None)}
counts(folder(mxfp6, declared(floats, "mxfp6-pack-quantized")), 5 * 64, "MXFP6")
mxfp4 = {"a.weight_packed": ("U8", [5, 32], None), "a.weight_scale": ("U8", [5, 2], None)}
counts(folder(mxfp4, declared(floats | {"num_bits": 4}, "mxfp4-pack-quantized")), 5 * 64, "MXFP4")
bytes_of_two = {"a.weight": ("I8", [5, 32], None), "a.scale": ("F8_E8M0", [5, 2], None)}
counts(folder(bytes_of_two, {"quant_method": "fp8", "weight_block_size": [128, 128]}), 5 * 64, "two codes in signed bytes")
# Every folder of the data has as many parameters as its values.
folders = 0
for place, _, files in sorted(os.walk(os.path.join(DATA, "quantized"))):
    if "config.json" not in files:
        continue
    folders += 1
    values = os.path.join(temporary.name, f"values{folders}")
    expect(run_mckpt("convert", "dequantize", place, values, "-q", "--no-sync").returncode == 0, f"{place} has no values")
    counts(place, json.loads(run_mckpt("inspect", values, "--json").stdout)["parameters"], place)
expect(folders > 15, f"{folders} folders")
for name in ("int3_zeros", "int4", "int8", "fp8"):
    counts(os.path.join(DATA, "quantized", "ordered_groups", name), 5 * 6 + 7 * 30 + 9 * 66 + 12 * 96, name)
finish(2 * CHECKS + folders + 1)
