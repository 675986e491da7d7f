"""convert group, ungroup, hybrid-to-gpt, gpt-to-hybrid: small models with one distinct value per item, written with torch's own classes in
every form, come out of every way under the names that this file makes up on its own, as torch reads them; recorded models of the real
code as well; what cannot be moved is refused with every key, and nothing is written.
"""

import argparse
import os

from mckpt_tests.checks import expect, finish, need
from mckpt_tests.folders import difference, scratch, snapshot
from mckpt_tests.models import Models
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA, HAS_MPI

need("torch", "numpy")
import io  # noqa: E402
import itertools  # noqa: E402
import json  # noqa: E402
import pickle  # noqa: E402
import re  # noqa: E402
import zlib  # noqa: E402

import torch  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
from torch.distributed.checkpoint.filesystem import _StorageInfo  # noqa: E402
from torch.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,  # noqa: E402
    TensorProperties,
    TensorStorageMetadata,
)

folder = scratch()
HIDDEN, INNER, STATE, HEADS = 4, 8, 2, 2


# ---- Models: physical layers with the tensors and objects of their kinds

KINDS = {
    "*": {
        "self_attention.linear_qkv.weight": (8, HIDDEN),
        "self_attention.linear_qkv.layer_norm_weight": (HIDDEN,),
        "self_attention.linear_proj.weight": (HIDDEN, 6),
    },
    "-": {"mlp.linear_fc1.weight": (6, HIDDEN), "mlp.linear_fc1.layer_norm_weight": (HIDDEN,), "mlp.linear_fc2.weight": (HIDDEN, 3)},
    "E": {"pre_mlp_layernorm.weight": (HIDDEN,), "mlp.router.weight": (2, HIDDEN), "mlp.experts.experts.linear_fc1.weight": (2, 3, HIDDEN)},
    "M": {
        "mixer.in_proj.weight": (2 * INNER + 2 * STATE + HEADS, HIDDEN),
        "mixer.conv1d.weight": (INNER + 2 * STATE, 1, 4),
        "mixer.conv1d.bias": (INNER + 2 * STATE,),
        "mixer.A_log": (HEADS,),
        "mixer.D": (HEADS,),
        "mixer.dt_bias": (HEADS,),
        "mixer.norm.weight": (INNER,),
        "mixer.out_proj.weight": (HIDDEN, INNER),
    },
    "G": {
        "self_attention.in_proj.weight": (2 * 6 + 2 * 4 + 2 * 2, HIDDEN),
        "self_attention.conv1d.weight": (2 * 6 + 4, 1, 3),
        "self_attention.A_log": (2,),
        "self_attention.dt_bias": (2,),
        "self_attention.out_proj.weight": (HIDDEN, 4),
    },
}
PARTS = {
    "mixer.in_proj.weight": [("z", INNER), ("x", INNER), ("B", STATE), ("C", STATE), ("dt", HEADS)],
    "mixer.conv1d.weight": [("x", INNER), ("B", STATE), ("C", STATE)],
    "mixer.conv1d.bias": [("x", INNER), ("B", STATE), ("C", STATE)],
    "self_attention.in_proj.weight": [("query", 6), ("key", 6), ("value", 4), ("z", 4), ("beta", 2), ("alpha", 2)],
    "self_attention.conv1d.weight": [("query", 6), ("key", 6), ("value", 4)],
}
STATES = ("exp_avg", "exp_avg_sq", "fp32_param")


