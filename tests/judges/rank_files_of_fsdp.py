"""Files that the ranks of FSDP jobs save are the tensors that torch has: random saves of one to five ranks, by DTensors of one and two
mesh axes and of one axis of two, ShardedTensors (FSDP1 itself, with and without groups of replicas; ranks with no shard, with one, with two), flat pieces
(FSDP1's LOCAL_STATE_DICT, whose tensors have one dimension) and plain copies,
of uneven, empty and single items, views at strides and tied weights, under verl's and accelerate's file names and as DCP folders. Every
save is compared with torch's own whole tensors by `ls --digest`, and is judged sound by
`verify`; and with a file lost, doubled, cut or of another save, it is not.

    rank_files_of_fsdp.py [REPEAT [SEED]]       REPEAT saves of each kind (1)
"""
from mckpt_tests.checks import need

need("torch")
import hashlib
import json
import os
import random
import shutil
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp
from torch.distributed._shard import sharded_tensor
from torch.distributed._shard.sharded_tensor import Shard as LocalShard, ShardMetadata
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import LocalStateDictConfig, ShardedOptimStateDictConfig, ShardedStateDictConfig, ShardingStrategy, StateDictType
from torch.distributed.fsdp._shard_utils import _create_chunk_sharded_tensor
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

from mckpt_tests.checks import expect, finish
from mckpt_tests.program import run_mckpt

REPEAT = int(sys.argv[1]) if len(sys.argv) > 1 else 1
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 20260501
DTYPES = [torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.float64]
# The kinds of saves of each number of ranks.
KINDS = {
    1: ["mesh", "shards", "dcp"],
    2: ["mesh", "shards", "fsdp1", "accelerate", "fsdp1_optimizer", "fsdp1_local"],
    3: ["mesh", "shards", "fsdp1", "accelerate", "dcp", "fsdp1_local"],
    4: ["grid", "replicas", "hybrid_fsdp1", "two_shards", "accelerate", "dcp_grid", "rows"],
    5: ["mesh", "shards", "two_shards", "fsdp1", "dcp", "fsdp1_local"],
}


def entry(tensor):
    tensor = tensor.detach().contiguous()
    raw = tensor.reshape(-1).clone(memory_format=torch.contiguous_format).view(torch.uint8).numpy().tobytes() if tensor.numel() else b""
    return {"dtype": str(tensor.dtype).replace("torch.", ""), "shape": list(tensor.shape), "sha256": hashlib.sha256(raw).hexdigest()}


def random_tensors(dice):
    """The same on all ranks, which have the same dice. No two items are equal where the type has as many values."""
    out = {}
    for i in range(dice.randint(3, 8)):
        shape = [dice.randint(0 if dice.random() < 0.1 else 1, 9) for _ in range(dice.randint(1, 3))]
        count = int(torch.Size(shape).numel())
        begin = dice.randint(0, 90)
        name = f"model.layers.{i}.{dice.choice(['mlp.up_proj', 'norm', 'self_attn.q_proj'])}.weight"
        out[name] = (torch.arange(begin, begin + count) % 256).to(dice.choice(DTYPES)).reshape(shape)
        if dice.random() < 0.3:  # a view at strides
            out[name] = torch.stack([out[name], out[name] + 1], -1)[..., dice.randrange(2)].mT if len(shape) > 1 else out[name].repeat_interleave(2)[::2]
    if dice.random() < 0.5:
        out["model.gain"] = torch.tensor(begin + 0.5)
    if dice.random() < 0.5:  # tied: the same tensor twice
        out["lm_head.weight"] = out[name]
    return out


def plain_tensors(dice):
    return {f"model.layers.0.buffer_{i}": torch.arange(dice.randint(1, 12), dtype=torch.float32) + i for i in range(dice.randint(0, 2))}


