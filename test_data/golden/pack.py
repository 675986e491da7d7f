#!/usr/bin/env python3
"""Packs golden data into this folder. usage: pack.py ORACLE_DIR...

An ORACLE_DIR holds what a run of the real Megatron-Bridge, Megatron-Core and Megatron-FSDP left (README.md here says
how): MODEL/hf/{config.json,model.safetensors}, MODEL/tp*.json with what every rank held, fsdp/*.json with what every
rank handed to the checkpoint writer, fsdp/*.dcp.json with the checkpoint read back. The weights are not packed: the
program that made them drew them by name, so each tensor is written down as its recipe (tests/support/golden_weights.h),
and every recipe is checked here against the real bytes. Needs numpy and torch.
"""
import glob
import hashlib
import json
import os
import re
import struct
import sys
import zlib

import numpy as np
import torch

HERE = os.path.dirname(os.path.abspath(__file__))
# bf16 bit patterns with middling exponents, in ascending order.
PATTERNS = np.array([x for x in range(65536) if 27 <= ((x >> 7) & 255) <= 226], dtype=np.uint16)


def seeded(name):
    return torch.Generator().manual_seed(zlib.crc32(name.encode()))


def permutation(name, n, first, count):
    return torch.randperm(n, generator=seeded(name))[first:first + count].numpy()


def tensors_of(path):
    with open(path, "rb") as f:
        blob = f.read()
    n = struct.unpack("<Q", blob[:8])[0]
    for name, info in json.loads(blob[8:8 + n]).items():
        if name != "__metadata__":
            begin, end = info["data_offsets"]
            yield name, info["dtype"], info["shape"], blob[8 + n + begin:8 + n + end]


def candidates(name, shape):
    """Recipes that may have made the tensor; the seed is the name that the model has in memory."""
    memory = name.replace("backbone.", "model.", 1) if name.startswith("backbone.") else name
    copied = {"embed_tokens.weight": "model.embed_tokens.weight", "head.weight": "lm_head.weight"}
    original = copied.get(".".join(name.split(".")[-2:]), name)  # MTP layers repeat them
    for seed in dict.fromkeys((memory, memory.replace("embedding.", "embeddings."), name, original)):
        yield "perm", seed, 0
        yield "norm", seed, 0
        yield "rand", seed, 0
        parts = seed.split(".experts.")
        if len(parts) == 2 and not parts[1].split(".")[0].isdigit():
            yield "slices", seed, 0
        if len(parts) == 2 and parts[1].split(".")[0].isdigit():
            e, leaf = parts[1].split(".")[:2]
            rows = shape[0] * shape[1]
            for fused, first in ((leaf, 0), ("gate_up_proj", 0), ("gate_up_proj", rows)):
                yield "perm", f"{parts[0]}.experts.{fused}[{e}]", first


def made(recipe, shape):
    kind, seed, first = recipe
    n = int(np.prod(shape))
    if kind == "perm" and first + n <= len(PATTERNS):
        return PATTERNS[permutation(seed, len(PATTERNS), first, n)]
    if kind == "norm" and n <= 256:
        return (16128 + permutation(seed, 256, 0, n)).astype(np.uint16)
    if kind == "rand" and n > len(PATTERNS):
        return PATTERNS[torch.randint(len(PATTERNS), (n,), generator=seeded(seed)).numpy()]
    if kind == "slices" and len(shape) >= 2 and n // shape[0] <= len(PATTERNS):
        each = n // shape[0]
        return np.concatenate([PATTERNS[permutation(f"{seed}[{e}]", len(PATTERNS), 0, each)] for e in range(shape[0])])
    return None


def recipe_of(name, dtype, shape, raw):
    if dtype == "BF16":
        bits = np.frombuffer(raw, dtype=np.uint16)
        for recipe in candidates(name, shape):
            values = made(recipe, shape)
            if values is not None and np.array_equal(values, bits):
                kind, seed, first = recipe
                return f"{kind} {'=' if seed == name else seed} {first}"
    if len(raw) <= 4096:
        return f"hex {raw.hex()} 0"
    sys.exit(f"no recipe makes {name} {shape}")


