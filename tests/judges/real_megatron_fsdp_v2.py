"""Megatron-FSDP v2 itself over gloo ranks on CPU (fsdp_v2_ranks): all four strategies, HSDP whose instances have copies and parts, context
parallelism, experts, layers in groups and units inside units. A result of mckpt for such a run loads into it, value by value, also with
optimizer states and after resharding; the run then saves the same as mckpt wrote: every key, box and path in the same order, every record in
the same file with the same data; and `layout` and `inspect` say of it what the run's own buffers are.
"""

import functools
import importlib.util
import io
import json
import os
import pickle
import re
import sys
import tempfile
import zipfile
from types import SimpleNamespace

from mckpt_tests.checks import expect_equal, finish, need, skip
from mckpt_tests.golden import listing, sha
from mckpt_tests.models import Models, hybrid_with_mtp
from mckpt_tests.program import run_mckpt

need("torch", "numpy")
if importlib.util.find_spec("megatron_fsdp") is None:
    skip(f"{sys.executable} has no megatron_fsdp: scripts/bootstrap installs it")

import torch  # noqa: E402
import torch.multiprocessing as mp  # noqa: E402
from mckpt_tests.fsdp_v2_ranks import code, in_rank  # noqa: E402

LAYERS = ["TransformerLayer", "MambaLayer"]


def case(model, dp, ep=1, frozen=None, cp=1, strategy="optim_grads_params", hsdp=1, outer="replicate", pattern=None, units=LAYERS, on=False):
    """`on`: its states go on to other ranks too."""
    return SimpleNamespace(**locals())


CASES = [
    case("qwen3_dense", 3, on=True),
    case("tiny_llama1", 3, on=True),  # tied
    case("qwen3_5", 3, frozen="*embedding.word_embeddings.weight", on=True),  # gated delta nets
    case("nemotron_h_moe", 3, on=True),
    case("qwen3_moe", 4, 2, on=True),
    case("tiny_moe1", 4, 2, "*.router.weight", on=True),
    # Units are there under every strategy, and main weights have one layout under all that shard them.
    case("nemotron_h_moe", 3, strategy="optim"),
    case("qwen3_dense", 3, strategy="optim_grads", frozen="*.linear_qkv.weight"),
    case("tiny_llama1", 3, strategy="no_shard", on=True),
    case("qwen3_moe", 4, 2, strategy="no_shard"),
    # Instances that are copies: shards of an instance, and the padding of all ranks.
    case("qwen3_5", 4, hsdp=2),
    case("qwen3_moe", 4, 2, hsdp=2),
    case("nemotron_h", 4, hsdp=2, strategy="optim"),
    case("tiny_moe1", 4, hsdp=2, strategy="no_shard"),
    # Instances that have parts: the index inside the instance is the major one.
    case("qwen3_dense", 4, hsdp=2, outer="shard"),
    case("qwen3_moe", 4, 2, hsdp=2, outer="shard", frozen="*.router.weight", on=True),
    # Context-parallel ranks share the buffers.
    case("qwen3_5", 2, cp=2),
    case("nemotron_h", 2, cp=2, hsdp=2, outer="shard"),
    # Groups: each is a stack, and so is what is around them; of units inside units the inner one owns.
    case("nemotron_h", 3, pattern="[M-]M[*-]", on=True),
    case("nemotron_h", 3, pattern="[M-]M[*-]", units=["HybridStack"]),
    case("nemotron_h", 4, pattern="[M-]M[*-]", units=["HybridStack", "MambaLayer"], hsdp=2, outer="shard"),
    case("nemotron_h", 3, units=["HybridStack"], strategy="optim_grads"),
    case("nemotron_h", 3, units=["HybridStack", "TransformerLayer"]),
    case("hybrid_mtp", 4, 2, pattern="[ME][*M]E/*E", units=["HybridStack"]),
    case("hybrid_mtp", 4, 2, pattern="[ME][*M]E/*E", units=["HybridStack", "MambaLayer"], hsdp=2, on=True),
    case("hybrid_mtp", 3, pattern="[ME][*M]E/*E", units=["MambaLayer"], strategy="no_shard"),
    case("nemotron_h_moe", 3, units=[]),  # the experts of each layer by themselves all the same
]
for number, c in enumerate(CASES):
    c.world, c.name = c.dp * c.cp, f"{number}_{c.model}"