class Model:
    """`places`: physical layers with the tensors of each; `mtp`: the same of each depth."""

    def __init__(self, pattern, dialect, chained=False, whole_mixers=False):
        self.pattern, self.dialect = pattern, dialect
        main, *mtp = pattern.split("/")
        self.items = [[c for c in item.strip("[]")] for item in re.findall(r"\[[^]]*\]|[^|\[\]]", main)]
        self.symbols = [s for item in self.items for s in item]
        self.depths = [list(part) for part in mtp if part]
        self.front = "chained_0." if chained else ""
        self.states = STATES if chained else STATES[:2]
        self.whole_mixers = whole_mixers
        self.next = 0

    def values(self, shape):
        count = 1
        for n in shape:
            count *= n
        self.next += count
        return torch.arange(self.next - count, self.next, dtype=torch.float32).reshape(shape)

    def fresh(self):
        self.next += 1
        return self.next

    def write(self, form, mixers=True, mtp_word=None):
        """Every tensor and object of the model under the names of the form: {key: tensor or object}."""
        self.next = 0
        self.tensors, self.objects, self.stacks = {}, {}, {}
        self.parameter("embedding.word_embeddings.weight", (12, HIDDEN))
        gpt = form in ("gpt", "stacked")
        grouped = "[" in self.pattern.split("/")[0]
        norm = "final_layernorm" if gpt or (form == "logical" and grouped) else "final_norm"
        self.parameter(f"decoder.{norm}.weight", (HIDDEN,), state=f"decoder.{norm}")
        count = {"attention": 0, "mlp": 0}
        physical = 0
        for logical, item in enumerate(self.items):
            for member, symbol in enumerate(item):
                family = "attention" if symbol in "*G" else "mlp" if symbol in "-E" else None
                number = {"flat": physical, "member": logical, "logical": logical}.get(form, count.get(family))
                within = f"layers.{member}." if form == "member" and len(item) > 1 or form == "member" and self.is_group(logical) else ""
                prefix = "decoder.layers." if form == "stacked" else f"decoder.layers.{number}.{within}"
                if family:
                    count[family] += 1
                for tail, shape in KINDS[symbol].items():
                    self.layer_parameter(prefix, tail, shape, number if form == "stacked" else None, keep=mixers or symbol != "M")
                physical += 1
        self.gpt_layers = count["attention"]
        for depth, part in enumerate(self.depths):
            word = mtp_word or ("transformer_layer" if self.dialect == "torch_dist" else "mtp_model_layer")
            self.parameter(f"mtp.layers.{depth}.eh_proj.weight", (HIDDEN, 2 * HIDDEN))
            for j, symbol in enumerate(part):
                prefix = f"mtp.layers.{depth}.{word}." if gpt else f"mtp.layers.{depth}.mtp_model_layer.layers.{j}."
                for tail, shape in KINDS[symbol].items():
                    self.layer_parameter(prefix, tail, shape, None)
        for key, layers in self.stacks.items():
            self.tensors[key] = torch.stack([layers[i] for i in range(self.gpt_layers)])
        for key in [k for k in self.objects if "STACK" in k]:
            self.objects[key.replace("STACK", str(self.gpt_layers))] = self.objects.pop(key)
        self.run_objects(form)
        return {**self.tensors, **self.objects}

    def is_group(self, logical):
        return [item.startswith("[") for item in re.findall(r"\[[^]]*\]|[^|\[\]]", self.pattern.split("/")[0])][logical]

    def layer_parameter(self, prefix, tail, shape, stacked, keep=True):
        if self.dialect == "fsdp_dtensor":
            names = {"mlp.linear_fc1.weight": ["_w", "_v"]}.get(tail, [""])
            rows = shape[0] // len(names)
            if tail == "mlp.experts.experts.linear_fc1.weight":
                return [self.parameter(prefix + f"mlp.experts.linear_fc1.weight{e}", shape[1:], keep=keep) for e in range(shape[0])]
            if tail in ("mixer.conv1d.weight", "mixer.conv1d.bias"):
                return self.parameter(prefix + tail.replace("conv1d.", "conv1d_"), shape, keep=keep)
            return [
                self.parameter(prefix + tail + name, (rows, *shape[1:]), meta=tail if i == 0 else None, keep=keep)
                for i, name in enumerate(names)
            ]
        state = (
            (prefix + tail.rsplit(".", 1)[0])
            if tail in ("self_attention.linear_proj.weight", "mlp.linear_fc2.weight", "mixer.out_proj.weight")
            else None
        )
        if tail in PARTS:
            if self.whole_mixers:
                return self.parameter(prefix + tail, shape, keep=keep)
            # In the order of the whole: both forms draw the same values.
            return self.parts(prefix + tail, shape, PARTS[tail], keep)
        self.parameter(prefix + tail, shape, stacked=stacked, state=state, keep=keep)

    def parts(self, base, shape, parts, keep):
        for front in self.fronts():
            whole, row = self.values(shape), 0
            for name, rows in parts:
                if keep:
                    self.tensors[f"{front}{base}.{name}"] = whole[row : row + rows].clone()
                row += rows
        self.fresh()

    def fronts(self):
        return ["", *(f"{self.front}optimizer.state.{s}." for s in self.states)]

    def parameter(self, name, shape, stacked=None, state=None, meta=None, keep=True):
        fronts = [("", "")] + [(f"{self.front}optimizer.state.{s}.", "") for s in self.states]
        if self.dialect == "fsdp_dtensor":
            fronts = [("model.module.", "")] + [("optimizer.state.module.module.module.", f".{s}") for s in STATES[:2]]
        for front, tail in fronts:
            value = self.values(shape)
            if keep and stacked is not None:
                self.stacks.setdefault(front + name + tail, {})[stacked] = value
            elif keep:
                self.tensors[front + name + tail] = value
        object_value = {"of": self.fresh()}
        if not keep:
            return
        if self.dialect == "fsdp_dtensor":
            self.objects[f"optimizer.param_to_group_meta.module.module.module.{re.sub('_[wv]$', '', name)}.lr"] = (
                object_value["of"] if meta is None else 0.5
            )
        elif name.endswith("experts.experts.linear_fc1.weight"):
            base = name.removesuffix(".weight")
            for e in range(2):
                place = f"{stacked}.{e}_STACK.2" if stacked is not None else f"{e}_2"
                self.objects[f"{base}._extra_state/shard_{place}"] = [{"of": object_value["of"], "expert": e}]
        elif state:
            self.objects[f"{state}._extra_state/shard_{stacked}_STACK" if stacked is not None else f"{state}._extra_state/shard_0_1"] = [
                object_value
            ]

    def run_objects(self, form):
        args = argparse.Namespace(
            hidden_size=HIDDEN,
            num_layers=self.gpt_layers if form in ("gpt", "stacked") else len(self.symbols),
            hybrid_layer_pattern=self.pattern_of(form),
            mtp_num_layers=len(self.depths) or None,
            bf16=True,
        )
        if self.dialect == "fsdp_dtensor":
            self.objects.update(
                {
                    "args": args,
                    "checkpoint_version": 3.0,
                    "iteration": 10,
                    "opt_param_scheduler.max_lr": 1e-4,
                    "rng_state.(0, 0).0.random_rng_state": (3, (1, 2), None),
                }
            )
            self.tensors["rng_state.(0, 0).0.torch_rng_state"] = torch.arange(16, dtype=torch.uint8)
        else:
            self.tensors["a scalar"], self.tensors["no items"] = torch.tensor(7, dtype=torch.int64), torch.empty(
                (0, 3), dtype=torch.bfloat16
            )
            self.objects.update(
                {
                    "common_state/shard_0_1": [{"args": args, "iteration": 10, "optimizer": {"param_groups": [{"lr": 1.0, "step": 3}]}}],
                    "rng_state/shard_0.0_1.1": [[{"x": 1}]],
                }
            )

    def pattern_of(self, form):
        if form in ("gpt", "stacked"):
            return None
        return re.sub(r"[\[\]]", "", self.pattern) if form == "flat" else self.pattern


# ---- Folders, with torch's classes


def boxes_of(key, shape, stacked):
    """Two to four boxes along the first dimensions that have items to share; of a stack one layer each."""
    dims = [(0, n) for n in shape]
    cuts = [[d] for d in dims]
    for d, n in enumerate(shape):
        if stacked and d == 0:
            cuts[d] = [(i, i + 1) for i in range(n)]
        elif n > 1 and (d == stacked or d == stacked + 1 and "linear_proj" in key):
            at = 1 + zlib.crc32(f"{key} {d}".encode()) % (n - 1) if n > 2 else 1
            cuts[d] = [(0, at), (at, n)]
    return list(itertools.product(*cuts))