def text(numbers):
    return "x".join(map(str, numbers)) if len(numbers) else "-"


def pack_model(folder, out):
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(folder, "config.json")) as f:
        config = f.read()
    with open(os.path.join(out, "config.json"), "w") as f:
        f.write(config)
    with open(os.path.join(out, "tensors.txt"), "w") as f:
        for name, dtype, shape, raw in tensors_of(os.path.join(folder, "model.safetensors")):
            f.write(f"{name} {dtype} {text(shape)} {recipe_of(name, dtype, shape, raw)}\n")


def pack_ranks(path, out):
    """One line a parameter: name dtype shape sha256; buffers follow the parameters, marked."""
    with open(path) as f:
        golden = json.load(f)
    sizes = golden["sizes"]
    with open(out, "w") as f:
        f.write("grid " + " ".join(f"{k}={sizes[k]}" for k in ("tp", "cp", "ep", "etp", "pp", "dp")) + "\n")
        for rank in golden["ranks"]:
            f.write(f"rank {rank['rank']}\n")
            for name, p in rank["params"].items():
                f.write(f"{name} {p['dtype']} {text(p['shape'])} {p['sha256']}\n")
            for name, b in rank["buffers"].items():
                if name.endswith("expert_bias"):  # the only persistent one
                    f.write(f"buffer {name} {b['dtype']} {text(b['shape'])} {b['sha256']}\n")


def run_lines(tag, case):
    """The model, and the run as `mckpt convert` would be asked for it."""
    grid = dict(tp=case.get("tp", 1), cp=case.get("cp") or 1, ep=case.get("ep") or 1)
    grid["dp"] = case["world"] // (grid["tp"] * grid["cp"])
    flags = [f"{k}={v}" for k, v in grid.items()]
    flags.append("strategy=" + case.get("strategy", "optim_grads_params").split("+")[0])
    if "outer_no_shard" in tag or "outer_optim" in tag:
        flags += ["hsdp=2", "outer=" + ("shard" if "outer_optim" in tag else "replicate")]
    flags.append("dtype=" + ("keep" if "nomain" in tag else "fp32"))
    if case.get("freeze"):
        flags.append("freeze=" + ",".join(f"*{part}*" for part in case["freeze"].split("|")))
    return [f"model {case['model']}", "run " + " ".join(flags)]


def pack_fsdp(path, out):
    """One line a key: key dtype global-shape sha256-of-the-local-shard offsets sizes."""
    with open(path) as f:
        golden = json.load(f)
    case = golden.get("case", golden)
    if case.get("pp", 1) != 1 or "ckpt_state" not in golden or "tensors" not in golden["ckpt_state"][0]:
        return
    tag = os.path.basename(path)[:-len(".json")]
    lines = run_lines(tag, case)
    for number, state in enumerate(golden["ckpt_state"]):
        lines.append(f"rank {number}")
        for key, t in state["tensors"].items():
            key = key.removeprefix("model.")
            if not key.startswith("module."):
                continue  # optimizer states
            shape = t.get("global_shape", t.get("shape"))
            chunks = [c for c in t.get("chunks", [{"offsets": [0] * len(shape), "sizes": shape}]) if all(c["sizes"])]
            box = f"{text(chunks[0]['offsets'])} {text(chunks[0]['sizes'])}" if chunks else "nothing"
            digest = t.get("local_sha256", t.get("sha256"))
            lines.append(f"{key.removeprefix('module.')} {t['dtype'].removeprefix('torch.')} {text(shape)} {digest} {box}")
    with open(out, "w") as f:
        f.write("\n".join(lines) + "\n")


STATE = "optimizer.state."
MOMENTS = {"exp_avg": -20, "exp_avg_sq": -30}


def parameter_of(key):
    """The parameter that a stored piece was split from."""
    return re.sub(r"(linear_fc1\.(?:weight|bias)\d*)_[wv]$|((?:in_proj|conv1d)\.weight)\.(?:query|key|value|z|beta|alpha)$", r"\1\2", key)