NEXT = {3: 4, 4: 3}  # the ranks of the next run


# ---- Around the ranks


def place(name):
    return os.path.join(scratch.name, name)


def path_of(model):
    if model != "hybrid_mtp":
        return models.path(model)
    return place(model) if os.path.exists(place(model)) else hybrid_with_mtp(place(model))


def mckpt(*args, told=False):
    run = run_mckpt(*args, *([] if told else ["-q"]))
    expect_equal(f"{' '.join(map(str, args))}: {run.stderr}", [run.returncode], [0])
    return run.stdout


def grid_flags(c):
    out = ["--engine", "v2", "--dp", c.dp, "--cp", c.cp, "--ep", c.ep, "--strategy", c.strategy, "--fsdp-unit", ",".join(c.units) or "none"]
    out += ["--hsdp", c.hsdp, "--hsdp-outer", c.outer] if c.hsdp > 1 else []
    return out + (["--hybrid-pattern", c.pattern] if c.pattern else [])


def plain(c, world, ep=1):
    """The run of the same model on other ranks, without instances."""
    return case(c.model, world, ep, c.frozen, pattern=c.pattern)


def axes_of(c):
    return ([{"replicate": "no_shard", "shard": "optim"}[c.outer]] if c.hsdp > 1 else []) + [c.strategy]


def run_ranks(world, jobs):
    """By job: whole tensors, and the buffers of every rank."""
    results = tempfile.mkdtemp(dir=scratch.name)
    mp.start_processes(in_rank, (world, 29500 + os.getpid() % 1000 + world, jobs, results), nprocs=world, start_method="fork")
    out = {}
    for job in jobs:
        wholes, packings = {}, []
        for rank in range(world):
            held = torch.load(f"{results}/{job['name']}.{rank}.pt")
            packings.append(held["packing"])
            for name, (at, shape, data) in held["pieces"].items():
                whole = wholes.setdefault(name, torch.full(shape, float("nan"), dtype=data.dtype))
                whole[slice(at, at + data.shape[0]) if shape else ...] = data
        out[job["name"]] = wholes, packings
    return out


@functools.cache
def listed(model, flags):
    rows = listing(path_of(model), "--as", "megatron", *flags, digest=False)
    saved = listing(path_of(model), "--as", "fsdp", "--engine", "v2", *flags, digest=False)
    return rows, [r["name"].removeprefix("model.") for r in saved]


def names_of(c, rank):
    """Ranks of one expert-parallel cell have the same."""
    return listed(c.model, ("--dp", c.ep, "--ep", c.ep, "--rank", rank % c.ep, *(["--hybrid-pattern", c.pattern] if c.pattern else [])))


def rows_of(c):
    """The parameters of each rank, experts with their global numbers."""
    out = []
    glob = re.compile(re.escape(c.frozen).replace(r"\*", ".*")) if c.frozen else None
    for rank in range(c.dp * c.cp):
        rows, names = names_of(c, rank)
        expect_equal(f"{c.model}: parameters of rank {rank}", [bare(n) for n in names], [bare(r["name"]) for r in rows])
        out.append([{"name": n, "shape": r["shape"], "trained": not (glob and glob.fullmatch(n))} for n, r in zip(names, rows)])
    return out


def bare(name):
    return re.sub(r"(experts\.linear_fc\d\.\w+?)\d+$", r"\1", name)