def save(items, path, torch_dist, ranks=3, iteration="iter_0000010", whole=False, boxes=None):
    out = os.path.join(path, iteration)
    os.makedirs(out)
    meta, places, files = {}, {}, [io.BytesIO() for _ in range(ranks)]

    def put(rank, index, value):
        begin = files[rank].tell()
        torch.save(value, files[rank])
        places[index] = _StorageInfo(f"__{rank}_0.distcp", begin, files[rank].tell() - begin)

    turn = 0
    for key, value in items.items():
        turn += 1
        if not isinstance(value, torch.Tensor):
            meta[key] = BytesStorageMetadata()
            put(turn % ranks, MetadataIndex(key), value)
            continue
        stacked = bool(re.search(r"decoder\.layers\.[a-z]", key))
        if boxes is not None:
            mine = boxes[key]
        elif whole and not stacked:
            mine = [tuple((0, n) for n in value.shape)]
        else:
            mine = boxes_of(key, tuple(value.shape), stacked)
        chunks = []
        for i, box in enumerate(mine):
            offsets, sizes = torch.Size(b for b, _ in box), torch.Size(e - b for b, e in box)
            chunks.append(ChunkStorageMetadata(offsets, sizes))
            put((turn + i) % ranks, MetadataIndex(key, offsets, i), value[tuple(slice(b, e) for b, e in box)].clone())
        meta[key] = TensorStorageMetadata(TensorProperties(dtype=value.dtype), value.size(), chunks)
    for rank, file in enumerate(files):
        with open(os.path.join(out, f"__{rank}_0.distcp"), "wb") as f:
            f.write(file.getvalue())
    with open(os.path.join(out, ".metadata"), "wb") as f:
        pickle.dump(Metadata(meta, None if torch_dist else {k: (k,) for k in meta}, places), f)
    if torch_dist:
        with open(os.path.join(out, "metadata.json"), "w") as f:
            f.write('{"sharded_backend": "torch_dist", "sharded_backend_version": 1}')
    with open(os.path.join(path, "latest_checkpointed_iteration.txt"), "w") as f:
        f.write("10")
    return path


def load(path, iteration="iter_0000010"):
    path = os.path.join(path, iteration)
    metadata = dcp.FileSystemReader(path).read_metadata()
    state = {
        k: torch.full(m.size, -1, dtype=m.properties.dtype)
        for k, m in metadata.state_dict_metadata.items()
        if isinstance(m, TensorStorageMetadata)
    }
    planner = dcp.DefaultLoadPlanner(flatten_state_dict=False, flatten_sharded_tensors=False)
    dcp.load(state, checkpoint_id=path, no_dist=True, planner=planner)
    for index, place in metadata.storage_data.items():
        if index.fqn not in state:
            with open(os.path.join(path, place.relative_path), "rb") as f:
                f.seek(place.offset)
                state[index.fqn] = torch.load(io.BytesIO(f.read(place.length)), weights_only=False)
    return state, metadata


def unlike(got, want):
    """The differences between two checkpoints; "" where there are none."""
    if set(got) != set(want):
        return f"keys: {sorted(set(got) ^ set(want))[:6]}"
    for key, value in want.items():
        same = torch.equal(got[key], value) and got[key].dtype == value.dtype if isinstance(value, torch.Tensor) else got[key] == value
        if not same:
            return f"{key}: {got[key]} instead of {value}"
    return ""


# ---- The ways

turns = itertools.count()


def path(name=""):
    return os.path.join(folder.name, f"{next(turns)}{name}")


def convert(mode, source, *args, **how):
    target = path("out")
    result = run_mckpt("convert", mode, source, target, "--no-sync", "-q", *args, **how)
    expect(result.returncode == 0, f"{mode} {args}: {result.stderr[:600]}")
    return target


def start_of(model, form):
    return save(model.write(form), path(), model.dialect == "torch_dist")


def moves(model, mode, start, target, *args, mixers=True):
    """Converts and compares with what the model writes in the form `target`."""
    torch_dist = model.dialect == "torch_dist"
    end = convert(mode, start, *args)
    got, metadata = load(end)
    what = f"{model.dialect} {model.pattern} {mode} {args} -> {target}"
    expect(not (found := unlike(got, model.write(target, mixers=mixers))), f"{what}: {found}")
    expect((metadata.planner_data is None) == torch_dist, f"{what}: planner_data")
    expect(os.path.exists(os.path.join(end, "iter_0000010", "metadata.json")) == torch_dist, f"{what}: metadata.json")
    verified = run_mckpt("verify", end, "-q")
    expect(verified.returncode == 0, f"{what}: {verified.stdout[:500]}{verified.stderr[:300]}")
    return end


def hybrid_forms():
    for dialect, pattern in itertools.product(("torch_dist", "fsdp_dtensor"), ("[*-]M[*E]", "M[M*-]|-", "[M]G|[E]/*M/*M")):
        model = Model(pattern, dialect, chained=pattern.startswith("M"))
        native, other = ("logical", "member") if dialect == "torch_dist" else ("member", "logical")
        flat = moves(model, "ungroup", start_of(model, native), "flat")
        grouped = moves(model, "group", flat, native, "--pattern", pattern)
        renamed = moves(model, "group", grouped, other, "--pattern", pattern, "--keys", other)
        again = moves(model, "ungroup", renamed, "flat", "--pattern", pattern)
        moves(model, "group", again, other, "--pattern", pattern, "--keys", other)
        compared_over_groups(model, pattern, start_of(model, native), flat, grouped, renamed)


