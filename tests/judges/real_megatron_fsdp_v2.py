"""Megatron-FSDP v2 itself (megatron_fsdp.experimental) over gloo ranks on CPU: models built of the names and shapes that ranks of
Megatron have, each layer, each set of experts and the model sharded with its fully_shard. A result of mckpt
for such a run loads into it, value by value, also with optimizer states and after resharding; and the run
then saves the same as mckpt wrote: every key, box and path in the same order, every record in the same file
with the same data.
"""

import importlib.util
import io
import os
import pickle
import re
import sys
import tempfile
import time
import zipfile

from mckpt_tests.checks import expect_equal, finish, need, skip
from mckpt_tests.golden import listing, sha
from mckpt_tests.models import Models
from mckpt_tests.program import run_mckpt

need("torch", "numpy")
if importlib.util.find_spec("megatron_fsdp") is None:
    skip(f"{sys.executable} has no megatron_fsdp: scripts/bootstrap installs it")

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
import torch.multiprocessing as mp  # noqa: E402

UNITS = re.compile(r"(.*\.)?(decoder\.layers\.\d+|mtp_model_layer)")
LR, BETAS = 0.25, (0.5, 0.75)
# model, data-parallel ranks, expert-parallel ranks, frozen parameters
CASES = [
    ("qwen3_dense", 3, 1, None),
    ("tiny_llama1", 3, 1, None),  # tied
    ("qwen3_5", 3, 1, "*embedding.word_embeddings.weight"),  # gated delta nets
    ("nemotron_h_moe", 3, 1, None),
    ("qwen3_moe", 4, 2, None),
    ("tiny_moe1", 4, 2, "*.router.weight"),
]
NEXT = {3: 4, 4: 3}  # the ranks of the next run


# ---- In a rank


class Bare(torch.nn.Module):
    """A module without a program."""


def build(rows):
    """A tree of modules with these parameters, registered in this order, with values of no checkpoint."""
    root = Bare()
    for row in rows:
        *path, leaf = row["name"].split(".")
        module = root
        for step in path:
            if step not in module._modules:
                module.add_module(step, Bare())
            module = module._modules[step]
        if leaf == "expert_bias":
            module.register_buffer(leaf, torch.full(row["shape"], -3.0))
        else:
            module.register_parameter(leaf, torch.nn.Parameter(torch.full(row["shape"], -7.0, dtype=torch.bfloat16), row["trained"]))
    return root


def wrapped(root, mesh, expert_mesh):
    """As Megatron wraps a model: experts, units from the last module to the first, the model."""
    from megatron_fsdp.experimental import Flat, Placements, fully_shard

    flat = Placements(dp_axes=[0], parameter=[Flat()], gradient=[Flat()], optimizer=[Flat()])
    modules = list(root.named_modules())
    for name, module in modules:
        if name.endswith("mlp.experts"):
            fully_shard(module, mesh=expert_mesh, placements=flat)
    for name, module in reversed(modules):
        if name and UNITS.fullmatch(name):
            fully_shard(module, mesh=mesh, placements=flat)
    fully_shard(root, mesh=mesh, placements=flat)
    return root


def optimizer_of(root, fill):
    """AdamW with two groups and states: element i of a parameter has code(name) + i. Without `fill`, states that are to be loaded."""
    from torch.distributed.tensor import DTensor

    trained = [(n, p) for n, p in root.named_parameters() if p.requires_grad]
    groups = [[(n, p) for n, p in trained if (p.dim() > 1) == decays] for decays in (True, False)]
    optimizer = torch.optim.AdamW(
        [{"params": [p for _, p in group], "weight_decay": decay} for group, decay in zip(groups, (0.1, 0.0))], lr=LR, betas=BETAS
    )
    for name, p in groups[0] + groups[1]:  # as step() makes them
        state = optimizer.state[p]
        state["step"] = torch.tensor(9.0 if fill else 0.0)
        for kind, sign in (("exp_avg", 1), ("exp_avg_sq", -1)):
            state[kind] = torch.zeros_like(p)
            if fill:
                assert isinstance(state[kind], DTensor)
                set_values(state[kind], lambda i: sign * (code(name) + i))
    return optimizer


def code(name):
    return int(sha(name.encode())[:3], 16) * 4096


def set_values(dtensor, of_items):
    local, chunk = dtensor._local_tensor, position(dtensor)
    row = local[0].numel() if local.numel() else 1
    local.copy_(of_items(torch.arange(local.numel(), dtype=torch.float32) + chunk * row).reshape(local.shape))