def two_local_shards(whole, rank, world):
    """Rank 0 has the first and the last rows, another one the rows between; the rest of the ranks have nothing."""
    rows = whole.shape[0]
    cuts = [(0, 0, rows // 3), (min(1, world - 1), rows // 3, rows - rows // 3), (0, rows - rows // 3, rows)]
    local = []
    for owner, begin, end in cuts:
        if owner == rank and begin < end:
            offsets = [begin] + [0] * (whole.dim() - 1)
            metadata = ShardMetadata(offsets, [end - begin, *whole.shape[1:]], f"rank:{rank}/cpu")
            local.append(LocalShard(whole[begin:end].clone(), metadata))
    return sharded_tensor.init_from_local_shards(local, *whole.shape)


class Tiny(torch.nn.Module):
    def __init__(self, dice):
        super().__init__()
        a, b, c = (dice.randint(2, 13) for _ in range(3))
        self.up = torch.nn.Linear(a, b)
        self.down = torch.nn.Linear(b, c, bias=dice.random() < 0.5)
        self.register_buffer("scale", torch.arange(1.0, dice.randint(2, 6)))

    def forward(self, x):
        return self.down(self.up(x)) * self.scale.sum()


def fsdp1_state(kind, dice, seed):
    torch.manual_seed(seed)
    model = Tiny(dice)
    local = kind.endswith("local")
    if local:  # a second name of a weight, in the same unit
        model.tied = torch.nn.Linear(model.up.in_features, model.up.out_features, bias=False)
        model.tied.weight = model.up.weight
    inputs = model.up.in_features
    whole = {k: v.clone() for k, v in model.state_dict().items()}
    strategy = {}
    if kind == "hybrid_fsdp1":
        pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
        rows = [dist.new_group([0, 2]), dist.new_group([1, 3])]
        rank = dist.get_rank()
        strategy = {"process_group": (pairs[rank // 2], rows[rank % 2]), "sharding_strategy": ShardingStrategy.HYBRID_SHARD}
    inner = "down" if local else "up"
    setattr(model, inner, FSDP(getattr(model, inner), device_id=torch.device("cpu"), use_orig_params=True, **strategy))
    model = FSDP(model, device_id=torch.device("cpu"), use_orig_params=True, **strategy)
    if local:
        FSDP.set_state_dict_type(model, StateDictType.LOCAL_STATE_DICT, LocalStateDictConfig())
        return model.state_dict(), {k: v if k == "scale" else v.reshape(-1) for k, v in whole.items()}, None, {}
    FSDP.set_state_dict_type(model, StateDictType.SHARDED_STATE_DICT, ShardedStateDictConfig(offload_to_cpu=True),
                             ShardedOptimStateDictConfig(offload_to_cpu=True))
    if kind != "fsdp1_optimizer":
        return model.state_dict(), whole, None, {}
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    model(torch.ones(2, inputs)).sum().backward()
    optimizer.step()
    states = FSDP.optim_state_dict(model, optimizer)
    with FSDP.summon_full_params(model, writeback=False):
        whole = {k.replace("_fsdp_wrapped_module.", ""): v.detach().clone() for k, v in [*model.named_parameters(), *model.named_buffers()]}
    # Not by torch's FULL_STATE_DICT, which on the host gathers all states into one buffer, where the last one wins.
    whole_states = {}
    for parameter, fields in states["state"].items():
        for field, value in fields.items():
            if isinstance(value, sharded_tensor.ShardedTensor):
                gathered = torch.empty(value.size(), dtype=value.dtype)
                value.gather(0, gathered if dist.get_rank() == 0 else None)
                value = gathered
            whole_states[f"state.{parameter}.{field}"] = value
    return model.state_dict(), whole, states, whole_states


def distributed(kind, whole, rank, world, dice):
    of_grid = kind in ("grid", "dcp_grid", "replicas", "rows")
    mesh = init_device_mesh("cpu", (2, 2) if of_grid else (world,), mesh_dim_names=("ddp", "fsdp") if of_grid else None)
    out, made = {}, {}  # `made`: by the tensor that several names may have
    for name, tensor in whole.items():
        if id(tensor) in made:
            out[name] = made[id(tensor)]
            continue
        if tensor.dim() == 0:
            out[name] = tensor if "shards" in kind else distribute_tensor(tensor, mesh, [Replicate()] * mesh.ndim)
            continue
        dim = dice.randrange(tensor.dim())
        if kind in ("mesh", "accelerate", "dcp"):
            out[name] = distribute_tensor(tensor, mesh, [Replicate() if dice.random() < 0.1 else Shard(dim)])
        elif kind == "replicas":
            out[name] = distribute_tensor(tensor, mesh, [Replicate(), Shard(dim)])
        elif kind == "rows":
            out[name] = distribute_tensor(tensor, mesh[dice.choice(["ddp", "fsdp"])], [Replicate() if dice.random() < 0.1 else Shard(dim)])
        elif kind in ("grid", "dcp_grid"):
            out[name] = distribute_tensor(tensor, mesh, [Shard(dice.randrange(tensor.dim())), Shard(dim)])
        elif kind == "shards":
            out[name] = _create_chunk_sharded_tensor(tensor.contiguous(), rank, world, 8, dist.group.WORLD)
        elif kind == "two_shards":
            out[name] = two_local_shards(tensor.contiguous(), rank, world)
        made[id(tensor)] = out[name]
    return out


def save_all(rank, folder, world):
    """One process of a job: all saves of this number of ranks."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store_{world}", rank=rank, world_size=world)
    for turn, kind in [(turn, kind) for turn in range(REPEAT) for kind in KINDS[world]]:
        seed = SEED + 100 * world + KINDS[world].index(kind) + 1000 * turn
        dice = random.Random(seed)
        place = f"{folder}/{kind}_{world}_{turn}"
        os.makedirs(place, exist_ok=True)
        states, whole_states = None, {}
        if "fsdp1" in kind:
            saved, whole, states, whole_states = fsdp1_state(kind, dice, seed)
        else:
            whole = random_tensors(dice)
            if kind in ("shards", "two_shards"):  # torch has no such empty tensors
                whole = {k: v for k, v in whole.items() if v.numel()}
            saved = distributed(kind, whole, rank, world, dice)
            plain = plain_tensors(dice)
            saved, whole = {**saved, **plain}, {**whole, **plain}
        if kind.startswith("dcp"):
            dcp.save(saved, storage_writer=dcp.FileSystemWriter(place, sync_files=False))
        elif kind == "accelerate":
            torch.save(saved, f"{place}/pytorch_model_fsdp_0_rank{rank}.bin")
        else:
            torch.save(saved, f"{place}/model_world_size_{world}_rank_{rank}.pt")
        want = {name: entry(tensor) for name, tensor in whole.items()}
        if states is not None:
            torch.save(states, f"{place}/optim_world_size_{world}_rank_{rank}.pt")
            want |= {f"optim:{name}": entry(tensor) for name, tensor in whole_states.items()}
        if rank == 0:
            with open(f"{place}.json", "w", encoding="utf-8") as f:
                json.dump({"tensors": want, "parameters": sum(t.numel() for t in whole.values())}, f)
    dist.barrier()
    dist.destroy_process_group()


def judge(place, want):
    run = run_mckpt("ls", place, "--json", "--digest")
    if not expect(run.returncode == 0, f"{place}: ls: {run.stderr}"):
        return
    got = {t["name"]: {k: t[k] for k in ("dtype", "shape", "sha256")} for t in json.loads(run.stdout)["tensors"]}
    for name in sorted(got.keys() | want["tensors"].keys()):
        expect(got.get(name) == want["tensors"].get(name), f"{place}: {name}: mckpt has {got.get(name)}, torch {want['tensors'].get(name)}")
    run = run_mckpt("verify", place)
    expect(run.returncode == 0 and "warning" not in run.stdout, f"{place}: verify: {run.returncode} {run.stdout}")
    run = run_mckpt("inspect", place, "--json")
    expect(json.loads(run.stdout)["parameters"] == want["parameters"], f"{place}: other parameters than {want['parameters']}: {run.stdout[:300]}")


def damage(place, other, dice):
    """One file lost, doubled, or taken from another save."""
    files = sorted(f for f in os.listdir(place) if f.endswith((".pt", ".bin")) and not f.startswith("optim"))
    if len(files) < 2:
        return  # one rank, or a DCP folder, whose damage other tests know
    broken = place + "_broken"
    for what in ("lost", "doubled", "swapped", "other"):
        shutil.rmtree(broken, ignore_errors=True)
        shutil.copytree(place, broken)
        one, two = dice.sample(files, 2)
        if what == "lost":
            os.remove(f"{broken}/{one}")
        elif what == "doubled":
            shutil.copy(f"{place}/{two}", f"{broken}/{one}")
        elif what == "swapped":
            shutil.copy(f"{place}/{two}", f"{broken}/{one}")
            shutil.copy(f"{place}/{one}", f"{broken}/{two}")
        else:
            source = sorted(f for f in os.listdir(other) if f.endswith((".pt", ".bin")) and not f.startswith("optim"))[0]
            shutil.copy(f"{other}/{source}", f"{broken}/{one}")
        run = run_mckpt("verify", broken)
        expect(run.returncode == 1 and "problem[" in run.stdout, f"{place}: {what} ({one}, {two}): {run.returncode} {run.stdout}{run.stderr}")
        run = run_mckpt("convert", "pt-to-safetensors", broken, f"{broken}.safetensors", "--tensors-only")
        expect(run.returncode != 0, f"{place}: {what} ({one}, {two}) was converted")
    shutil.rmtree(broken)


def main():
    print("seed", SEED)
    with tempfile.TemporaryDirectory() as folder:
        for world in KINDS:
            mp.start_processes(save_all, (folder, world), nprocs=world, start_method="fork")
        saves = [f"{kind}_{world}_{turn}" for world, kinds in KINDS.items() for turn in range(REPEAT) for kind in kinds]
        files = [save for save in saves if not save.startswith("dcp") and not save.startswith("mesh_1")]
        print(len(saves), "saves")
        for i, save in enumerate(saves):
            with open(f"{folder}/{save}.json", encoding="utf-8") as f:
                judge(f"{folder}/{save}", json.load(f))
            damage(f"{folder}/{save}", f"{folder}/{files[i % len(files)]}", random.Random(SEED + i))
    finish(350)


if __name__ == "__main__":
    main()