def compared_over_groups(model, pattern, start, flat, grouped, renamed):
    """`verify --against` finds what was grouped or ungrouped equal to what it was made of, and the one item that is not."""
    count = len([v for v in model.write("flat").values() if isinstance(v, torch.Tensor)])
    for a, b in ((flat, start), (grouped, flat), (renamed, flat), (start, flat), (renamed, grouped)):
        result = run_mckpt("verify", a, "--against", b, "--json")
        told = json.loads(result.stdout)
        expect(
            result.returncode == 0 and told["checks"][-1]["count"] == count,
            f"{model.dialect} {pattern}: {result.stdout[:400]}{result.stderr[:300]}",
        )
    items = model.write("flat")
    key = next(k for k in items if k.endswith("linear_qkv.weight") and "optimizer" not in k)
    items[key] = items[key].clone()
    items[key].view(-1)[5] += 64
    result = run_mckpt("verify", grouped, "--against", save(items, path(), model.dialect == "torch_dist"), "--json")
    found = [f["tensor"] for f in json.loads(result.stdout)["findings"]]
    expect(result.returncode == 1 and found == [key], f"{model.dialect} {pattern}: one item: {found} {result.stderr[:300]}")


def gpt_forms():
    patterns = ["*-*-", "**--", "[*-][*-]", "E*E*", "[*E]|[*E]/*E/*E", "*-/-*", "M*-M*-M"]
    for dialect, pattern in itertools.product(("torch_dist", "fsdp_dtensor"), patterns):
        model = Model(pattern, dialect)
        none = {"mixers": "M" not in pattern}
        mixers = [] if none["mixers"] else ["--without-mixers"]
        for hybrid in ["logical", "member", "flat"] if "[" in pattern else ["flat"]:
            start = start_of(model, hybrid)
            for gpt in ["stacked", "gpt"] if dialect == "torch_dist" else ["gpt"]:
                layers = ["--layers", "indexed"] if gpt == "gpt" and dialect == "torch_dist" else []
                end = moves(model, "hybrid-to-gpt", start, gpt, *mixers, *layers, "--pattern", pattern, **none)
                if hybrid != "flat" or "[" not in pattern:
                    keys = ["--keys", hybrid] if hybrid != "flat" else []
                    moves(model, "gpt-to-hybrid", end, hybrid, "--pattern", pattern, *keys, *mixers, **none)


def lacking_mixers():
    """A hybrid model's checkpoint that was made of a GPT model's, without M layers, goes every way that a whole one goes."""
    for dialect, pattern in itertools.product(("torch_dist", "fsdp_dtensor"), ("M*-M*-", "*-M", "[M*-]M", "M*-[M*-]/*-")):
        model = Model(pattern, dialect)
        torch_dist = dialect == "torch_dist"
        gpt, grouped = ("stacked", "logical") if torch_dist else ("gpt", "member")
        hybrid = grouped if "[" in pattern else "flat"
        start = save(model.write(gpt, mixers=False), path(), torch_dist)
        end = moves(model, "gpt-to-hybrid", start, hybrid, "--pattern", pattern, "--without-mixers", mixers=False)
        told = run_mckpt("verify", end).stdout
        expect(("no tensor of them is stored" in told) == (pattern != "[M*-][M*-]"), f"{dialect} {pattern}: {told}")
        moves(model, "hybrid-to-gpt", end, gpt, "--without-mixers", mixers=False)
        if "[" in pattern:
            flat = moves(model, "ungroup", end, "flat", mixers=False)
            moves(model, "group", flat, grouped, "--pattern", pattern, mixers=False)
        if not torch_dist:
            done = run_mckpt("convert", "reshard", end, path("out"), "--any-model", "--no-sync", "-q")
            expect(done.returncode == 0, f"{dialect} {pattern}: reshard: {done.stderr[:400]}")
        # One of them lost is another matter.
        if pattern.count("M") > 1:
            items = model.write(hybrid)
            lost = {k: v for k, v in items.items() if not re.search(r"decoder\.layers\.0\.(layers\.0\.)?mixer", k)}
            refused(
                "MC1312" if "[" not in pattern[:1] else "MC0205",
                [],
                "hybrid-to-gpt",
                save(lost, path(), torch_dist),
                "--without-mixers",
                "--pattern",
                pattern,
            )


def whole_mixers():
    """Written by an offline converter, mixers are whole; they come out in the parts that Megatron asks for."""
    for pattern in ("[M*-]M", "G[M*-]"):
        whole, parts = (Model(pattern, "torch_dist", whole_mixers=w) for w in (True, False))
        start = save(whole.write("logical"), path(), True, whole=True)
        got, want = load(convert("ungroup", start))[0], parts.write("flat")
        expect(not (found := unlike(got, want)), f"{pattern}: whole mixers: {found}")
        refused(
            "MC2012",
            ["in several chunks: which rank has which rows", "in_proj.weight", "conv1d.weight"],
            "ungroup",
            save(whole.write("logical"), path(), True),
        )
        items = whole.write("logical")
        name = [k for k in items if k.endswith("A_log") and "optimizer" not in k][0]
        items[name] = torch.zeros(5)
        refused("MC2012", ["cannot be computed", "in_proj.weight"], "ungroup", save(items, path(), True, whole=True))


# ---- Recorded models of the real code

GROUPED = {"*-": "[*-]", "*-M*E": "[*-]M[*E]", "G": "[G]", "M*-E": "[M*-][E]", "MG*-": "M[G][*-]", "MGE": "[MGE]"}


