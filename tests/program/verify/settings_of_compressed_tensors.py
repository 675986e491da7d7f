"""The config.json of weights that compressed-tensors quantised: names of presets, upper case and numbers in strings are read as the library
reads them; settings that only some of its releases load are a warning; whole models whose codes are not decoded are sound, and refused by
conversions. Integers in packed words whose scales are of blocks have the values that the sums by hand have."""
import json
import os
import struct

from mckpt_tests.checks import expect, finish
from mckpt_tests.folders import scratch
from mckpt_tests.program import run_mckpt

temporary = scratch()
SIZES = {"I32": 4, "I64": 8, "BF16": 2, "F32": 4, "I8": 1, "F8_E4M3": 1, "U8": 1}
CHECKS = 0


def folder(name, tensors, declared):
    """`tensors`: {name: (type, shape, bytes)}; None for any."""
    path = os.path.join(temporary.name, name)
    os.makedirs(path)
    header, data = {}, b""
    for tensor, (dtype, shape, raw) in tensors.items():
        size = SIZES[dtype]
        for n in shape:
            size *= n
        raw = bytes(i % 120 for i in range(size)) if raw is None else raw
        expect(len(raw) == size, f"{tensor}: {len(raw)} bytes")
        header[tensor] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + size]}
        data += raw
    text = json.dumps(header).encode()
    with open(path + "/model.safetensors", "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)
    with open(path + "/config.json", "w") as f:
        json.dump({"model_type": "mystery", "dtype": "float32", "quantization_config": declared}, f)
    return path


def says(status, texts, *command, never=()):
    global CHECKS
    CHECKS += 1
    run = run_mckpt(*command)
    out = run.stdout + run.stderr
    good = run.returncode == status and all(text in out for text in texts) and not any(text in out for text in never)
    expect(good, f"{command}: exit status {run.returncode}, expected {status}, {texts} and not {never}: {out}")


def declared(groups, **more):
    return {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": groups, **more}


def group(weights, **more):
    return declared({"group_0": {"targets": ["Linear"], "weights": weights, **more}})


def packed(name, columns=256, scales=2, more=()):
    """Rows of 4-bit codes."""
    return {f"{name}.weight_packed": ("I32", [6, columns // 8], None),
            f"{name}.weight_scale": ("BF16", [6, scales], struct.pack("<H", 0x3f80) * 6 * scales),
            f"{name}.weight_shape": ("I64", [2], struct.pack("<2q", 6, columns)), **dict(more)}


GROUP = {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128, "symmetric": True}
COUNT = 0


def judged(tensors, config, status, texts, never=()):
    """verify says this; and a conversion takes the model unless codes are not decoded or refused."""
    global COUNT
    COUNT += 1
    path = folder(str(COUNT), tensors, config)
    says(status, texts, "verify", path, never=never)
    return path


def converted(path, status=0, texts=(), never=()):
    says(status, texts, "convert", "dequantize", path, path + "_values", "--no-sync", never=never)


# As its validators read it.
for config in (group(GROUP | {"type": "INT", "strategy": "GROUP"}), group(GROUP | {"num_bits": "4"}), declared({"W4A16": ["Linear"]}),
               declared({"w4a8": ["Linear"]})):
    converted(judged(packed("a"), config, 0, ("fit their codes", ": sound, but"), never=("warning",)))
# A preset of other numbers is a contradiction like its settings.
judged(packed("a"), declared({"W8A16": ["Linear"]}), 1, ("MC2016", "no possible width makes 256 codes fill the words"))
judged(packed("a", scales=8), declared({"W4A16": ["Linear"]}), 1, ("MC2016", "one scale for 128 codes of a row: expected [6, 2], found [6, 8]"))
path = judged(packed("a"), declared({"W4A17": ["Linear"]}), 1, ("MC2001", "a name that compressed-tensors has no settings for", "found W4A17"),
              never=("its library does not load", "activations or caches alone"))
converted(path, 3, ("MC2001",))
# Packed values are counted by their bits, however the config says them.
W8 = {"a.weight_packed": ("I32", [6, 64], None), "a.weight_scale": ("BF16", [6, 2], struct.pack("<H", 0x3f80) * 12),
      "a.weight_shape": ("I64", [2], struct.pack("<2q", 6, 256))}
for config in (group(GROUP | {"num_bits": "8"}), declared({"W8A16": ["Linear"]}), group(GROUP | {"num_bits": 8})):
    says(0, ("1,536 params",), "inspect", judged(W8, config, 0, ("fit their codes",)))

# Only some releases load these; no value depends on them.
REFUSED = "warning[MC2016]: config.json: compressed-tensors "
for config, text in ((group(GROUP | {"foo": 1}), "0.11 to 0.20 loads no model with 'foo' in weights of group_0"),
                     (group(GROUP, foo=1), "0.11 to 0.20 loads no model with 'foo' in group_0"),
                     (group(GROUP | {"actorder": "group"}), "0.19 and 0.20 load no model with actorder group in group_0; releases up to 0.18 do"),
                     (group(GROUP | {"actorder": True}), "0.19 and 0.20 load no model with actorder true in group_0")):
    converted(judged(packed("a"), config, 0, (REFUSED + text, "sound, with warnings", "no value depends on it")))

# Codes that are not decoded, in a file without a fault: an order of groups that compressed-tensors itself does not read.
MIXED = declared({"group_0": {"targets": ["Linear"], "weights": GROUP, "format": "pack-quantized"},
                  "group_1": {"targets": ["Linear"], "format": "nvfp4-pack-quantized",
                              "weights": {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}}})
IN_ORDER = {"a.weight_packed": ("U8", [4, 16], None), "a.weight_scale": ("F8_E4M3", [4, 2], b"\x38" * 8),
            "a.weight_global_scale": ("F32", [1], struct.pack("<f", 1)), "a.weight_g_idx": ("I32", [32], None)}
NOT = "not checked: nvfp4 groups of 16 in an order of their own are not decoded"
path = judged(IN_ORDER, MIXED, 0, (f"-     scales   1 tensor {NOT}", ": sound, but"), never=("FAIL", "problem", "warning"))
converted(path, 3, ("MC2004", "load the model in the library that wrote it"), never=("is not sound",))
judged(IN_ORDER | packed("b"), MIXED, 0, (f"pass  scales   1 tensor        fit their codes; 1 tensor {NOT}", ": sound, but"),
       never=("FAIL", "problem"))
ORDERED = json.loads(json.dumps(MIXED))
ORDERED["config_groups"]["group_1"]["weights"]["actorder"] = "group"
judged(IN_ORDER, ORDERED, 0, (f"warn  scales   1 tensor {NOT}", "actorder group", "sound, with warnings"),
       never=("no value depends on it", "makes a model of the values"))
# ... which hides no fault of others.
judged(IN_ORDER | packed("b", scales=3), MIXED, 1, ("FAIL  scales", "b.weight_scale", "MC2016", NOT))
judged(IN_ORDER | packed("b", more={"b.weight_scale": ("BF16", [6, 2], b"\xc0\x7f" * 12)}), MIXED, 1, ("FAIL  scales", "MC2017"))
# Numbers of groups that the scales do not have are a fault, whose help is not to convert the model.
INDEX = {"a.weight_g_idx": ("I32", [256], None)}
path = judged(packed("a", more=INDEX), group(GROUP | {"actorder": "group"}), 1, ("expected 2 groups of 128 columns, or -1 for all columns",),
              never=("no value depends on it", "makes a model of the values"))
converted(path, 3, ("MC2016",))
path = judged(packed("a", more=INDEX), group(GROUP), 1, ("columns have numbers of groups, and the config does not declare them",))
converted(path, 3, ("MC2016", "is not sound"))
path = judged({"a.weight": ("F8_E4M3", [4, 4], None), "a.weight_scale": ("F32", [], struct.pack("<f", 1)), "a.pre_quant_scale": ("F32", [4], None)},
              {"quant_method": "modelopt", "quant_algo": "FP8"}, 0, ("1 tensor not checked: weights whose inputs", ": sound, but"), never=("FAIL",))
converted(path, 3, ("MC2004", "load the model in the library that wrote it"), never=("is not sound",))

# Blocks of 2 x 4 of a matrix of 3 x 8, as compressed-tensors packs them: codes of 8 bits with 128 added, zero points of a byte.
BLOCKS = {"num_bits": 8, "type": "int", "strategy": "block", "block_structure": [2, 4]}
codes = [[7 * r - 11 * c + 5 for c in range(8)] for r in range(3)]
scales, zeros = [[0.5, 2.0], [4.0, 0.25]], [[3, -4], [0, 100]]
for with_zeros in (False, True):
    for structure in ([2, 4], "2x4"):
        tensors = {"a.weight_packed": ("I32", [3, 2], bytes(code + 128 for row in codes for code in row)),
                   "a.weight_scale": ("F32", [2, 2], struct.pack("<4f", *scales[0], *scales[1])),
                   "a.weight_shape": ("I64", [2], struct.pack("<2q", 3, 8))}
        if with_zeros:
            tensors["a.weight_zero_point"] = ("I8", [2, 2], struct.pack("<4b", *zeros[0], *zeros[1]))
        path = judged(tensors, group(BLOCKS | {"symmetric": not with_zeros, "block_structure": structure}), 0, ("fit their codes", ": sound, but"))
        converted(path)
        expected = b"".join(struct.pack("<f", (codes[r][c] - with_zeros * zeros[r // 2][c // 4]) * scales[r // 2][c // 4])
                            for r in range(3) for c in range(8))
        with open(path + "_values/model.safetensors", "rb") as f:
            expect(f.read()[-len(expected):] == expected, f"values of blocks, zero points {with_zeros}")
        back = path + "_back"
        says(0, (), "convert", "quantize", path + "_values", back, "--scheme", "like-source", "--like", path, "--no-sync")
        says(0, (": equal",), "verify", back, "--against", path)
finish(CHECKS)