def written(folder):
    """The items of a folder in the order of .metadata, their paths in order, and the data of each record."""
    with open(os.path.join(folder, ".metadata"), "rb") as f:
        metadata = pickle.load(f)
    items, files = [], {}
    for index, info in metadata.storage_data.items():
        if info.relative_path not in files:
            with open(os.path.join(folder, info.relative_path), "rb") as f:
                files[info.relative_path] = f.read()
        with zipfile.ZipFile(io.BytesIO(files[info.relative_path][info.offset : info.offset + info.length])) as archive:
            data = [archive.read(n) for n in archive.namelist() if "/data/" in n] or [repr(load(archive))]
        items.append((index.fqn, index.offset, index.index, info.relative_path, sha(*(d if isinstance(d, bytes) else d.encode() for d in data))))
    heads = []
    for name, item in metadata.state_dict_metadata.items():
        if hasattr(item, "chunks"):
            boxes = [(type(c.offsets).__name__, tuple(c.offsets), tuple(c.sizes)) for c in item.chunks]
            heads.append((name, str(item.properties.dtype), item.properties.requires_grad, tuple(item.size), boxes))
        else:
            heads.append((name, "object"))
    return heads, sorted(items, key=str), list(metadata.planner_data.items())


def load(archive):
    with archive.open(next(n for n in archive.namelist() if n.endswith("data.pkl"))) as f:
        return pickle.load(f)


def same_folder(what, got, want):
    for part, (a, b) in zip(("tensors", "records", "paths"), zip(written(got), written(want))):
        expect_equal(f"{what}: {part}", a, b)


def expected_weights(c):
    """Digests of what a rank of Megatron has at run time in bf16, by global name: golden/ranks judges this listing."""
    out = {}
    for rank in range(c.ep):
        one = case(c.model, c.ep, c.ep, pattern=c.pattern)
        flags = ["--dp", c.ep, "--ep", c.ep, "--rank", rank, "--params-dtype", "bf16"] + (["--hybrid-pattern", c.pattern] if c.pattern else [])
        rows = listing(path_of(c.model), "--as", "megatron", *flags)
        out |= {"model." + n: r["sha256"] for n, r in zip(names_of(one, rank)[1], rows)}
    return out


def bits(tensor, name):
    tensor = tensor if name.endswith("expert_bias") else tensor.to(torch.bfloat16)
    return sha(tensor.contiguous().view(torch.uint8).numpy().tobytes())