def recorded():
    with open(os.path.join(DATA, "hybrid", "layer_keys.json")) as f:
        ranks = json.load(f)["models"]
    for name in sorted({m["name"] for m in ranks}):
        mine = sorted((m for m in ranks if m["name"] == name), key=lambda m: m["rank"])
        items, boxes, number = {}, {}, 0
        for m in mine:
            for local, key, shape, offset, *size in m["keys"]:
                if not size:
                    items[f"{key}/shard_{'.'.join(map(str, offset))}_{'.'.join(map(str, shape))}"] = None
                    continue
                size = [[1] * (len(shape) - len(size[0])) + size[0]]  # of one expert
                whole = items.setdefault(key, torch.full(shape, -1, dtype=torch.int32))
                box = tuple(slice(o, o + n) for o, n in zip(offset, size[0]))
                if bool((whole[box] == -1).all()):
                    whole[box] = torch.arange(number, number + whole[box].numel(), dtype=torch.int32).reshape(whole[box].shape)
                    number += whole[box].numel()
                    boxes.setdefault(key, []).append(tuple((o, o + n) for o, n in zip(offset, size[0])))
        expect(all(bool((v >= 0).all()) for v in items.values() if isinstance(v, torch.Tensor)), f"{name}: not all of a tensor is recorded")
        pattern = mine[0]["pattern"]
        start = save(items, path(), True, boxes=boxes)
        if name == "k_pr_dup":
            refused("MC0205", ["2 layers of the group [MM]", "decoder.layers.0.mixer.A_log"], "ungroup", start, "--pattern", pattern)
        elif "[" in pattern:
            there_and_back(name, start, items, pattern, "ungroup", "group")
        else:
            empty = {k: v for k, v in items.items() if not k.startswith("output_layer._extra_state")}
            there_and_back(name, start, empty, GROUPED[pattern], "group", "ungroup")


def there_and_back(name, start, items, pattern, there, back):
    """The pattern with brackets says where every layer goes."""
    first, logical_of = 0, []
    for logical, item in enumerate(re.findall(r"\[[^]]*\]|[^|\[\]]", pattern)):
        logical_of += [logical] * len(item.strip("[]"))
    symbols = re.sub(r"[\[\]|]", "", pattern)
    family = {"M": "mixer.", "*": "self_attention.", "G": "self_attention.", "-": "mlp.", "E": "mlp."}

    def renamed(key):
        match = re.match(r"decoder\.layers\.(\d+)\.(.*)", key)
        if not match:
            return key.replace("final_layernorm", "final_norm") if there == "ungroup" else key.replace("final_norm", "final_layernorm")
        number, rest = int(match[1]), match[2]
        if there == "group":
            return f"decoder.layers.{logical_of[number]}.{rest}"
        mine = [
            p
            for p in range(len(symbols))
            if logical_of[p] == number and rest.replace("pre_mlp_layernorm", "mlp").startswith(family[symbols[p]])
        ]
        return f"decoder.layers.{mine[0]}.{rest}"

    end = convert(there, start, "--pattern", pattern)
    expect(not (found := unlike(load(end)[0], {renamed(k): v for k, v in items.items()})), f"{name}: {there}: {found}")
    again = convert(back, end, "--pattern", pattern)
    expect(not (found := unlike(load(again)[0], items)), f"{name}: {back}: {found}")


def real_stacks():
    """A torch_dist checkpoint by megatron-core, of two pipeline stages, into layers of a hybrid model and
    back."""
    source = os.path.join(DATA, "dcp", "torch_dist_pp2")
    start, _ = load(os.path.dirname(source), os.path.basename(source))
    end = path("out")
    result = run_mckpt("convert", "gpt-to-hybrid", source, end, "--pattern", "*-*-", "-q", "--no-sync")
    expect(result.returncode == 0, f"torch_dist_pp2: {result.stderr[:300]}")
    got, _ = load(end, "release")
    for key, value in start.items():
        match = re.match(r"decoder\.layers\.(\w*)(.*?)(/shard_(\d)_2)?$", key)
        for layer in range(2 if match and isinstance(value, torch.Tensor) else 0):
            name = f"decoder.layers.{2 * layer + (match[1] == 'mlp')}.{match[1]}{match[2]}"
            expect(torch.equal(got[name], value[layer]), f"torch_dist_pp2: {name}")
        if match and match[3]:
            expect(
                f"decoder.layers.{2 * int(match[4]) + (match[1] == 'mlp')}.{match[1]}{match[2]}/shard_0_1" in got, f"torch_dist_pp2: {key}"
            )
    back = path("out")
    result = run_mckpt("convert", "hybrid-to-gpt", end, back, "--pattern", "*-*-", "-q", "--no-sync")
    expect(result.returncode == 0, f"torch_dist_pp2 back: {result.stderr[:300]}")
    again, _ = load(back, "release")
    same = {k: v for k, v in start.items() if not k.startswith(("common_state", "decoder")) or isinstance(v, torch.Tensor)}
    expect(set(again) == set(start) and not unlike({k: again[k] for k in same}, same), "torch_dist_pp2: there and back")
    mini = os.path.join(DATA, "dcp", "torch_dist_mini")
    expect(run_mckpt("verify", mini, "-q").returncode == 0, "torch_dist_mini does not verify")
    refused("MC0205", ["layer 0 of the pattern, * (self attention), has no key", "layer 2 of"], "gpt-to-hybrid", mini, "--pattern", "*-*-")


def made_of_hugging_face():
    """A checkpoint that mckpt made, whose args have no pattern, into groups and back, in both forms of groups."""
    models = Models()
    model, made = models.path("nemotron_h"), path("out")
    done = run_mckpt("convert", "hf-to-fsdp", model, made, "--tp", "2", "--dp", "2", "--vocab-size", "auto", "--no-sync", "-q")
    expect(done.returncode == 0, f"nemotron_h: {done.stderr[:300]}")
    for keys in ("member", "logical"):
        grouped, flat = path("out"), path("out")
        for args in (
            ["convert", "group", made, grouped, "--pattern", "[M-]M[*-]", "--keys", keys, "--no-sync"],
            ["verify", grouped],
            ["convert", "ungroup", grouped, flat, "--no-sync"],
            ["verify", flat, "--against", made],
            ["verify", flat, "--against", model],
            ["export", flat, path("out"), "--no-sync"],
        ):
            done = run_mckpt(*args, "-q")
            expect(done.returncode == 0, f"nemotron_h {args[:2]}: {done.stdout[:300]}{done.stderr[:300]}")


# ---- What is refused, and what is not


def refused(code, words, mode, source, *args):
    before = snapshot(folder.name)
    result = run_mckpt("convert", mode, source, path("out"), *args)
    what = f"{mode} {os.path.basename(str(source))} {args}"
    expect(result.returncode != 0 and f"[{code}]" in result.stderr, f"{what}: not {code}: {result.stderr[:400]}")
    expect(all(word in result.stderr for word in words), f"{what}: lacks {words}: {result.stderr[:1200]}")
    expect(snapshot(folder.name) == before, f"{what}: refused, and something was written")