def moment(kind, code, tp, items, dtype):
    """Every item names itself: the parameter by its code, the tensor-parallel rank, its place in what that rank has."""
    values = (np.asarray(items, dtype=np.float64) + code * 2 ** 17 + tp * 2 ** 16) * 2.0 ** MOMENTS[kind]
    return torch.from_numpy(values.astype(np.float32)).to(dtype).view(torch.uint8).numpy().tobytes() if len(values) else b""


def states_of(state):
    """key -> kind -> what the rank handed over, in its order."""
    out = {}
    for name, t in state["tensors"].items():
        if name.startswith(STATE):
            key, kind = re.sub(r"^(module\.)+", "", name.removeprefix(STATE)).rsplit(".", 1)
            out.setdefault(key, {})[kind] = t
    return out


def pack_states(path, out):
    """One line a piece of a parameter: key and box of both its moments, in the order of the save. Values are checked here: every
    item says which it is."""
    with open(path) as f:
        golden = json.load(f)
    case, tag = golden.get("case", golden), os.path.basename(path)[:-len(".json")]
    if "tensors" not in golden["ckpt_state"][0]:
        return  # the real run could not save
    dtypes, lines = set(), []
    for number, state in enumerate(golden["ckpt_state"]):
        lines.append(f"rank {number}")
        before = {}  # items of the parameter's pieces so far
        for key, kinds in states_of(state).items():
            (a, b) = (kinds[kind] for kind in MOMENTS)
            shape = a.get("global_shape", a.get("shape"))
            boxes = [t.get("chunks", [{"offsets": [0] * len(shape), "sizes": shape}])[0] for t in (a, b)]
            if boxes[0] != boxes[1] or list(kinds) != list(MOMENTS) or case.get("tp", 1) != 1:
                sys.exit(f"{tag}: {key}: its moments differ")
            dtypes.add(a["dtype"].removeprefix("torch."))
            row, parameter = int(np.prod(shape[1:])), parameter_of(key)
            first = before.get(parameter, 0)
            before[parameter] = first + int(np.prod(shape))
            first += boxes[0]["offsets"][0] * row if shape else 0
            items = range(first, first + int(np.prod(boxes[0]["sizes"])))
            for kind, t in kinds.items():
                made = moment(kind, golden["name_codes"][parameter], 0, items, getattr(torch, t["dtype"].removeprefix("torch.")))
                if hashlib.sha256(made).hexdigest() != t.get("local_sha256", t.get("sha256")):
                    sys.exit(f"{tag}: rank {number}: {key}.{kind} is not what the formula says")
            box = f"{text(boxes[0]['offsets'])} {text(boxes[0]['sizes'])}" if all(boxes[0]["sizes"]) else "nothing"
            lines.append(f"{key} {box}")
    if sorted(golden["name_codes"]) != sorted(golden["name_codes"], key=golden["name_codes"].get):
        sys.exit(f"{tag}: codes are not places in the sorted names")
    with open(out, "w") as f:
        f.write("\n".join([*run_lines(tag, case), f"moments {dtypes.pop()}", *lines]) + "\n")


def pack_plain(path, out):
    """States that are plain local tensors, by rank: key, items of the parameter as its tensor-parallel rank has it, the rank's
    stretch of them, the box and the SHA-256 of its piece of exp_avg, and what the rule that takes the local number of items
    for the parameter's would have taken of the stretch."""
    with open(path) as f:
        golden = json.load(f)
    tag = os.path.basename(path)[:-len(".expected.json")]
    lines = run_lines(tag, golden["case"])
    for number, rank in enumerate(golden["ranks"]):
        lines.append(f"rank {number}")
        for key, p in rank["pieces"].items():
            box = f"{text(p['chunk'][0])} {text(p['chunk'][1])}"
            wrong = p.get("local_numel_rule_would_take", [0, 0])  # that rule was for gated parameters
            numbers = " ".join("-".join(map(str, pair)) for pair in (p["item"], p["piece_item"], wrong))
            lines.append(f"{key} {p['param_numel']} {numbers} {box} {p['sha256_exp_avg']}")
    with open(out, "w") as f:
        f.write("\n".join(lines) + "\n")


