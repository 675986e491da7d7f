#!/usr/bin/env python3
"""Writes the small folders of this one with torch itself, and what torch's whole tensors are, NAME.expected.json.

usage: python make.py [OUT_DIR]
"""
import hashlib
import json
import os
import pickle
import shutil
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import LocalStateDictConfig, ShardedStateDictConfig, StateDictType
from torch.distributed.fsdp._shard_utils import _create_chunk_sharded_tensor
from torch.distributed.tensor import Replicate, Shard, distribute_tensor


def numbered(begin, *shape, dtype=torch.float32):
    count = int(torch.Size(shape).numel())
    return torch.arange(begin, begin + count, dtype=torch.float32).to(dtype).reshape(shape)


def model():
    return {
        "model.embed_tokens.weight": numbered(0, 11, 4),
        "model.layers.0.self_attn.q_proj.weight": numbered(100, 6, 4, dtype=torch.bfloat16),
        "model.layers.0.mlp.gate.weight": numbered(200, 2, 4),
        "model.norm.weight": numbered(300, 4),
    }


BIAS = {"model.layers.0.mlp.gate.e_score_correction_bias": numbered(400, 3)}


def states(tensors):
    """An optimizer's states of these parameters, distributed as they are."""
    return {"state": {name: {"exp_avg": t, "step": torch.tensor(7.0)} for name, t in tensors.items()}, "param_groups": [{"lr": 0.1}]}


def entry(tensor):
    tensor = tensor.detach().contiguous()
    raw = tensor.reshape(-1).view(torch.uint8).numpy().tobytes()
    return {"dtype": str(tensor.dtype).replace("torch.", ""), "shape": list(tensor.shape), "sha256": hashlib.sha256(raw).hexdigest()}


def expected(out, name, tensors):
    lines = [f" {json.dumps(n)}: {json.dumps(entry(t))}" for n, t in tensors.items()]
    with open(f"{out}/{name}.expected.json", "w", encoding="utf-8") as f:
        f.write("{\n" + ",\n".join(lines) + "\n}\n")


def named_states(prefix, tensors):
    return {f"{prefix}:state.{n}.{k}": v for n, t in tensors.items() for k, v in (("exp_avg", t), ("step", torch.tensor(7.0)))}


def older_mesh_state(mesh):
    """The mesh that DeviceMesh pickled in torch 2.9: the ranks of its own row."""
    return {"device_type": "cpu", "mesh": mesh.mesh, "_layout": mesh._layout, "_flatten_mesh_list": tuple(mesh.mesh.flatten().tolist())}


class Linear(torch.nn.Module):
    def __init__(self, inputs=3):
        super().__init__()
        self.up = torch.nn.Linear(inputs, 5)
        self.up.weight.data.copy_(numbered(0, 5, inputs))
        self.up.bias.data.copy_(numbered(50, 5))


def work(rank, world, scratch, out):
    dist.init_process_group("gloo", init_method=f"file://{scratch}/{world}", rank=rank, world_size=world)
    pt = lambda folder, value, group: torch.save(value, f"{out}/{folder}/{group}_world_size_{world}_rank_{rank}.pt")
    if world == 4:
        grid = init_device_mesh("cpu", (2, 2), mesh_dim_names=("ddp", "fsdp"))
        pieces = {n: distribute_tensor(t, grid, [Replicate(), Shard(0)]) for n, t in model().items()}
        pt("replicas", {**pieces, **BIAS}, "model")
        # Each tensor on one of the grid's dimensions, or on a flattened grid: all ranks pickle the same, and mean their own row.
        meshes = [grid["fsdp"], grid["ddp"], grid, grid._flatten("all")]
        parts = [[Shard(0)], [Shard(0)], [Shard(0), Shard(1)], [Shard(0)]]
        rows = {n: distribute_tensor(t, m, p) for (n, t), m, p in zip(model().items(), meshes, parts)}
        pt("rows", rows, "model")
        DeviceMesh.__getstate__ = older_mesh_state
        pt("older_rows", rows, "model")
    if world == 3:
        pieces = {n: _create_chunk_sharded_tensor(t, rank, world, 8, dist.group.WORLD) for n, t in model().items()}
        pt("shards", {**pieces, **BIAS}, "model")
        mesh = init_device_mesh("cpu", (world,))
        pieces = {n: distribute_tensor(t, mesh, [Shard(0)]) for n, t in model().items()}
        pt("pieces", {**pieces, **BIAS}, "model")
        pt("pieces", states(pieces), "optim")
    if world == 2:
        pieces = {n: _create_chunk_sharded_tensor(t, rank, world, 8, dist.group.WORLD) for n, t in model().items()}
        torch.save(pieces, f"{out}/accelerate/pytorch_model_fsdp_0_rank{rank}.bin")
        torch.save(states(pieces), f"{out}/accelerate/optimizer_0_rank{rank}.bin")
        for folder, inputs, named in (("flat", 3, True), ("flat_nameless", 6, False), ("flat_lost", 6, True)):
            whole = FSDP(Linear(inputs), device_id=torch.device("cpu"), use_orig_params=named)
            FSDP.set_state_dict_type(whole, StateDictType.LOCAL_STATE_DICT, LocalStateDictConfig())
            state = whole.state_dict()
            if folder == "flat_lost":
                del state["up.weight"]
            torch.save(state, f"{out}/{folder}/pytorch_model_fsdp_rank{rank}.bin")
    dist.barrier()
    dist.destroy_process_group()


def main():
    out = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__)))
    for name in ("replicas", "rows", "older_rows", "shards", "pieces", "accelerate", "flat", "flat_nameless", "flat_lost", "trainer"):
        shutil.rmtree(f"{out}/{name}", ignore_errors=True)
        os.makedirs(f"{out}/{name}")
    with tempfile.TemporaryDirectory() as scratch:
        for world in (2, 3, 4):
            mp.start_processes(work, (world, scratch, out), nprocs=world, start_method="fork")
    expected(out, "replicas", {**model(), **BIAS})
    expected(out, "rows", model())
    expected(out, "older_rows", model())
    expected(out, "shards", {**model(), **BIAS})
    expected(out, "pieces", {**model(), **BIAS, **named_states("optim", model())})
    expected(out, "accelerate", {**model(), **named_states("optimizer_0", model())})
    # The files that accelerate and transformers' Trainer write of one process.
    torch.save(model(), f"{out}/trainer/pytorch_model_fsdp.bin")
    torch.save(states(model()), f"{out}/trainer/optimizer.bin")
    torch.save({"last_epoch": 3}, f"{out}/trainer/scheduler.bin")
    torch.save({"cpu": torch.zeros(16, dtype=torch.uint8)}, f"{out}/trainer/rng_state_0.pth")
    torch.save({"learning_rate": 0.1}, f"{out}/trainer/training_args.bin")
    with open(f"{out}/trainer/random_states_0.pkl", "wb") as f:
        pickle.dump({"step": 3}, f)
    expected(out, "trainer", model())


if __name__ == "__main__":
    main()
