"""compressed-tensors, strategy `tensor`: one scale [1] is read for a weight of one row as for others, packed or in bytes, with its zero point."""

import json
import os
import struct

from mckpt_tests.checks import expect, finish
from mckpt_tests.folders import scratch
from mckpt_tests.program import run_mckpt

folder = scratch()
NAME = "model.layers.0.mlp.shared_expert_gate.weight"
CODES = [-8, -3, 0, 1, 2, 5, 6, 7]
HALF = struct.pack("<H", 0x3F00)  # 0.5 in bfloat16


def write(name, tensors, weights, file_format):
    path = os.path.join(folder.name, name)
    os.mkdir(path)
    header, data = {}, b""
    for tensor, (dtype, shape, items) in tensors.items():
        header[tensor] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(items)]}
        data += items
    text = json.dumps(header).encode()
    with open(os.path.join(path, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)
    group = {"targets": ["Linear"], "weights": {"type": "int", "strategy": "tensor", **weights}}
    quantization = {"quant_method": "compressed-tensors", "format": file_format, "config_groups": {"group_0": group}}
    with open(os.path.join(path, "config.json"), "w") as f:
        json.dump({"architectures": ["SomeModel"], "model_type": "some", "quantization_config": quantization}, f)
    return path


def raw(path):
    """{tensor: its bytes}"""
    with open(os.path.join(path, "model.safetensors"), "rb") as f:
        size = struct.unpack("<Q", f.read(8))[0]
        header = json.loads(f.read(size))
        header.pop("__metadata__", None)
        data = f.read()
    return {name: data[slice(*entry["data_offsets"])] for name, entry in header.items()}


def bf16(values):
    return b"".join(struct.pack("<f", value)[2:] for value in values)


def packed_rows(rows):
    word = sum((code + 8) << 4 * i for i, code in enumerate(CODES))
    return ("I32", [rows, 1], struct.pack("<I", word) * rows)


for rows in (1, 2):
    for zero in (None, 3):
        for kind in ("packed", "bytes"):
            bits = 4 if kind == "packed" else 8
            parts = {f"{NAME}_scale": ("BF16", [1], HALF)}
            if kind == "packed":
                parts[f"{NAME}_packed"] = packed_rows(rows)
                parts[f"{NAME}_shape"] = ("I64", [2], struct.pack("<qq", rows, len(CODES)))
            else:
                parts[NAME] = ("I8", [rows, len(CODES)], struct.pack("<8b", *CODES) * rows)
            if zero is not None:
                parts[f"{NAME}_zero_point"] = ("I8", [1], struct.pack("<b", zero))
            name = f"{kind}_{rows}_{zero}"
            source = write(name, parts, {"num_bits": bits, "symmetric": zero is None}, "pack-quantized" if kind == "packed" else "int-quantized")
            result = run_mckpt("convert", "dequantize", source, source + "_values", "--json", "--no-sync")
            if not expect(result.returncode == 0, f"{name}: {result.stdout[:500]}{result.stderr[:500]}"):
                continue
            with open(os.path.join(source + "_values", "model.safetensors"), "rb") as f:
                size = struct.unpack("<Q", f.read(8))[0]
                entry = json.loads(f.read(size))[NAME]
                items = f.read()
            want = bf16([(code - (zero or 0)) * 0.5 for code in CODES]) * rows
            expect(entry["shape"] == [rows, len(CODES)] and items == want, f"{name}: {entry} {items.hex()}, not {want.hex()}")
            result = run_mckpt("verify", source)
            expect(result.returncode == 0, f"verify {name}: {result.stdout[:500]}")
            back = source + "_back"
            result = run_mckpt("convert", "quantize", source + "_values", back, "--to", "like-source", "--like", source, "--no-sync", "-q")
            same = result.returncode == 0 and raw(back) == raw(source)
            expect(same, f"{name} back: {result.stderr[:500]}")

# A scale for each row is not a vector in compressed-tensors, which spreads it over the columns.
source = write("vector", {NAME: ("I8", [2, 8], struct.pack("<8b", *CODES) * 2), f"{NAME}_scale": ("BF16", [2], HALF * 2)},
               {"num_bits": 8, "symmetric": True, "strategy": "channel"}, "int-quantized")
result = run_mckpt("convert", "dequantize", source, source + "_values")
expect(result.returncode == 3 and "MC2016" in result.stderr, f"vector: {result.returncode} {result.stderr[:500]}")
finish(20)
