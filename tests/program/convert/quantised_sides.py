"""A result of a quantised model is compared with it in any order: copies of the files by codes and scales,
values in the type that they have. Scales of a whole tensor are not made anew, E5M2 comes back, and a shape or
block size that cannot be is a problem.
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
QUANTISED = os.path.join(DATA, "quantized")


def at(*names):
    return os.path.join(temporary.name, *names)


def read(path):
    with open(path, "rb") as f:
        data = f.read()
    end = 8 + struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8:end]), data[end:]


def write(folder, tensors, quantization):
    """A folder of one file: name -> (type, shape, bytes)."""
    os.makedirs(folder)
    header, data = {}, b""
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    with open(os.path.join(folder, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)
    config = {"model_type": "mystery", **({"quantization_config": quantization} if quantization else {})}
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config, f)
    return folder


# A copy in torch DCP has codes and scales; values may be of another type than bf16.
for name in ("gpt_oss", "qwen3_64_skiplist"):
    source = os.path.join(QUANTISED, name)
    says(0, "", "convert", "to-dcp", source, at(name + "_dcp"), "--no-sync")
    says(0, "", "convert", "dequantize", source, at(name + "_fp32"), "--dtype", "fp32", "--no-sync")
    for made in (at(name + "_dcp"), at(name + "_fp32")):
        for order in ((made, source), (source, made)):
            says(0, "equal", "verify", order[0], "--against", order[1])
            # To a list of differences codes and values are two types.
            says(0 if made.endswith("_dcp") else 1, "equal" if made.endswith("_dcp") else "no value differs", "diff", *order)
header, data = read(at("gpt_oss_fp32", "model.safetensors"))
name = next(n for n in header if n.endswith("experts.down_proj"))
first = header[name]["data_offsets"][0]
with open(at("gpt_oss_fp32", "model.safetensors"), "r+b") as f:
    f.seek(os.path.getsize(f.name) - len(data) + first + 8)
    f.write(struct.pack("<f", 1 + struct.unpack("<f", data[first + 8:first + 12])[0]))
says(1, name, "verify", at("gpt_oss_fp32"), "--against", os.path.join(QUANTISED, "gpt_oss"))

# So is a result of a checkpoint.
source = os.path.join(QUANTISED, "gpt_oss")
says(0, "", "convert", "hf-to-fsdp", source, at("fsdp"), "--tp", "2", "--no-sync")
says(0, "", "export", at("fsdp"), at("exported"), "--quantize", "like-source", "--assets", source, "--no-sync")
says(0, at("exported") + ": equal", "verify", at("exported"), "--against", at("fsdp"))
says(0, at("fsdp") + ": equal", "verify", at("fsdp"), "--against", at("exported"))
says(1, "no value differs", "diff", at("exported"), at("fsdp"))
says(1, "no value differs", "diff", at("fsdp"), at("exported"))

# Every finite code of E5M2, with scales that are not powers of two.
codes = bytes(c for c in range(256) if c & 0x7F < 0x7C)
rows, columns = len(codes) // 8, 8
weights = {"a.weight": ("F8_E5M2", [rows, columns], codes), "a.weight_scale_inv": ("F32", [1, 1], struct.pack("<f", 0.37))}
e5m2 = write(at("e5m2"), weights, {"quant_method": "fp8", "weight_block_size": [128, 128]})
says(0, "", "convert", "dequantize", e5m2, at("e5m2_values"), "--no-sync")
says(0, "", "convert", "quantize", at("e5m2_values"), at("e5m2_again"), "--like", e5m2, "--no-sync")
expect(read(at("e5m2_again", "model.safetensors")) == read(os.path.join(e5m2, "model.safetensors")), "E5M2 does not come back")

# The values have the type that config.json says: of the model, or of its language model.
codes = bytes([0x39, 0x42, 0x7E, 0x01])
scale = struct.unpack("<f", struct.pack("<f", 0.37))[0]
exact = [struct.unpack("<f", struct.pack("<f", scale * code))[0] for code in (1.125, 2.5, 448, 2.0**-9)]
for number, config in enumerate(({"dtype": "float16"}, {"torch_dtype": "torch.float16"}, {"text_config": {"dtype": "float16"}})):
    weights = {
        "a.weight": ("F8_E4M3", [1, 4], codes),
        "a.weight_scale_inv": ("F32", [1, 1], struct.pack("<f", 0.37)),
        "norm.weight": ("F16", [1], b"\x00\x3c"),
    }
    half = write(at(f"half{number}"), weights, {"quant_method": "fp8", "weight_block_size": [128, 128]})
    path = os.path.join(half, "config.json")
    with open(path) as f:
        config.update(json.load(f))
    with open(path, "w") as f:
        json.dump(config, f)
    values = at(f"half_values{number}")
    says(0, "as float16", "convert", "dequantize", half, values, "--no-sync")
    header, data = read(os.path.join(values, "model.safetensors"))
    expect([header[name]["dtype"] for name in ("a.weight", "norm.weight")] == ["F16", "F16"], f"{config}: a mixture of types: {header}")
    begin = header["a.weight"]["data_offsets"][0]
    expect(data[begin:begin + 8] == struct.pack("<4e", *exact), f"{config}: other values than those in float16")
    says(0, "equal", "verify", values, "--against", half)
    says(0, "", "convert", "quantize", values, at(f"half_again{number}"), "--like", half, "--no-sync")
    expect(read(at(f"half_again{number}", "model.safetensors")) == read(os.path.join(half, "model.safetensors")), f"{config}: other codes")
    says(0, "as bfloat16", "convert", "dequantize", half, at(f"bf16_values{number}"), "--dtype", "bf16", "--no-sync")

# One scale for a tensor of few rows: a value that changed ends the conversion, as in a tensor of many.
for rows in (100, 200):
    codes = bytes(1 + (r * 7 + c) % 0x70 for r in range(rows) for c in range(64))
    weights = {"a.weight": ("F8_E4M3", [rows, 64], codes), "a.weight_scale": ("F32", [], struct.pack("<f", 0.02))}
    like = write(at(f"tensor{rows}"), weights, {"quant_method": "modelopt", "quant_algo": "FP8"})
    values = at(f"values{rows}")
    says(0, "", "convert", "dequantize", like, values, "--no-sync")
    says(0, "", "convert", "quantize", values, at(f"again{rows}"), "--like", like, "--no-sync")
    header, data = read(os.path.join(values, "model.safetensors"))
    with open(os.path.join(values, "model.safetensors"), "r+b") as f:
        f.seek(os.path.getsize(f.name) - len(data) + 10)
        f.write(b"\x11\x3f")
    says(3, "MC2017", "convert", "quantize", values, at(f"changed{rows}"), "--like", like, "--no-sync")
    expect(not os.path.exists(at(f"changed{rows}")), "a result was published")

# A value may be rounded so that another code is nearer to it than the one that gives it, or that two codes give it: the
# code of the pattern stays. The scale is 0x3A66 in bf16. Other values get the nearest codes.
integers = {"type": "int", "num_bits": 8, "strategy": "channel", "symmetric": False}
entry = {"quant_method": "compressed-tensors", "format": "int-quantized", "config_groups": {"group_0": {"weights": integers}}}
for zero_point in (-16, -26):
    codes = bytes([127, 3, 128, 0] * 12)
    weights = {
        "a.weight": ("I8", [3, 16], codes),
        "a.weight_scale": ("BF16", [3, 1], b"\x66\x3a" * 3),
        "a.weight_zero_point": ("I8", [3, 1], struct.pack("<3b", *[zero_point] * 3)),
    }
    like, values = write(at(f"zeros{zero_point}"), weights, entry), at(f"of_zeros{zero_point}")
    says(0, "", "convert", "dequantize", like, values, "--no-sync")
    says(0, "", "convert", "quantize", values, at(f"zeros_again{zero_point}"), "--like", like, "--no-sync")
    expect(read(at(f"zeros_again{zero_point}", "model.safetensors")) == read(os.path.join(like, "model.safetensors")), f"zero point {zero_point}: other codes")
    header, data = read(os.path.join(values, "model.safetensors"))
    os.remove(os.path.join(values, "mckpt_manifest.json"))
    with open(os.path.join(values, "model.safetensors"), "r+b") as f:
        f.seek(os.path.getsize(f.name) - len(data))
        f.write(data[2:4])  # the first value becomes the second one
    says(0, "", "convert", "quantize", values, at(f"zeros_moved{zero_point}"), "--like", like, "--no-sync")
    expect(read(at(f"zeros_moved{zero_point}", "model.safetensors"))[1][:48] == b"\x03" + codes[1:], f"zero point {zero_point}: other codes beside a value that changed")
    with open(os.path.join(values, "model.safetensors"), "r+b") as f:
        f.seek(os.path.getsize(f.name) - len(data) + 64)
        f.write(b"\x11\x3f")
    says(3, "other values, the first in row 2", "convert", "quantize", values, at("nothing"), "--like", like, "--no-sync")

# A stored shape that does not fit the codes.
shutil.copytree(os.path.join(QUANTISED, "kimi_k2_int4"), at("kimi"))
for file in sorted(os.listdir(at("kimi"))):
    if not file.endswith(".safetensors"):
        continue
    header, data = read(at("kimi", file))
    name = next((n for n in header if n.endswith("weight_shape")), None)
    if name:
        number = 8 if header[name]["dtype"] == "I64" else 4
        with open(at("kimi", file), "r+b") as f:
            f.seek(os.path.getsize(f.name) - len(data) + header[name]["data_offsets"][0] + number)
            f.write(b"\x3f")
        break
says(1, "packed codes have another shape than they say", "verify", at("kimi"))

# A block size that cannot be is not a model without a quantisation.
shutil.copytree(os.path.join(QUANTISED, "qwen3_64_skiplist"), at("size"))
config = json.load(open(at("size", "config.json")))
config["quantization_config"]["weight_block_size"] = [0, 64]
with open(at("size", "config.json"), "w") as f:
    json.dump(config, f)
says(1, "[0, 64]", "verify", at("size"))
says(3, "[0, 64]", "convert", "dequantize", at("size"), at("nothing"), "--no-sync")


# Scales that a model has as powers of two are powers of two where values changed, and keep their type.
source = os.path.join(QUANTISED, "deepseek_v31_ue8m0_f32")
says(0, "", "convert", "dequantize", source, at("powers"), "--no-sync")
os.remove(at("powers", "mckpt_manifest.json"))  # whose sums would refuse other values
path = at("powers", "model.safetensors")
header, data = read(path)
changed = bytearray(data)
for name, tensor in header.items():
    if name.endswith("_proj.weight"):
        begin, end = tensor["data_offsets"]
        changed[begin:end:2] = bytes(b ^ 1 for b in data[begin:end:2])  # the last bit of every value
with open(path, "r+b") as f:
    f.seek(os.path.getsize(path) - len(data))
    f.write(changed)
says(0, "", "convert", "quantize", at("powers"), at("powers_again"), "--like", source, "--no-sync")
scales = []
for file in sorted(os.listdir(at("powers_again"))):
    if file.endswith(".safetensors"):
        header, data = read(at("powers_again", file))
        for name, tensor in header.items():
            if name.endswith("_scale_inv"):
                begin, end = tensor["data_offsets"]
                scales += struct.unpack(f"<{(end - begin) // 4}I", data[begin:end])
expect(len(scales) >= 36 and not any(bits & 0x7FFFFF for bits in scales), "scales are no powers of two")

# Scales that differ by less than bfloat16 shows.
shutil.copytree(source, at("scales"))
for file in sorted(os.listdir(at("scales"))):
    if file.endswith(".safetensors"):
        header, data = read(at("scales", file))
        changed = bytearray(data)
        for name, tensor in header.items():
            if name.endswith("_scale_inv"):
                changed[tensor["data_offsets"][0]] ^= 1
        with open(at("scales", file), "r+b") as f:
            f.seek(os.path.getsize(f.name) - len(data))
            f.write(changed)
says(1, "not equal", "verify", at("scales"), "--against", source)
says(1, "", "diff", at("scales"), source)
says(0, "equal", "verify", source, "--against", source)

# A folder that does not declare its codes is equal to nothing, and one that declares others neither.
for entry in (None, {"quant_method": "mxfp4"}):
    folder = at("undeclared" if entry is None else "other_method")
    shutil.copytree(source, folder)
    config = json.load(open(os.path.join(folder, "config.json")))
    del config["quantization_config"]
    if entry:
        config["quantization_config"] = entry
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config, f)
    says(1, "FAIL  scales", "verify", folder, "--against", source)
says(1, "FAIL  scales", "verify", at("undeclared"), "--against", at("fsdp"))

# Codes and scales that a checkpoint has as they are come back as they were, with the config that declares them.
for name in ("deepseek_v3_128", "qwen3_64_skiplist"):
    source = os.path.join(QUANTISED, name)
    says(0, "", "convert", "to-dcp", source, at(name + "_codes"), "--no-sync")
    says(0, "", "export", at(name + "_codes"), at(name + "_back"), "--assets", source, "--no-sync")
    for file in os.listdir(source):
        with open(os.path.join(source, file), "rb") as a, open(at(name + "_back", file), "rb") as b:
            expect(a.read() == b.read(), f"{name}: {file} does not come back")
    says(3, "no type can be chosen", "export", at(name + "_codes"), at("nothing"), "--assets", source, "--dtype", "bf16", "--no-sync")
says(3, "MC2016", "export", at("deepseek_v3_128_codes"), at("nothing"), "--assets", at("undeclared"), "--no-sync")
says(0, "put the model's config.json beside it", "convert", "to-safetensors", source, at("one.safetensors"), "--no-sync")

# The files of the pattern, unless a size is asked for.
source = os.path.join(QUANTISED, "deepseek_v3_128")
says(0, "", "convert", "dequantize", source, at("v3"), "--no-sync")
says(0, "", "convert", "quantize", at("v3"), at("small"), "--like", source, "--max-shard-size", "100KB", "--no-sync")
expect(len([f for f in os.listdir(at("small")) if f.endswith(".safetensors")]) > 5, "--max-shard-size is ignored")
says(0, "equal", "verify", at("small"), "--against", source)

# The one that is tested has what is found, in either order.
shutil.copytree(at("v3"), at("v3_changed"))
os.remove(at("v3_changed", "mckpt_manifest.json"))
path = at("v3_changed", "model.safetensors")
header, data = read(path)
place = os.path.getsize(path) - len(data) + header["model.layers.0.self_attn.o_proj.weight"]["data_offsets"][0]
with open(path, "r+b") as f:
    f.seek(place)
    f.write(struct.pack("<H", 0x42C8))  # 100
says(0, "", "convert", "quantize", at("v3_changed"), at("v3_codes"), "--to", "fp8-block", "--no-sync")
says(0, "", "convert", "hf-to-fsdp", at("v3"), at("v3_fsdp"), "--tp", "2", "--no-sync")
run = run_mckpt("verify", at("v3_codes"), "--against", at("v3_fsdp"))
scale = "'model.layers.0.self_attn.o_proj.weight_scale_inv': differs at "
expect(run.returncode == 1 and scale in run.stdout and "found 0.2232" in run.stdout and "expected 0.2232" not in run.stdout, run.stdout)
expect("q_a_proj" not in run.stdout, f"tensors that nobody changed differ: {run.stdout}")

# Codes that were decoded on the way are named.
says(0, "decoded mxfp4", "convert", "quantize", os.path.join(QUANTISED, "gpt_oss"), at("fp8"), "--to", "fp8-block", "--no-sync")
finish(40)
