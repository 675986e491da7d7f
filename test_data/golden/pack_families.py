#!/usr/bin/env python3
"""Packs golden data of many families into families/. usage: pack_families.py ORACLE_DIR... [--only MODEL...]

An ORACLE_DIR has the form that pack.py takes. A model becomes one folder (README.md here has the forms of its files): its
config, the recipes of its weights, what every rank of every run held, what every rank of a Megatron-FSDP run saved, and
what every rank handed to a torch_dist save.
Ranks hold much that is equal, so each kind of line is written once, and a rank is a list of lines. The first
16 hexadecimal digits of the digests are kept. Needs numpy and torch.
"""
import glob
import json
import os
import sys

import pack
from pack import HERE, run_lines, tensors_of, text

FAMILIES = os.path.join(HERE, "families")
DIGITS = 16
# Where a name in the file has had another one in memory, by which it was drawn.
IN_MEMORY = [("language_model.model.model.", "language_model.model."), ("language_model.model.", "model.language_model."),
             ("language_model.lm_head.", "lm_head."), ("language_model.model.", "language_model.model.model."),
             ("language_model.lm_head.", "language_model.model.lm_head."), ("model.", "model.language_model.")]
EXPERTS = {"w1": ("gate_up_proj", 0), "w3": ("gate_up_proj", 1), "w2": ("down_proj", 0),
           "gate_proj": ("gate_up_proj", 0), "up_proj": ("gate_up_proj", 1), "down_proj": ("down_proj", 0)}
IN_MEMORY += [("vision_tower.", "model.vision_tower."), ("multi_modal_projector.", "model.multi_modal_projector."),
              ("visual.", "model.visual."), ("model.language_model.", "model."),
              ("vision_tower.vision_model.embeddings.patch_embedding.", "model.vision_tower.embeddings.proj."),
              ("vision_tower.vision_model.encoder.layers.", "model.vision_tower.layers."),
              ("patch_merge_mlp.linear", "model.multi_modal_projector.merge_linear")]
PARTS = [("block_sparse_moe.", "mlp."), ("router.gate.", "gate."), ("shared_mlp.", "shared_experts."), (".index_", ".indexer.")]
PARTS += [("vision_model.", "vision_tower."), *((f"_linear.{n}.", f"_linear.{leaf}.") for n, leaf in ((0, "fc1"), (2, "fc2"), (3, "ln")))]
HALVES = {"gate_proj": 0, "up_proj": 1}


MODEL = [""]  # the one that is packed; later data were drawn by "MODEL:NAME"


def also(name, shape):
    """More recipes than pack.py knows. The model's name in front comes first: it costs little to try."""
    for kind, seed, first in by_name(name, shape):
        yield kind, f"{MODEL[0]}:{seed}", first
        yield kind, seed, first


def by_name(name, shape):
    names = [name] + [to + name[len(front):] for front, to in IN_MEMORY if name.startswith(front)]
    names += [n.replace(part, to) for n in names for part, to in PARTS if part in n]
    names += [front + n.removeprefix("backbone.") for n in names for front in ("model.", "") if n.startswith("backbone.")]
    for n in dict.fromkeys(names):
        yield from pack_candidates(n, shape)
        front, _, leaf = n.removesuffix(".weight").rpartition(".")
        if leaf in HALVES:
            yield "perm", f"{front}.gate_up_proj.weight", HALVES[leaf] * shape[0] * shape[1]
        stem, _, rest = n.partition(".experts.")
        number, _, leaf = rest.partition(".")
        if number.isdigit() and leaf.split(".")[0] in EXPERTS:
            fused, half = EXPERTS[leaf.split(".")[0]]
            yield "perm", f"{stem}.experts.{fused}[{number}]", half * shape[0] * shape[1]
            # Two pools, which the file counts on.
            for pool, e in [("text_moe", int(number)), *(("vision_moe", e) for e in range(int(number)))]:
                yield "perm", f"{stem}.{pool}.experts.{fused}[{e}]", half * shape[0] * shape[1]


pack_candidates, pack.candidates = pack.candidates, also


class Lines:
    """The distinct lines of all ranks, in the order in which they were first seen."""

    def __init__(self):
        self.number = {}

    def rank(self, lines):
        """A rank's lines as ranges of numbers: "0-17 40 19-22"."""
        ranges = []
        for line in lines:
            n = self.number.setdefault(line, len(self.number))
            if ranges and ranges[-1][1] + 1 == n:
                ranges[-1][1] = n
            else:
                ranges.append([n, n])
        return "rank " + " ".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges)


def held(rank):
    """name dtype shape mark digest; persistent buffers follow, with the mark "buffer"."""
    for name, p in rank["params"].items():
        mark = str(p["partition_dim"]) if p.get("tensor_model_parallel") else "-"
        yield f"{name} {p['dtype']} {text(p['shape'])} {mark} {p['sha256'][:DIGITS]}"
    for name, b in rank["buffers"].items():
        if b["persistent"]:
            yield f"{name} {b['dtype']} {text(b['shape'])} buffer {b['sha256'][:DIGITS]}"


