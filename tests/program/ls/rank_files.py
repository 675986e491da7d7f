"""The files of ranks are the tensors that torch, verl and accelerate have of them: names, types, shapes, bytes, and the number of parameters."""
import hashlib
import json
import os
import re
import struct
import tempfile

from mckpt_tests.checks import expect, expect_equal, finish
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

FOLDER = os.path.join(DATA, "rank_files")
SAFETENSORS = {"F32": "float32", "BF16": "bfloat16", "U8": "uint8"}


def listed(path):
    run = run_mckpt("ls", path, "--json", "--digest")
    expect(run.returncode == 0, f"{path}: {run.stderr}")
    return json.loads(run.stdout)["tensors"]


def digest(kind, shape, data):
    return {"dtype": kind, "shape": shape, "sha256": hashlib.sha256(data).hexdigest()}


def split_experts(path):
    """The model as transformers writes it: each expert by itself."""
    with tempfile.TemporaryDirectory() as scratch:
        out = os.path.join(scratch, "joined.safetensors")
        states = ["--exclude", "extra_state:*"] if any(t["name"].startswith("extra_state:") for t in listed(path)) else []
        run = run_mckpt("convert", "pt-to-safetensors", path, out, "--tensors-only", *states)
        expect(run.returncode == 0, run.stderr)
        with open(out, "rb") as f:
            (size,) = struct.unpack("<Q", f.read(8))
            header, data = json.loads(f.read(size)), f.read()
    header.pop("__metadata__", None)
    tensors = {}
    for name, t in header.items():
        kind, shape, (begin, end) = SAFETENSORS[t["dtype"]], t["shape"], t["data_offsets"]
        stacked = re.fullmatch(r"(.*\.experts)\.(gate_up_proj|down_proj)", name)
        parts = {"gate_up_proj": ["gate_proj", "up_proj"], "down_proj": ["down_proj"]}[stacked[2]] if stacked else [""]
        count = shape[0] * len(parts) if stacked else 1
        for i in range(count):
            piece = data[begin + (end - begin) * i // count:begin + (end - begin) * (i + 1) // count]
            key = f"{stacked[1]}.{i // len(parts)}.{parts[i % len(parts)]}.weight" if stacked else name
            tensors[key] = digest(kind, [shape[1] // len(parts), shape[2]] if stacked else shape, piece)
    return tensors


def main():
    for folder in sorted(os.listdir(FOLDER)):
        path = os.path.join(FOLDER, folder)
        if not os.path.isdir(path) or folder.startswith("flat"):  # without shapes; unit/io/torch/flat_pieces has them
            continue
        with open(path + ".expected.json", encoding="utf-8") as f:
            want = json.load(f)
        if folder in ("verl2_w3", "verl1st_w3", "accel2_nodcp_w2"):
            got = split_experts(path)
        else:
            got = {t["name"]: {k: t[k] for k in ("dtype", "shape", "sha256")} for t in listed(path)}
        expect_equal(folder, sorted(got.items()), sorted(want.items()))

        inspected = json.loads(run_mckpt("inspect", path, "--json").stdout)
        items = 0
        for name, t in want.items():
            count = 1
            for n in t["shape"]:
                count *= n
            items += count if ":" not in name else 0
        expect(inspected["parameters"] == items, f"{folder}: {inspected['parameters']} parameters, not {items}")
        run = run_mckpt("verify", path)
        expect(run.returncode == 0 and run.stdout.endswith(": sound\n"), f"{folder}: {run.stdout}")

    # Which rank has what: the last of three has no row of [2, 4], the two others one each.
    for folder, ranks in (("shards", [0, 1]), ("pieces", [0, 1, 2])):
        gate = next(t for t in listed(os.path.join(FOLDER, folder)) if t["name"] == "model.layers.0.mlp.gate.weight")
        expect([c["rank"] for c in gate["chunks"]] == ranks and [c["offsets"] for c in gate["chunks"]][:2] == [[0, 0], [1, 0]], f"{folder}: {gate}")
    facts = json.loads(run_mckpt("inspect", os.path.join(FOLDER, "verl2_w3"), "--json").stdout)["facts"]
    expect(facts["model_type"] == "deepseek_v3", f"verl's huggingface/config.json: {facts}")

    # One file by itself has its pieces, and says so.
    for name in ("shards/model_world_size_3_rank_2.pt", "accelerate/pytorch_model_fsdp_0_rank1.bin"):
        run = run_mckpt("inspect", os.path.join(FOLDER, name))
        expect("the file has only the pieces of rank" in run.stdout + run.stderr, f"{name}: {run.stdout}")
    finish(150)


if __name__ == "__main__":
    main()