def job(name, c, load_from, **more):
    world = c.dp * c.cp
    mesh = [c.hsdp, world // c.hsdp] if c.hsdp > 1 else [world]
    of = {"rows": rows_of(c), "axes": axes_of(c), "mesh": mesh, "ep": c.ep, "units": c.units}
    return {"name": name, "load": load_from, "optimizer": False, "save": "", "trained": "", **of} | more


def check_layout(c, packings):
    """`layout` says what the buffers of every rank are."""
    cells = {}
    for rank, groups in enumerate(packings):
        if rank % c.ep not in cells:
            flags = [*grid_flags(c), "--params-dtype", "bf16", "--freeze", c.frozen or "none", "--rank", rank, "--json"]
            told = json.loads(mckpt("layout", path_of(c.model), *flags))
            by_group = {}
            for p in told["parameters"]:
                by_group.setdefault(p["group"], []).append(p)
            cells[rank % c.ep] = told, by_group
        told, by_group = cells[rank % c.ep]
        want = sorted((g["names"], g["offsets"], g["size"], g["trained"], g["module"]) for g in groups)
        got = []
        for number, g in enumerate(told["groups"]):
            members = by_group[number]
            unit = g["unit"] or ""
            if g["kind"] == "experts" and not unit.endswith(".experts"):
                unit += ".mlp.experts"
            got.append(([p["name"] for p in members], [p["offset"] for p in members], g["bucket_items"], g["trainable"], unit))
        expect_equal(f"{c.name}: groups of rank {rank}", sorted(got), want)


def main():
    first = {3: [], 4: []}
    for c in CASES:
        flags = [*grid_flags(c), "--params-dtype", "bf16", "--freeze", c.frozen or "none", "--no-sync"]
        mckpt("convert", "hf-to-fsdp", path_of(c.model), place(c.name), *flags)
        mckpt("verify", place(c.name), "--against", path_of(c.model))
        at = os.path.join(place(c.name), "release")
        first[c.world].append(job(c.name, c, at, save=place(f"{c.name}.weights"), trained=place(f"{c.name}.trained") if c.on else ""))
    loaded = {}
    for world, jobs in first.items():
        loaded |= run_ranks(world, jobs)
    second = {3: [], 4: []}
    for c in CASES:
        want = expected_weights(c)
        got = {name: bits(t, name) for name, t in loaded[c.name][0].items()}
        expect_equal(f"{c.name}: weights that a run loads", sorted(got.items()), sorted(want.items()))
        same_folder(f"{c.name}: what a run saves", os.path.join(place(c.name), "release"), place(f"{c.name}.weights"))
        check_layout(c, loaded[c.name][1])
        if not c.on:
            continue
        # With states, onto another number of ranks, in v2 at once and over v1.
        to = NEXT[c.world] if c.ep == 1 else 2
        if to not in second:
            second[to] = []
        common = ["--assets", path_of(c.model), "--freeze", c.frozen or "none", "--no-sync"]
        mckpt("convert", "reshard", place(f"{c.name}.trained"), place(f"{c.name}.v2"), "--engine", "v2", "--dp", to, *common)
        mckpt("convert", "to-fsdp", place(f"{c.name}.trained"), place(f"{c.name}.v1"), "--dp", 1, *common)
        mckpt("convert", "reshard", place(f"{c.name}.v1"), place(f"{c.name}.back"), "--engine", "v2", "--dp", to, *common)
        for way in ("v2", "back"):
            at = os.path.join(place(f"{c.name}.{way}"), "release")
            save = place(f"{c.name}.{way}.saved")
            second[to].append(job(f"{c.name}.{way}", plain(c, to), at, optimizer=True, save=save))
    for world, jobs in second.items():
        if jobs:
            loaded |= run_ranks(world, jobs)
    for c in (c for c in CASES if c.on):
        for way in ("v2", "back"):
            wholes = loaded[f"{c.name}.{way}"][0]
            weights = {n: bits(t, n) for n, t in wholes.items() if n.startswith("model.")}
            expect_equal(f"{c.name} {way}: weights", sorted(weights.items()), sorted(expected_weights(plain(c, 1)).items()))
            wrong, states = [], 0
            for name, t in wholes.items():
                found = re.fullmatch(r"optimizer\.state\.(.*)\.(step|exp_avg|exp_avg_sq)", name)
                if not found:
                    continue
                states += 1
                sign = {"step": 0, "exp_avg": 1, "exp_avg_sq": -1}[found[2]]
                right = sign * (code(found[1]) + torch.arange(t.numel(), dtype=torch.float32)).reshape(t.shape) if sign else torch.tensor(9.0)
                if not torch.equal(t, right):
                    wrong.append(name)
            trained = sum(r["trained"] and not r["name"].endswith("expert_bias") for r in rows_of(plain(c, 1))[0])
            expect_equal(f"{c.name} {way}: states", [wrong, states], [[], 3 * trained])
            if way == "v2":
                same_folder(f"{c.name} {way}: what the next run saves", os.path.join(place(f"{c.name}.v2"), "release"), place(f"{c.name}.v2.saved"))


if __name__ == "__main__":
    # Ranks are forked, which saves each of them the import of torch and of what they use; a process with other threads cannot be.
    torch.set_num_threads(1)
    for used in ("megatron_fsdp.experimental", "megatron_fsdp.uneven_dtensor", "torch.distributed.checkpoint.state_dict", "torch.distributed.device_mesh"):
        importlib.import_module(used)
    models = Models()
    scratch = tempfile.TemporaryDirectory(prefix="mckpt_v2_")
    main()
    finish(1000)