def position(dtensor):
    """The first row of this rank's part, as Megatron-FSDP finds it."""
    from megatron_fsdp.uneven_dtensor import gather_and_compute_chunk_metadata

    return gather_and_compute_chunk_metadata(dtensor).offsets[0]


def states_of(root, optimizer):
    """The state dict that checkpoint.py of Megatron-FSDP v2 hands to torch."""
    from megatron_fsdp.uneven_dtensor import preprocess_state_dict_for_uneven_dtensor
    from torch.distributed.checkpoint.state_dict import get_model_state_dict, get_optimizer_state_dict

    state = {"model": get_model_state_dict(root)}
    if optimizer:
        state["optimizer"] = get_optimizer_state_dict(root, optimizer)
    return preprocess_state_dict_for_uneven_dtensor(state)


def pieces(state):
    """The values of this rank: name, offset, data."""
    from torch.distributed.tensor import DTensor

    flat = {f"model.{n}": t for n, t in state["model"].items()}
    for name, kinds in state.get("optimizer", {}).get("state", {}).items():
        flat |= {f"optimizer.state.{name}.{kind}": t for kind, t in kinds.items()}
    out = {}
    for name, t in flat.items():
        local = t._local_tensor if isinstance(t, DTensor) else t
        if not local.numel():
            continue
        at = t._local_tensor.__create_chunk_list__()[0].offsets[0] if isinstance(t, DTensor) else 0
        out[name] = (at, list(t.shape), local.detach().clone())
    return out