def with_items(model, form, more=None, without=()):
    items = model.write(form)
    return save({**{k: v for k, v in items.items() if k not in without}, **(more or {})}, path(), model.dialect == "torch_dist")


def refusals():
    one = torch.zeros(3)
    for dialect in ("torch_dist", "fsdp_dtensor"):
        front = "" if dialect == "torch_dist" else "model.module."
        model = Model("[*-]M", dialect)
        form = "logical" if dialect == "torch_dist" else "member"
        keys = {f"{front}decoder.layers.{rest}": one for rest in ("2.mixer.D", "1.custom.weight", "1.mlp.router.weight", "x.mixer.D")}
        words = [
            "logical layers 0 to 1",
            "no kind of layer",
            "layer 2 of the pattern is M",
            "this layer is stored alone" if dialect == "" else "'layers.'",
            "MC2005",
        ]
        gap = {f"{front}decoder.layers.9.mixer.D": one}
        refused("MC0205", ["4 keys cannot be moved", *keys, *words], "ungroup", with_items(model, form, keys), "--accept", "MC1312")
        refused("MC1312", ["decoder.layers.9.mixer.D"], "ungroup", with_items(model, form, gap))
        refused("MC0205", ["a key cannot be moved", *gap], "ungroup", with_items(model, form, gap), "--accept", "MC1312")
        refused(
            "MC3005",
            ["final_norm.weight", "final_layernorm.weight"],
            "ungroup",
            with_items(model, form, {f"{front}decoder.{n}.weight": torch.zeros(HIDDEN) for n in ("final_norm", "final_layernorm")}),
        )
        refused("MC0205", ["layer 0 of the pattern is M"], "ungroup", with_items(model, "flat"), "--pattern", "M[*-]")
        refused("MC0205", ["has no key"], "ungroup", with_items(model, form), "--pattern", "[*-]MM")
        refused("MC0001", ["already"], "ungroup", with_items(model, "flat"), "--pattern", "[*-]M")
        refused("MC0205", ["no groups"], "ungroup", with_items(model, "flat"))
        refused("MC0001", ["--pattern"], "group", with_items(model, "flat"))
        refused("MC0001", ["--pattern"], "ungroup", with_items(model, form, without=("args", "common_state/shard_0_1")))
        refused("MC3005", ["decoder.layers.2.mixer.D", "MC3005", "Mamba mixer"], "hybrid-to-gpt", with_items(model, "flat"))
        refused("MC3005", ["--without-mixers"], "gpt-to-hybrid", with_items(Model("*-", dialect), "gpt"), "--pattern", "*-M")
        refused("MC3005", ["G, gated delta net"], "hybrid-to-gpt", with_items(Model("G-", dialect), "flat"))
        refused("MC3005", ["2 layers are *, 1 is - or E"], "hybrid-to-gpt", with_items(Model("**-", dialect), "flat"))
        refused("MC0205", ["layer 1 of the pattern is E"], "gpt-to-hybrid", with_items(Model("*-", dialect), "gpt"), "--pattern", "*E")
        refused("MC0205", ["has no key"], "gpt-to-hybrid", with_items(Model("*-", dialect), "gpt"), "--pattern", "*-*-")
        refused(
            "MC0205",
            ["0 to 0"] if dialect == "fsdp_dtensor" else ["stacks 2 layers"],
            "gpt-to-hybrid",
            with_items(Model("*-*-", dialect), "gpt" if dialect == "fsdp_dtensor" else "stacked"),
            "--pattern",
            "*-",
        )
    refused("MC0001", ["--keys"], "gpt-to-hybrid", with_items(Model("*-", "torch_dist"), "stacked"), "--pattern", "*-", "--keys", "logical")
    refused("MC0001", ["stacked"], "hybrid-to-gpt", with_items(Model("*-", "fsdp_dtensor"), "flat"), "--layers", "stacked")
    refused("MC1112", ["safetensors"], "ungroup", os.path.join(DATA, "models", "tiny_qwen3_moe"))
    model = Model("*-*-", "torch_dist")
    bias = {f"{s}decoder.layers.0.self_attention.linear_proj.bias": one for s in ("", *(f"optimizer.state.{s}." for s in STATES))}
    refused("MC3005", ["1 of 2 layers", "--layers indexed", *bias], "hybrid-to-gpt", with_items(model, "flat", bias))
    got = load(convert("hybrid-to-gpt", with_items(model, "flat", bias), "--layers", "indexed"))[0]
    expect(all(key in got for key in bias), "--layers indexed keeps what only one layer has")
    buckets = {"optimizer.distributed.dp_group_idx_0.gbuf_idx_0.dtype_bf16.bucket_idx_0.exp_avg": one}
    refused("MC3005", ["--weights-only", *buckets], "hybrid-to-gpt", with_items(model, "flat", buckets))
    got = load(convert("hybrid-to-gpt", with_items(model, "flat", buckets), "--weights-only"))[0]
    want = {k: v for k, v in model.write("stacked").items() if "optimizer" not in k}
    expect(not (found := unlike(got, want)), f"--weights-only: {found}")
    odd = {"decoder.layers.1.mlp.linear_fc1._extra_state": None}
    refused("MC2005", ["/shard_<layer>_<count>", *odd], "hybrid-to-gpt", with_items(model, "flat", odd))


