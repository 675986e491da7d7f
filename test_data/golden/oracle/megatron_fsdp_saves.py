#!/usr/bin/env python3
"""Writes what each rank of Megatron-FSDP saves of a tiny model that a bridge has loaded, and the save as torch reads it back.
usage: megatron_fsdp_saves.py mcore_bridge|megatron_bridge OUT MODEL... [--grids TP,EP,PP,ETP,WORLD...]

OUT/fsdp/MODEL.tpT_cpC_epE_worldN.json has what each rank hands to torch's DCP, .dcp.json the save, .ckpt is the save itself, and
OUT/fsdp_layout.json gets the flat buffers of rank 0: the form that pack_families.py takes.
"""
from oracle_ranks import coordinates, digest, join, main, read_back  # isort: skip  (before torch's users)
import importlib
import json
import os
import shutil
import sys
import types

import stand_ins
import torch
import torch.distributed as dist
from megatron.core.distributed import DistributedDataParallelConfig
from megatron.core.distributed.fsdp.mcore_fsdp_adapter import FullyShardedDataParallel
from megatron.training.checkpointing import preprocess_fsdp_dtensor_state_dict
from torch.distributed.checkpoint import FileSystemWriter
from torch.distributed.checkpoint import save as save_checkpoint
from torch.distributed.tensor import DTensor

built = importlib.import_module(f"{sys.argv.pop(1)}_ranks").built


def wrapped(model):
    """The model as training wraps it: fully sharded, main weights in fp32, each layer a unit."""
    choices = DistributedDataParallelConfig(use_distributed_optimizer=True, use_megatron_fsdp=True, overlap_grad_reduce=True, overlap_param_gather=True,
                                            data_parallel_sharding_strategy="optim_grads_params")
    return FullyShardedDataParallel(model.config, choices, model, device=torch.device("cpu"))


def handed_over(state):
    """Key -> what the rank hands over of it."""
    out = {}
    for key, t in state["model"].items():
        local = t._local_tensor if isinstance(t, DTensor) else t
        entry = {"kind": type(t).__name__, "dtype": str(t.dtype).removeprefix("torch."), "global_shape": list(t.shape), "local_shape": list(local.shape), "local_sha256": digest(local)}
        if isinstance(t, DTensor):
            chunks = local.__create_chunk_list__()
            entry |= {"placements": [str(p) for p in t.placements], "chunks": [{"offsets": list(c.offsets), "sizes": list(c.sizes)} for c in chunks]}
        out[key] = entry
    return out


def flat_buffers(model):
    """The flat buffers of the rank: their sizes, and the place of each parameter."""
    buffers, groups = model.param_and_grad_buffer, []
    for group in buffers.parameter_groups:
        b = group.model_weight_buffer
        places = {buffers.param_to_name[p]: b.item_index_map[i] for p, i in b.param_idx.items()}
        groups.append({"chunk_size_factor": group.chunk_size_factor, "bucket_size": b.bucket_index.size, "shard_size": b.shard_bucket_index.size,
                       "items": {name: [at.global_data_index, at.size, list(at.shape)] for name, at in places.items()}})
    return groups


def rank_main(rank, world, grid, model_dir, out, opts, store):
    join(rank, world, grid, store)
    _, (model,) = built(model_dir, grid, opts)
    config = model.config
    model = wrapped(model)
    state = {"checkpoint_version": 3.0, "iteration": 0, "model": model.state_dict_for_save_checkpoint()}
    swiglu = config.gated_linear_unit and config.activation_func is torch.nn.functional.silu  # what --swiglu sets
    args = types.SimpleNamespace(swiglu=swiglu, num_experts=config.num_moe_experts)
    state = preprocess_fsdp_dtensor_state_dict(args, state, model)
    mine = {"coords": coordinates(), "tensors": handed_over(state)}
    save_checkpoint(state, storage_writer=FileSystemWriter(f"{store}/save"))
    gathered = [None] * world if rank == 0 else None
    dist.gather_object(mine, gathered)
    if rank == 0:
        name = os.path.basename(os.path.dirname(model_dir))
        tag = f"{name}.tp{grid['tp']}_cp{grid['cp']}_ep{grid['ep']}_world{world}"
        case = {"model": name, **{k: grid[k] for k in ("tp", "cp", "ep")}, "world": world, "strategy": "optim_grads_params"}
        os.makedirs(f"{out}/fsdp", exist_ok=True)
        with open(f"{out}/fsdp/{tag}.json", "w") as f:
            json.dump({**case, "ckpt_state": gathered}, f)
        with open(f"{out}/fsdp/{tag}.dcp.json", "w") as f:
            json.dump(read_back(f"{store}/save"), f)
        shutil.rmtree(f"{out}/fsdp/{tag}.ckpt", ignore_errors=True)
        shutil.copytree(f"{store}/save", f"{out}/fsdp/{tag}.ckpt")
        layout = f"{out}/fsdp_layout.json"
        cases = {}
        if os.path.exists(layout):
            with open(layout) as f:
                cases = json.load(f)["cases"]
        with open(layout, "w") as f:
            json.dump({"cases": cases | {tag: {**case, "groups": flat_buffers(model)}}}, f)
        print(f"{tag}: {len(mine['tensors'])} tensors on rank 0, {sum(len(g['tensors']) for g in gathered)} on all")
    dist.barrier()


if __name__ == "__main__":
    stand_ins.no_gpu_for_fsdp()
    main(rank_main, lambda model: model.fsdp)