def in_rank(rank, world, port, jobs, results):
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "GLOO_SOCKET_IFNAME": "lo"}
    dist.init_process_group("gloo", rank=rank, world_size=world)
    from torch.distributed.device_mesh import init_device_mesh

    mesh = init_device_mesh("cpu", (world,))
    by_ep = {ep: init_device_mesh("cpu", (world // ep, ep), mesh_dim_names=("edp", "ep"))["edp"] for ep in sorted({j["ep"] for j in jobs})}
    for job in jobs:
        root = wrapped(build(job["rows"][rank]), mesh, by_ep[job["ep"]])
        optimizer = optimizer_of(root, False) if job["optimizer"] else None
        state = states_of(root, optimizer)
        dcp.load(state, checkpoint_id=job["load"])
        torch.save(pieces(state), f"{results}/{job['name']}.{rank}.pt")
        if job["save"]:
            dcp.save(state, storage_writer=dcp.FileSystemWriter(job["save"], sync_files=False))
        if job["trained"]:
            dcp.save(
                states_of(root, optimizer_of(root, True)), storage_writer=dcp.FileSystemWriter(job["trained"], sync_files=False)
            )
    leave(rank, world, results)


def leave(rank, world, results):
    """Ends the process when all ranks are done. The end of torch in a process aborts from time to time, and
    nothing that is judged depends on it."""
    open(f"{results}/done.{rank}", "w").close()
    while not all(os.path.exists(f"{results}/done.{other}") for other in range(world)):
        time.sleep(0.05)
    os._exit(0)


# ---- Around the ranks


def place(name):
    return os.path.join(scratch.name, name)


def mckpt(*args):
    run = run_mckpt(*args, "-q")
    expect_equal(f"{' '.join(map(str, args))}: {run.stderr}", [run.returncode], [0])


def run_ranks(world, jobs):
    results = tempfile.mkdtemp(dir=scratch.name)
    mp.start_processes(in_rank, (world, 29500 + os.getpid() % 1000 + world, jobs, results), nprocs=world, start_method="fork")
    out = {}
    for job in jobs:
        wholes = {}
        for rank in range(world):
            for name, (at, shape, data) in torch.load(f"{results}/{job['name']}.{rank}.pt").items():
                whole = wholes.setdefault(name, torch.full(shape, float("nan"), dtype=data.dtype))
                whole[slice(at, at + data.shape[0]) if shape else ...] = data
        out[job["name"]] = wholes
    return out


def rows_of(model, world, ep, frozen):
    """The parameters of each rank, experts with their global numbers."""
    out = []
    for rank in range(world):
        rows = listing(models.path(model), "--as", "megatron", "--dp", world, "--ep", ep, "--rank", rank, digest=False)
        names = [
            r["name"].removeprefix("model.")
            for r in listing(models.path(model), "--as", "fsdp", "--engine", "v2", "--dp", world, "--ep", ep, "--rank", rank, digest=False)
        ]
        expect_equal(f"{model}: parameters of rank {rank}", [bare(n) for n in names], [bare(r["name"]) for r in rows])
        glob = re.compile(re.escape(frozen).replace(r"\*", ".*")) if frozen else None
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


def expected_weights(model, ep):
    """Digests of what a rank of Megatron has at run time in bf16, by global name: golden/ranks judges this listing."""
    out = {}
    for rank in range(ep):
        flags = ["--dp", ep, "--ep", ep, "--rank", rank, "--params-dtype", "bf16"]
        rows = listing(models.path(model), "--as", "megatron", *flags)
        names = listing(models.path(model), "--as", "fsdp", "--engine", "v2", *flags[:-2], digest=False)
        out |= {n["name"]: r["sha256"] for n, r in zip(names, rows)}
    return out


def bits(tensor, name):
    tensor = tensor if name.endswith("expert_bias") else tensor.to(torch.bfloat16)
    return sha(tensor.contiguous().view(torch.uint8).numpy().tobytes())


def job(name, model, world, ep, frozen, load_from, **more):
    return {"name": name, "rows": rows_of(model, world, ep, frozen), "ep": ep, "load": load_from, "optimizer": False, "save": "", "trained": ""} | more


def main():
    first = {3: [], 4: []}
    for model, world, ep, frozen in CASES:
        flags = ["--engine", "v2", "--dp", world, "--ep", ep, "--params-dtype", "bf16", "--freeze", frozen or "none", "--no-sync"]
        mckpt("convert", "hf-to-fsdp", models.path(model), place(model), *flags)
        at = os.path.join(place(model), "release")
        first[world].append(job(model, model, world, ep, frozen, at, save=place(f"{model}.weights"), trained=place(f"{model}.trained")))
    loaded = {}
    for world, jobs in first.items():
        loaded |= run_ranks(world, jobs)
    second = {3: [], 4: []}
    for model, world, ep, frozen in CASES:
        want = expected_weights(model, ep)
        got = {name: bits(t, name) for name, t in loaded[model].items()}
        expect_equal(f"{model}: weights that a run loads", sorted(got.items()), sorted(want.items()))
        same_folder(f"{model}: what a run saves", os.path.join(place(model), "release"), place(f"{model}.weights"))
        # With states, onto another number of ranks, in v2 at once and over v1.
        to = NEXT[world] if ep == 1 else 2
        if to not in second:
            second[to] = []
        common = ["--assets", models.path(model), "--freeze", frozen or "none", "--no-sync"]
        mckpt("convert", "reshard", place(f"{model}.trained"), place(f"{model}.v2"), "--engine", "v2", "--dp", to, *common)
        mckpt("convert", "to-fsdp", place(f"{model}.trained"), place(f"{model}.v1"), "--dp", 1, *common)
        mckpt("convert", "reshard", place(f"{model}.v1"), place(f"{model}.back"), "--engine", "v2", "--dp", to, *common)
        for way in ("v2", "back"):
            at = os.path.join(place(f"{model}.{way}"), "release")
            save = place(f"{model}.{way}.saved")
            second[to].append(job(f"{model}.{way}", model, to, 1, frozen, at, optimizer=True, save=save))
    for world, jobs in second.items():
        if jobs:
            loaded |= run_ranks(world, jobs)
    for model, world, ep, frozen in CASES:
        for way in ("v2", "back"):
            wholes = loaded[f"{model}.{way}"]
            weights = {n: bits(t, n) for n, t in wholes.items() if n.startswith("model.")}
            expect_equal(f"{model} {way}: weights", sorted(weights.items()), sorted(expected_weights(model, 1).items()))
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
            trained = sum(r["trained"] and not r["name"].endswith("expert_bias") for r in rows_of(model, 1, 1, frozen)[0])
            expect_equal(f"{model} {way}: states", [wrong, states], [[], 3 * trained])
            if way == "v2":
                same_folder(f"{model} {way}: what the next run saves", os.path.join(place(f"{model}.v2"), "release"), place(f"{model}.v2.saved"))


if __name__ == "__main__":
    # Ranks are forked, which saves each of them the import of torch and of what they use; a process with other threads cannot be.
    torch.set_num_threads(1)
    for used in ("megatron_fsdp.experimental", "megatron_fsdp.uneven_dtensor", "torch.distributed.checkpoint.state_dict", "torch.distributed.device_mesh"):
        importlib.import_module(used)
    models = Models()
    scratch = tempfile.TemporaryDirectory(prefix="mckpt_v2_")
    main()
    finish(1000)