def pack_plain_saved(path, out):
    """A real save of plain states: one line a tensor, the shape on disk and the shape of the parameter."""
    with open(path) as f:
        golden = json.load(f)
    lines = [f"{re.sub(r'^(module[.])+', '', name.removeprefix(STATE))} {text(t['disk_shape'])} {text(t['param_shape'])}" for name, t in golden["tensors"].items()]
    with open(out, "w") as f:
        f.write("\n".join([f"model {golden['case']['model']}", *lines]) + "\n")


def pack_marks(path, marks):
    """The marks of the first rank's parameters, by their names without numbers."""
    with open(path) as f:
        golden = json.load(f)
    seen = marks.setdefault(golden["model"], {})
    for name, p in golden["ranks"][0]["params"].items():
        mark = str(p["partition_dim"]) if p.get("tensor_model_parallel") else "-"
        if seen.setdefault(re.sub(r"(?<=\.)\d+(?=\.)|\d+$", "#", name), mark) != mark:
            sys.exit(f"{path}: {name} is not marked like the others")


def write_marks(marks):
    with open(os.path.join(HERE, "marks.txt"), "w") as f:
        for model in sorted(marks):
            for name, mark in sorted(marks[model].items()):
                f.write(f"{model} {name} {mark}\n")


def pack_buckets(path, out):
    """The flat buffers of rank 0: their size, the shard's, the grid on which they are packed; who lies where."""
    with open(path) as f:
        golden = json.load(f)
    with open(out, "w") as f:
        for tag, case in golden["cases"].items():
            dp = case["world"] // (case["tp"] * case["cp"])
            f.write(f"case {tag} {case['model']} {case['tp']} {case['cp']} {case['ep']} {dp}\n")
            for group in case["groups"]:
                f.write(f"group {group['bucket_size']} {group['shard_size']} {group['chunk_size_factor']}\n")
                for name, (offset, numel, _) in sorted(group["items"].items(), key=lambda item: item[1][0]):
                    f.write(f"{name.removeprefix('module.')} {offset} {numel}\n")


def pack_torch_dist(path, out):
    """One line a sharded tensor: key dtype local-shape global-shape offset, how many dimensions stand for layers and
    experts, digest, into how many parts each axis is cut. One line for each object of a module: its key."""
    with open(path) as f:
        ranks = json.load(f)
    first = ""
    if isinstance(ranks, dict):
        # Where the layers do not divide by the stages, the first stage's.
        first = f" first={ranks['first_stage_layers']}" if "qwen3_dense" in path else ""
        ranks = [rank["sharded"] for rank in ranks["ranks"]]
    grid = {"pp": 1} | dict(re.findall(r"(tp|cp|ep|pp)(\d+)", os.path.basename(path)))
    dp = len(ranks) // (int(grid["tp"]) * int(grid["cp"]) * int(grid["pp"]))
    with open(out, "w") as f:
        f.write(f"grid tp={grid['tp']} cp={grid['cp']} ep={grid['ep']} dp={dp} pp={grid['pp']}{first}\n")
        for number, rank in enumerate(ranks):
            f.write(f"rank {number}\n")
            entries = [t for entry in rank for t in (entry if isinstance(entry, list) else [entry])]
            for t in (t for t in entries if "key" in t):
                shapes = " ".join(text(t[k]) for k in ("local_shape", "global_shape", "global_offset"))
                f.write(f"{t['key']} {t['dtype']} {shapes} {t['prepend']} {t['sha256']} {text(t['axis_fragmentations'])}\n")
            for key in dict.fromkeys(t["object"].split("/")[0] for t in entries if "object" in t):
                f.write(f"object {key}\n")


