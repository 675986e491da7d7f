"""Scales of activations and caches are compared where both sides are quantised or have them, and counted where the
other side cannot have them: values, a checkpoint of Megatron. Never "equal" without a word about them.
"""

import json
import os
import shutil
import struct

from mckpt_tests.checks import expect, finish
from mckpt_tests.folders import scratch
from mckpt_tests.program import run_mckpt, says
from mckpt_tests.setting import DATA

temporary = scratch()
QUANTISED = os.path.join(DATA, "quantized", "deepseek_v3_128")
KINDS = ("input_scale", "k_scale", "v_scale")


def at(*names):
    return os.path.join(temporary.name, *names)


def with_scales(name, value, kinds=KINDS):
    """The quantised model in one file, with scales of activations and caches."""
    folder = at(name)
    os.makedirs(folder)
    shutil.copy(os.path.join(QUANTISED, "config.json"), folder)
    header, data = {}, b""
    for file in sorted(os.listdir(QUANTISED)):
        if not file.endswith(".safetensors"):
            continue
        with open(os.path.join(QUANTISED, file), "rb") as f:
            part = f.read()
        end = 8 + struct.unpack("<Q", part[:8])[0]
        for tensor, entry in json.loads(part[8:end]).items():
            if tensor == "__metadata__":
                continue
            begin, stop = entry["data_offsets"]
            header[tensor] = {**entry, "data_offsets": [len(data), len(data) + stop - begin]}
            data += part[end + begin:end + stop]
    for layer in range(2):
        for kind in kinds:
            module = "mlp.down_proj" if kind == "input_scale" else "self_attn"
            scale = {"dtype": "F32", "shape": [1], "data_offsets": [len(data), len(data) + 4]}
            header[f"model.layers.{layer}.{module}.{kind}"] = scale
            data += struct.pack("<f", value)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(folder, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)
    return folder


def answer(a, b):
    return json.loads(run_mckpt("diff", a, b, "--json").stdout)


one, same, other, fewer = with_scales("one", 0.5), with_scales("same", 0.5), with_scales("other", 1e9), with_scales("fewer", 0.5, ["v_scale"])

# Two quantised sides: folders, and single files without a config.
for a, b in ((one, other), (other, one)):
    says(1, "model.layers.1.self_attn.k_scale", "diff", a, b, "-v")
    says(1, "not equal", "verify", a, "--against", b)
    expect({row["name"].rsplit(".", 1)[1] for row in answer(a, b)["rows"]} == set(KINDS), "not all scales have rows")
file = "model.safetensors"
says(1, "6 of", "diff", os.path.join(one, file), os.path.join(other, file))
says(1, "2 of 2 tensors that match '*input_scale' differ", "diff", one, other, "*input_scale")
for command in (("diff", one, same), ("verify", one, "--against", same)):
    expect("not compared" not in says(0, "equal", *command), f"{command}: compared, and called not compared")

# Scales that one side alone has are a difference in both orders.
rows = answer(one, fewer)["rows"]
expect([row["kind"] for row in rows] == ["only_a"] * 4, f"scales of one side: {rows}")
expect([row["kind"] for row in answer(fewer, one)["rows"]] == ["only_b"] * 4, "scales of the other side")
for a, b in ((one, fewer), (fewer, one)):
    says(1, "not equal", "verify", a, "--against", b)

# Values have no such scales: they are counted and named, in both orders.
says(0, "", "convert", "dequantize", one, at("values"), "--dtype", "fp32", "--no-sync")
says(0, "", "convert", "hf-to-fsdp", one, at("fsdp"), "--no-sync")
count = "6 scales of activations or caches"
for made in (at("values"), at("fsdp")):
    for a, b in ((one, made), (made, one)):
        says(0, f"equal, but {count} were not compared", "verify", a, "--against", b)
        diff = answer(a, b)
        expect(any(count in text and ".input_scale" in text for text in diff["not_compared"]), f"{a}, {b}: {diff['not_compared']}")
says(1, "1 scale of activations or caches, which the other side does not have", "diff", one, at("values"), "*.1.*.k_scale")
# Values with all of these scales beside them.
with open(os.path.join(at("values"), file), "r+b") as f:
    content = f.read()
    end = 8 + struct.unpack("<Q", content[:8])[0]
    header, data = json.loads(content[8:end]), content[end:]
    for layer in range(2):
        for kind in KINDS:
            module = "mlp.down_proj" if kind == "input_scale" else "self_attn"
            header[f"model.layers.{layer}.{module}.{kind}"] = {"dtype": "F32", "shape": [1], "data_offsets": [len(data), len(data) + 4]}
            data += struct.pack("<f", 0.25 if kind == "k_scale" else 0.5)
    text = json.dumps(header).encode()
    f.seek(0)
    f.write(struct.pack("<Q", len(text)) + text + data)
os.remove(os.path.join(at("values"), "mckpt_manifest.json"))
values = [row["name"] for row in answer(one, at("values"))["rows"] if row["kind"] == "values"]
expect(values == [f"model.layers.{n}.self_attn.k_scale" for n in range(2)], f"scales beside values: {values}")

# A result that was quantised again has the scales of its pattern, which prove nothing of the values' side.
says(0, "", "convert", "dequantize", one, at("trained"), "--no-sync")
os.remove(at("trained", "mckpt_manifest.json"))
with open(at("trained", file), "r+b") as f:
    content = f.read()
    end = 8 + struct.unpack("<Q", content[:8])[0]
    entry = next(e for name, e in json.loads(content[8:end]).items() if name.endswith("down_proj.weight"))
    f.seek(end + entry["data_offsets"][0])
    f.write(struct.pack("<8H", *range(0x3E81, 0x3E89)))  # more values than codes have between two powers of two
says(0, "", "convert", "quantize", at("trained"), at("again"), "--like", one, "--no-sync")
out = says(0, f"equal, but {count} were not compared", "verify", at("again"), "--against", at("trained"))
tensors = len(json.loads(says(0, "", "ls", at("again"), "--json"))["tensors"])
expect(f"{tensors - 6} tensors" in out, f"scales of the pattern are counted as compared: {out}")
finish(33)