def pack_ranks(paths, out):
    lines, runs = Lines(), []
    for path in paths:
        with open(path) as f:
            golden = json.load(f)
        runs.append("run " + " ".join(f"{k}={golden['sizes'][k]}" for k in ("tp", "cp", "ep", "etp", "pp", "dp")))
        runs += [lines.rank(held(rank)) for rank in golden["ranks"]]
    with open(out, "w") as f:
        f.write("\n".join([*lines.number, *runs]) + "\n")


def saved_parts(state):
    """key dtype global-shape digest-of-the-local-shard offsets sizes, or `nothing` for the last two."""
    for key, t in state["tensors"].items():
        shape = t.get("global_shape", t.get("shape"))
        chunks = [c for c in t.get("chunks", [{"offsets": [0] * len(shape), "sizes": shape}]) if all(c["sizes"])]
        box = f"{text(chunks[0]['offsets'])} {text(chunks[0]['sizes'])}" if chunks else "nothing"
        digest = t.get("local_sha256", t.get("sha256"))[:DIGITS]
        yield f"{key.removeprefix('module.')} {t['dtype'].removeprefix('torch.')} {text(shape)} {digest} {box}"


def pack_fsdp(path, out):
    """The run, what each rank hands over, and under "saved" the checkpoint as torch read it back."""
    with open(path) as f:
        golden = json.load(f)
    with open(path.replace(".json", ".dcp.json")) as f:
        saved = json.load(f)
    tag, lines = os.path.basename(path)[:-len(".json")], Lines()
    ranks = [lines.rank(saved_parts(state)) for state in golden["ckpt_state"]]
    wholes = [f"saved {key.removeprefix('model.module.')} {t['dtype'].removeprefix('torch.')} {text(t['shape'])} {t['sha256'][:DIGITS]}"
              for key, t in saved["tensors"].items() if key.startswith("model.module.")]
    with open(out, "w") as f:
        f.write("\n".join([*lines.number, run_lines(tag, golden)[1], *ranks, *wholes]) + "\n")


def pack_torch_dist(path, out):
    """As pack.py has it, and under "objects" how many objects of modules the save has beside the run's own, which these
    records do not list by rank."""
    pack.pack_torch_dist(path, out)
    with open(path.replace(".json", ".dcp.json")) as f:
        saved = json.load(f)
    with open(out, "a") as f:
        f.write(f"objects {saved['other_count'] - sum(name.startswith('common_state/') for name in saved['other_sample'])}\n")
def cases_of(path):
    """The cases of a file of buckets, by name."""
    with open(path) as f:
        return {case.split(" ", 1)[0]: "case " + case for case in f.read().split("case ")[1:]}


def pack_buckets(layout, out):
    """Adds the cases to those that are there, in the order of their names."""
    known = cases_of(out)
    pack.pack_buckets(layout, out)
    with open(out, "r+") as f:
        cases = known | cases_of(out)
        f.seek(0)
        f.write("".join(cases[name] for name in sorted(cases)))
        f.truncate()


def state_constants(folder, out):
    """Writes the sizes that a run made of the constants of the code (opts.json, "radio:LAYERS,WIDTH,HEADS,FFN,...") into
    config.json, where a model of other sizes would have them."""
    with open(os.path.join(folder, "opts.json")) as f:
        patches = [p.split(":")[1].split(",") for p in json.load(f).get("_patch", []) if p.startswith("radio:")]
    if not patches:
        return
    keys = ("num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size")
    with open(os.path.join(out, "config.json"), "r+") as f:
        config = json.load(f)
        config["vision_config"] |= dict(zip(keys, map(int, patches[0]))) | {"max_resolution": 512}
        f.seek(0)
        json.dump(config, f, indent=2)
        f.truncate()


def main():
    roots, _, only = " ".join(sys.argv[1:]).partition("--only")
    only = only.split()
    for root in roots.split():
        for config in sorted(glob.glob(f"{root}/*/hf/config.json")):
            folder = os.path.dirname(os.path.dirname(config))
            model, out = os.path.basename(folder), os.path.join(FAMILIES, os.path.basename(folder))
            if only and model not in only:
                continue
            MODEL[0] = model
            pack.pack_model(os.path.join(folder, "hf"), out)
            if os.path.exists(os.path.join(folder, "opts.json")):
                state_constants(folder, out)
            if ranks := sorted(glob.glob(f"{folder}/tp*.json")):
                pack_ranks(ranks, os.path.join(out, "ranks.txt"))
            for path in sorted(glob.glob(f"{root}/torch_dist/{model}.tp*.json")):
                if not path.endswith(".dcp.json"):
                    tag = os.path.basename(path)[len(model) + 1:-len(".json")]
                    pack_torch_dist(path, os.path.join(out, f"torch_dist.{tag}.txt"))
            for path in sorted(glob.glob(f"{root}/fsdp/{model}.*.json")):
                if not path.endswith(".dcp.json"):
                    tag = os.path.basename(path)[len(model) + 1:-len(".json")]
                    pack_fsdp(path, os.path.join(out, f"fsdp.{tag}.txt"))
        if os.path.exists(f"{root}/fsdp_layout.json"):
            pack_buckets(f"{root}/fsdp_layout.json", os.path.join(FAMILIES, "buckets.txt"))


if __name__ == "__main__":
    main()