def write_contents():
    """Every file with the number of its lines, so that a test can tell that it has seen all of them."""
    with open(os.path.join(HERE, "contents.txt"), "w") as out:
        for path in sorted(glob.glob(f"{HERE}/*/*.txt")):
            with open(path) as f:
                out.write(f"{os.path.relpath(path, HERE)} {sum(1 for _ in f)}\n")


def pack_saved(path, out, model):
    """The checkpoint as a whole: key dtype shape sha256, and the boxes (offsets+sizes) that are stored."""
    with open(path) as f:
        golden = json.load(f)
    lines = []
    for key, t in golden["tensors"].items():
        if key.startswith("model.module."):
            boxes = ";".join(sorted(f"{text(c['offsets'])}+{text(c['sizes'])}" for c in t["chunks"]))
            dtype = t["dtype"].removeprefix("torch.")
            lines.append(f"{key.removeprefix('model.module.')} {dtype} {text(t['shape'])} {t['sha256']} {boxes}")
    with open(out, "w") as f:
        f.write(f"model {model}\n" + "\n".join(lines) + "\n")


def main():
    marks = {}
    for folder in ("ranks", "fsdp", "saved", "states", "plain", "plain_saved", "torch_dist"):
        os.makedirs(os.path.join(HERE, folder), exist_ok=True)
    for root in sys.argv[1:]:
        for config in sorted(glob.glob(f"{root}/**/config.json", recursive=True)):
            folder = os.path.dirname(config)
            name = os.path.basename(folder if os.path.basename(folder) != "hf" else os.path.dirname(folder))
            pack_model(folder, os.path.join(HERE, "models", name))
        for path in sorted(glob.glob(f"{root}/*/tp*.json") + glob.glob(f"{root}/broken/*/tp*.json")):
            model, grid = os.path.basename(os.path.dirname(path)), os.path.basename(path)[:-len(".json")]
            pack_ranks(path, os.path.join(HERE, "ranks", f"{model}.{grid}.txt"))
            pack_marks(path, marks)
        for path in sorted(glob.glob(f"{root}/fsdp*/*.json") + glob.glob(f"{root}/hsdp/*.json")):
            tag = os.path.basename(path)[:-len(".json")]
            if tag == "fsdp_layout" or ".opt.bf16" in tag or ".opt.rng" in tag:
                continue
            if not tag.endswith(".dcp"):
                pack_fsdp(path, os.path.join(HERE, "fsdp", f"{tag}.txt"))
            elif os.path.basename(os.path.dirname(path)) == "fsdp":
                pack_saved(path, os.path.join(HERE, "saved", f"{tag[:-len('.dcp')]}.txt"), tag.split(".")[0])
        for path in sorted(glob.glob(f"{root}/fsdp_optim/*.opt*.json") + glob.glob(f"{root}/hsdp/*.opt.json")):
            tag = os.path.basename(path)[:-len(".json")]
            if not tag.endswith(".dcp") and ".opt.rng" not in tag:
                pack_states(path, os.path.join(HERE, "states", f"{tag}.txt"))
        for path in sorted(glob.glob(f"{root}/plain/*.expected.json")):
            pack_plain(path, os.path.join(HERE, "plain", os.path.basename(path)[:-len(".expected.json")] + ".txt"))
        for path in sorted(glob.glob(f"{root}/plain/*.plainsave.json")):
            pack_plain_saved(path, os.path.join(HERE, "plain_saved", os.path.basename(path)[:-len(".plainsave.json")] + ".txt"))
        for path in glob.glob(f"{root}/fsdp_layout.json"):
            pack_buckets(path, os.path.join(HERE, "buckets.txt"))
        for path in sorted(glob.glob(f"{root}/torch_dist/*.tp*_cp1_ep?.json") + glob.glob(f"{root}/torch_dist/tiny_dense2.*_pp2.json") + glob.glob(f"{root}/torch_dist/qwen3_dense.*_pp2.json")):
            pack_torch_dist(path, os.path.join(HERE, "torch_dist", os.path.basename(path)[:-len(".json")] + ".txt"))
    write_marks(marks)
    write_contents()


if __name__ == "__main__":
    main()
