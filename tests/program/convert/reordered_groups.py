"""Groups of columns in an order of their own (`weight_g_idx` of compressed-tensors): every command has the values that compressed-tensors
0.18 reads, and `like-source` gives the codes back. Numbers of groups that the scales or the config contradict are refused alike by
all commands."""

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
ORDERED = os.path.join(DATA, "quantized", "ordered_groups")
with open(os.path.join(ORDERED, "expected.json")) as f:
    EXPECTED = json.load(f)
TYPES = {"BF16": "BF16", "int8": "F16", "int3_zeros": "F32"}
LAYER = "model.layers.1.mlp.up_proj.weight"  # 30 columns in 5 groups of 6


def path(*names):
    return os.path.join(folder.name, *names)


def run(status, *command, words=(), never=()):
    result = run_mckpt(*command)
    text = result.stdout + result.stderr
    what = " ".join(os.path.basename(str(c)) for c in command)
    expect(result.returncode == status, f"{what}: exit status {result.returncode}, not {status}: {text[:600]}")
    expect(all(word in text for word in words), f"{what}: lacks one of {words}: {text[:900]}")
    expect(not any(word in text for word in never), f"{what}: has one of {never}: {text[:900]}")
    return text


def changed(name, source, numbers=None, config=None):
    """A copy with other numbers of groups in one layer, and another config.json."""
    shutil.copytree(source, path(name))
    if numbers is not None:
        with open(path(name, "model.safetensors"), "r+b") as f:
            size = struct.unpack("<Q", f.read(8))[0]
            begin, end = json.loads(f.read(size))[LAYER + "_g_idx"]["data_offsets"]
            f.seek(8 + size + begin)
            old = struct.unpack(f"<{(end - begin) // 4}i", f.read(end - begin))
            f.seek(8 + size + begin)
            f.write(struct.pack(f"<{len(old)}i", *numbers(list(old))))
    if config is not None:
        with open(path(name, "config.json")) as f:
            entry = json.load(f)
        config(entry)
        with open(path(name, "config.json"), "w") as f:
            json.dump(entry, f)
    return path(name)


def refused(source, status, *words):
    """By every command that needs the values, with the same words. `status`: of commands that only look."""
    words = ("MC2016", *words)
    plain = path("int4")
    run(1, "verify", source, words=words)
    run(3, "convert", "dequantize", source, path("out"), "--no-sync", words=words)
    run(3, "convert", "quantize", plain, path("out"), "--scheme", "like-source", "--like", source, "--no-sync", words=words)
    for command in (("diff", source, plain), ("diff", plain, source), ("stats", source), ("verify", plain, "--against", source)):
        run(status, *command, words=words, never=(": equal", "no tensor differs", "no value differs"))
    expect(not os.path.exists(path("out")), f"{source}: something was written")


WARNING = ("warning[MC2016]", "sound, with warnings", "mckpt convert dequantize makes a model of the values")
for name in sorted({key.split("/")[0] for key in EXPECTED}):
    source = os.path.join(ORDERED, name)
    run(0, "convert", "dequantize", source, path(name), "-q", "--no-sync")
    values = safetensors(path(name))
    for tensor, (dtype, shape, items) in values.items():
        want = EXPECTED.pop(f"{name}/{tensor}")
        expect(dtype == TYPES.get(name, "BF16") and shape == want["shape"], f"{name} {tensor}: {dtype} {shape}")
        expect(hashlib.sha256(items).hexdigest() == want["sha256"], f"{name} {tensor}: other values")
    run(0, "verify", source, words=WARNING, never=("no value depends on it", "not checked"))
    run(0, "verify", path(name), "--against", source, words=("equal",))
    run(0, "verify", source, "--against", path(name), words=("equal",))
    for sides in ((source, path(name)), (path(name), source)):
        run(1, "diff", *sides, words=("no value differs, but 4 of 4 tensors have another type",))
    # Items from the middle of a row on, beside the values.
    shown, again = (run(0, "cat", side, LAYER + "[2:5, 7:23]") for side in (source, path(name)))
    expect(shown == again and shown.count("\n") == 4, f"{name}: cat shows other values: {shown}")
    shown, again = (run(0, "stats", side, LAYER) for side in (source, path(name)))
    expect(shown == again and LAYER in shown, f"{name}: stats counts other values: {shown}")
    # Codes and scales under their own names, as they are.
    expect("_g_idx" in run(0, "ls", source), f"{name}: ls lacks the numbers of groups")
    run(0, "convert", "quantize", path(name), path(name + "_again"), "--scheme", "like-source", "--like", source, "-q", "--no-sync")
    again, stored = safetensors(path(name + "_again")), safetensors(source)
    expect(again == stored, f"{name}: other codes: {[t for t in stored if again.get(t) != stored[t]]}")
expect(not EXPECTED, f"not read: {sorted(EXPECTED)}")

# Without numbers, or with -1 for all columns, groups are side by side: other values.
source = os.path.join(ORDERED, "int4")
none = changed("none", source, numbers=lambda old: [-1] * len(old))
run(0, "verify", none, words=("sound, with warnings",))
run(1, "diff", none, source, words=(LAYER,), never=("no tensor differs",))
in_order = changed("in_order", source, numbers=sorted)
run(0, "diff", none, in_order, words=("equal",))

# Numbers that the scales do not have.
FAULT = ("the groups of columns do not fit the scales", "5 groups of 6 columns, or -1 for all columns")
refused(changed("beyond", source, numbers=lambda old: [5, *old[1:]]), 3, *FAULT, "column 0 is in group 5, and the groups are 0 to 4")
refused(changed("some", source, numbers=lambda old: [*old[:29], -1]), 3, *FAULT, "column 29 is in group -1")
refused(changed("uneven", source, numbers=lambda old: [1 if g == 0 else g for g in old]), 3, *FAULT, "group 0 has 0 columns, and 6 share its scale")

# All releases of compressed-tensors leave the numbers out where the config does not declare them.
weights = lambda config: config["quantization_config"]["config_groups"]["group_0"]["weights"]
for name, value in (("null", None), ("weight", "weight"), ("false", False)):
    other = changed(name, source, config=lambda c, v=value: weights(c).update(actorder=v))
    refused(other, 1, "columns have numbers of groups, and the config does not declare them", "actorder group in quantization_config")
refused(changed("absent", source, config=lambda c: weights(c).pop("actorder")), 1, "columns have numbers of groups")
# Releases leave them out for modules of a group without the order; which modules a group is for is not read.
groups = lambda config: config["quantization_config"]["config_groups"]
other_group = lambda config, more: groups(config).update(group_1=groups(config)["group_0"] | {"weights": weights(config) | {"actorder": None, **more}})
some = changed("some_ordered", source, config=lambda c: other_group(c, {}))
refused(some, 1, "columns have numbers of groups, and the config does not declare them", "no such setting in 1 of 2 config_groups that these codes fit")
# ... and a group that the codes do not fit is of other modules.
others = changed("others", source, config=lambda c: other_group(c, {"num_bits": 8}))
run(0, "verify", others, words=WARNING)
run(0, "verify", path("int4"), "--against", others, words=("equal",))
# A file alone says it by its names.
os.makedirs(path("alone"))
shutil.copy(os.path.join(ORDERED, "bytes_zeros", "model.safetensors"), path("alone", "model.safetensors"))
run(1, "diff", path("alone", "model.safetensors"), path("bytes_zeros"), words=("no value differs",))
finish(483)
