"""Adapters that change more than matrices give what PEFT's merge_and_unload() gives: tied embeddings and heads, a vocabulary of another size,
rows of single tokens, names and stacks that are others in memory, magnitudes of embeddings and of Conv1D. In bfloat16 and, with --dtype
fp32, what PEFT makes of the base in float32. test_data/adapters/make_peft.py asked PEFT."""
import glob
import hashlib
import json
import os
import struct
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import SOURCE

DATA = os.path.join(SOURCE, "test_data/adapters/peft")
WORK = tempfile.TemporaryDirectory()


def tensors_of(folder):
    out = {}
    for path in glob.glob(os.path.join(folder, "*.safetensors")):
        with open(path, "rb") as file:
            size = struct.unpack("<Q", file.read(8))[0]
            header = json.loads(file.read(size))
            data = file.read()
        header.pop("__metadata__", None)
        for name, t in header.items():
            out[name] = (t["dtype"], t["shape"], data[t["data_offsets"][0]:t["data_offsets"][1]])
    return out


def floats(dtype, data):
    if dtype == "F32":
        return struct.unpack(f"<{len(data) // 4}f", data)
    halves = struct.unpack(f"<{len(data) // 2}H", data)
    return [struct.unpack("<f", struct.pack("<I", h << 16))[0] for h in halves]


def near(got, wanted):
    """Equal, or a few of the last bits apart: a root of a sum has another order of summation."""
    eps = 2**-7 if got[0] == "BF16" else 2**-20
    return all(abs(a - b) <= eps * max(abs(a), abs(b), 2**-10) for a, b in zip(floats(got[0], got[2]), floats("F32", wanted[2])))


def judge(name, kind, options):
    case, out = os.path.join(DATA, name), os.path.join(WORK.name, f"{name}_{kind}")
    run = run_mckpt("export", case + "/adapter", out, "--base", case + "/base", *options)
    if not expect(run.returncode == 0, f"{name} {kind}: {run.stderr}"):
        return
    if name == "bert_stored_twice":  # the factors are of both names
        expect("has no factors of" not in run.stdout + run.stderr, f"{name}: {run.stderr}")
    with open(case + "/expected.json") as file:
        answer = json.load(file)
    values = tensors_of(case) if not answer["exact"] else {}
    got = tensors_of(out)
    expect(sorted(got) == sorted(answer[kind]), f"{name} {kind}: {sorted(set(got) ^ set(answer[kind]))}")
    for tensor, wanted in answer[kind].items():
        dtype, shape, data = got.get(tensor, ("", [], b""))
        same = [dtype, shape] == [wanted["dtype"], wanted["shape"]] and \
            (hashlib.sha256(data).hexdigest() == wanted["sha256"] or (values and near((dtype, shape, data), values[tensor])))
        expect(same, f"{name} {kind}: {tensor} {dtype} {shape} is not PEFT's")
    with open(out + "/config.json") as file:
        config = json.load(file)
    for key, value in answer["config"].items():
        found = config.get("text_config", {}).get(key, config.get(key))
        expect(found == value or (key == "tie_word_embeddings" and found is None), f"{name}: {key} is {found} in config.json, not {value}")
    run = run_mckpt("verify", out, "--against", case + "/adapter", "--base", case + "/base", *options)
    expect(run.returncode == 0, f"{name} {kind}: {run.stdout}{run.stderr}")


for name in sorted(os.listdir(DATA)):
    judge(name, "bf16", ())
    judge(name, "f32", ("--dtype", "fp32"))
finish(400)