def norm_places():
    """Norms that stand in the layer, as models of the local kind have them, become those that are fused, and
    back; norms of experts stay."""
    names = {
        "self_attention.linear_qkv.layer_norm_weight": "input_layernorm.weight",
        "mlp.linear_fc1.layer_norm_weight": "pre_mlp_layernorm.weight",
    }

    def apart(items):
        for fused, own in names.items():
            items = {key.replace(fused, own): value for key, value in items.items()}
        return items

    for dialect, pattern in itertools.product(("torch_dist", "fsdp_dtensor"), ("*-*-", "*E", "M*-[M*-]/*-")):
        model = Model(pattern, dialect)
        mixers, flags = "M" not in pattern, [] if "M" not in pattern else ["--without-mixers"]
        hybrid = "flat" if "[" not in pattern else "logical" if dialect == "torch_dist" else "member"
        gpt = "stacked" if dialect == "torch_dist" else "gpt"
        main = lambda items: {k: v for k, v in items.items() if "mtp." not in k}
        mtp = lambda items: {k: v for k, v in items.items() if "mtp." in k}
        moved = lambda items: apart(main(items)) | mtp(items)
        source = save(moved(model.write(gpt, mixers=mixers)), path(), dialect == "torch_dist")
        got = load(convert("gpt-to-hybrid", source, "--pattern", pattern, "--norms", "fused", *flags))[0]
        expect(not (found := unlike(got, model.write(hybrid, mixers=mixers))), f"{dialect} {pattern}: norms fused: {found}")
        got = load(convert("hybrid-to-gpt", start_of(model, hybrid), "--norms", "apart", *flags))[0]
        expect(not (found := unlike(got, moved(model.write(gpt, mixers=mixers)))), f"{dialect} {pattern}: norms apart: {found}")
    model = Model("*-", "torch_dist")
    empty = {"decoder.layers.input_layernorm._extra_state/shard_0_1": [None]}
    source = save(apart(model.write("stacked")) | empty, path(), True)
    got = load(convert("gpt-to-hybrid", source, "--pattern", "*-", "--norms", "fused"))[0]
    expect(not (found := unlike(got, model.write("flat"))), f"the state of a norm that is gone: {found}")
    full = {"decoder.layers.input_layernorm._extra_state/shard_0_1": [torch.ones(1)]}
    refused(
        "MC3005",
        ["the state is not empty", *full],
        "gpt-to-hybrid",
        save(apart(model.write("stacked")) | full, path(), True),
        "--pattern",
        "*-",
        "--norms",
        "fused",
    )
    both = {"decoder.layers.input_layernorm.weight": torch.zeros(1, HIDDEN)}
    refused(
        "MC3005",
        ["would be written to", *both],
        "gpt-to-hybrid",
        save(model.write("stacked") | both, path(), True),
        "--pattern",
        "*-",
        "--norms",
        "fused",
    )


def flattened_states():
    """States that older torch_dist saves flattened have their shapes in a field of .metadata that no longer goes along."""
    model = Model("[*-]M", "torch_dist")
    items = model.write("logical")
    flat = {k: v.reshape(-1) if k.startswith("optimizer.state.exp_avg.") and v.dim() > 1 else v for k, v in items.items()}
    refused(
        "MC3005",
        ["flattened", "--weights-only", "optimizer.state.exp_avg.embedding.word_embeddings.weight"],
        "ungroup",
        save(flat, path(), True),
    )
    got = load(convert("ungroup", save(flat, path(), True), "--weights-only"))[0]
    expect(
        not (found := unlike(got, {k: v for k, v in model.write("flat").items() if "optimizer" not in k})),
        f"flattened states left behind: {found}",
    )


def damaged_objects():
    """One bit of an object, in a data file or in a file of its own, stops what would carry it on."""
    for in_file in (False, True):
        model = Model("[*-]M", "torch_dist")
        items = model.write("logical")
        common = items.pop("common_state/shard_0_1") if in_file else items["common_state/shard_0_1"]
        source = save(items, path(), True)
        at = os.path.join(source, "iter_0000010")
        if in_file:
            torch.save(common[0], os.path.join(at, "common.pt"))
        torch.save({"step": torch.tensor(77)}, os.path.join(at, "train_state.pt"))
        flat = convert("ungroup", source, "--pattern", "[*-]M")
        expect(os.path.exists(os.path.join(flat, "iter_0000010", "train_state.pt")), "files beside go along")
        for name, word, where in (
            ("common.pt" if in_file else "common_state/shard_0_1", b"param_groups", "common.pt" if in_file else None),
            ("rng_state/shard_0.0_1.1", b"X\x01\x00\x00\x00xq", None),
            ("train_state.pt", (77).to_bytes(8, "little"), "train_state.pt"),
        ):
            files = [os.path.join(at, where)] if where else [os.path.join(at, f) for f in os.listdir(at) if f.endswith(".distcp")]
            for file in files:
                with open(file, "rb") as f:
                    data = f.read()
                if word not in data:
                    continue
                with open(file, "wb") as f:
                    f.write(data.replace(word, bytes([word[0] ^ 1]) + word[1:] if where else word[:5] + bytes([word[5] ^ 1]) + word[6:], 1))
                target = path("out")
                told = run_mckpt("convert", "ungroup", source, target, "--pattern", "[*-]M", "--no-sync", "-q")
                expect(
                    told.returncode == 3 and "[MC1203]" in told.stderr and name.split("/")[0] in told.stderr,
                    f"{name} damaged: {told.returncode}: {told.stderr[:400]}",
                )
                expect(not os.path.exists(os.path.join(target, "iter_0000010")), f"{name} damaged: published")
                with open(file, "wb") as f:
                    f.write(data)
                break
            else:
                expect(False, f"{name} is not found")


def output_state():
    """The output layer's extra state of a flat hybrid model goes only where it holds nothing."""
    key = "output_layer._extra_state/shard_0_1"
    model = Model("[*-]M", "torch_dist")
    report = path("report.json")
    convert("group", with_items(model, "flat", {key: [None]}), "--pattern", "[*-]M", "--report", report)
    with open(report) as f:
        account = json.load(f)
    expect((account["dropped"], account["dropped_objects"]) == (0, 1), f"an empty state is left out: {account}")
    for empty in ([None], [torch.empty(0, dtype=torch.uint8)], [io.BytesIO()], None):
        got = load(convert("group", with_items(model, "flat", {key: empty}), "--pattern", "[*-]M"))[0]
        expect(not (found := unlike(got, model.write("logical"))), f"{empty}: {found}")
    for full in ([torch.ones(1, dtype=torch.uint8)], [io.BytesIO(b"x")], {"scale": 1}, [[0.5]]):
        refused("MC3005", [key, "the state is not empty"], "group", with_items(model, "flat", {key: full}), "--pattern", "[*-]M")
    got = load(convert("ungroup", with_items(model, "logical", {key: [None]})))[0]
    expect(key in got, "ungroup keeps the output layer's state")


def args_in_files():
    """Older writers keep the common state in a file; args have had other fields."""
    model = Model("[*-]M", "torch_dist")
    for protocol in (2, 4, 5):
        items = model.write("logical")
        common = items.pop("common_state/shard_0_1")[0]
        vars(common["args"]).update(hybrid_override_pattern=common["args"].hybrid_layer_pattern, is_hybrid_model=True)
        start = save(items, path(), True)
        torch.save(common, os.path.join(start, "iter_0000010", "common.pt"), pickle_protocol=protocol)
        with open(os.path.join(start, "iter_0000010", "notes.txt"), "w") as f:
            f.write("beside the data")
        end = convert("ungroup", start)
        got = torch.load(os.path.join(end, "iter_0000010", "common.pt"), weights_only=False)
        args = vars(got["args"])
        expect(
            (args["hybrid_layer_pattern"], args["hybrid_override_pattern"], args["num_layers"]) == ("*-M", "*-M", 3),
            f"protocol {protocol}: {args}",
        )
        expect(open(os.path.join(end, "iter_0000010", "notes.txt")).read() == "beside the data", "files beside the data")
        # A common state with tensors, as optimizers have that count steps in one, gets the new args too.
        common["optimizer"] = {"state": {"common_step": torch.tensor(7.0)}, "more": torch.arange(6).reshape(2, 3)}
        torch.save(common, os.path.join(start, "iter_0000010", "common.pt"), pickle_protocol=protocol)
        end = convert("ungroup", start)
        got = torch.load(os.path.join(end, "iter_0000010", "common.pt"), weights_only=False)
        expect(
            (vars(got["args"])["hybrid_layer_pattern"], got["optimizer"]["state"]["common_step"].item(), got["optimizer"]["more"].tolist())
            == ("*-M", 7.0, [[0, 1, 2], [3, 4, 5]]),
            f"protocol {protocol}, with tensors: {got}",
        )
        convert("group", end, "--pattern", "[*-]M")
        vars(common["args"]).update(hybrid_override_pattern="M[*-]")
        torch.save(common, os.path.join(start, "iter_0000010", "common.pt"))
        refused("MC0205", ["contradict"], "ungroup", start)
        convert("ungroup", start, "--pattern", "[*-]M")
    # The restricted loader of torch, with which Megatron reads them, takes what was put there.
    end = convert("ungroup", with_items(model, "logical"))
    metadata = dcp.FileSystemReader(os.path.join(end, "iter_0000010")).read_metadata()
    place = next(p for i, p in metadata.storage_data.items() if i.fqn.startswith("common_state"))
    with open(os.path.join(end, "iter_0000010", place.relative_path), "rb") as f:
        f.seek(place.offset)
        with torch.serialization.safe_globals([argparse.Namespace]):
            common = torch.load(io.BytesIO(f.read(place.length)), weights_only=True)
    expect(common[0]["args"].hybrid_layer_pattern == "*-M", "the restricted loader")


def the_common_options():
    model = Model("[*-]M[*E]", "torch_dist")
    start = with_items(model, "logical")
    target, report = path("out"), path("report")
    before = snapshot(folder.name)
    result = run_mckpt("convert", "ungroup", start, target, "-n", "--json")
    expect(result.returncode == 0 and snapshot(folder.name) == before, f"--dry-run: {result.stderr}")
    account = json.loads(result.stdout)
    count = sum(isinstance(v, torch.Tensor) for v in model.write("flat").values())
    expect(
        (account["tensors_in"], account["tensors_out"], account["copied"], account["dropped"], account["invented"])
        == (count, count, count, 0, 0),
        f"{account}",
    )
    result = run_mckpt("convert", "ungroup", start, target, "--report", report, "--no-sync")
    expect(
        result.returncode == 0 and "logical -> flat" in result.stderr and json.load(open(report))["copied"] == count,
        f"--report: {result.stderr}",
    )
    expect(run_mckpt("convert", "ungroup", start, target, "--no-sync").returncode != 0, "an existing target is kept")
    expect(run_mckpt("convert", "ungroup", start, target, "--no-sync", "--overwrite").returncode == 0, "--overwrite")
    expect(run_mckpt("convert", "ungroup", start, path("out"), "--no-sync", "--resume").returncode == 0, "--resume")
    told = run_mckpt("convert", "ungroup", start, target, "--no-sync", "--resume")
    expect(
        told.returncode == 4 and "[MC3003]" in told.stderr and "there is nothing to resume" in told.stderr,
        f"--resume of what is done: {told.stderr}",
    )
    joined = json.loads(
        run_mckpt("convert", "hybrid-to-gpt", with_items(Model("*-*-", "torch_dist"), "flat"), path("out"), "-n", "--json").stdout
    )
    expect(joined["fused"] == joined["tensors_out"] - joined["copied"] and joined["fused"] == 6 * 3, f"{joined}")
    if HAS_MPI:
        alone, together = convert("ungroup", start), path("out")
        result = run_mckpt("convert", "ungroup", start, together, "--no-sync", ranks=3)
        expect(result.returncode == 0 and not difference(alone, together), f"as ranks: {difference(alone, together)} {result.stderr[:300]}")


def main():
    hybrid_forms()
    gpt_forms()
    lacking_mixers()
    whole_mixers()
    recorded()
    real_stacks()
    made_of_hugging_face()
    refusals()
    norm_places()
    flattened_states()
    damaged_objects()
    output_state()
    args_in_files()
    the_common_options()
    finish(least=600)


main()
