"""Ranks of the oracles of this folder, as processes over gloo: the tensors that each holds, those that it hands to
dist_checkpointing, and the save as torch reads it back, in the form that pack_families.py takes. megatron_fsdp_saves.py has
other work for such ranks.

OUT/MODEL/hf is made by tiny_models.py. Beside it come tpT_cpC_epE[_etpX][_ppP].json; of several ranks with etp 1
OUT/torch_dist/MODEL.tpT_cpC_epE.json, too, and .dcp.json. A grid ends with a plain export, compared with the file bit by bit.
stand_ins.py says what is not real.
"""
import stand_ins  # noqa: F401, isort: skip  (before torch's users)
import argparse
import hashlib
import json
import multiprocessing
import os
import shutil
import sys
import tempfile
import traceback

import torch
import torch.distributed as dist
from megatron.core import dist_checkpointing, mpu
from megatron.core.dist_checkpointing.mapping import ShardedObject, ShardedTensor, ShardedTensorFactory
from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed
from safetensors import safe_open
from torch.distributed.checkpoint import FileSystemReader

import tiny_models


def digest(tensor):
    tensor = tensor.detach().contiguous()
    return hashlib.sha256(tensor.reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b"").hexdigest()


def kind(tensor):
    return str(tensor.dtype).removeprefix("torch.")


def held_by(model):
    """Parameters in the order of the modules, then buffers."""
    out = {"params": {}, "buffers": {}}
    for name, p in model.named_parameters():
        entry = {"dtype": kind(p), "shape": list(p.shape), "sha256": digest(p)}
        for mark in ("tensor_model_parallel", "partition_dim", "sequence_parallel", "allreduce"):
            if hasattr(p, mark):
                entry[mark] = getattr(p, mark)
        out["params"][name] = entry
    saved = set(model.state_dict())
    for name, b in model.named_buffers():
        out["buffers"][name] = {"dtype": kind(b), "shape": list(b.shape), "sha256": digest(b), "persistent": name in saved}
    return out


def sharded_entries(state):
    """Each tensor and object that the rank hands to dist_checkpointing; a factory is made."""
    for value in state.values():
        if isinstance(value, ShardedTensorFactory):
            value = value.build()
            yield [describe(t) for t in leaves(value)]
        elif isinstance(value, (ShardedTensor, ShardedObject)):
            yield describe(value)


def leaves(tree):
    if isinstance(tree, (ShardedTensor, ShardedObject)):
        yield tree
    elif isinstance(tree, dict):
        for part in tree.values():
            yield from leaves(part)
    elif isinstance(tree, (list, tuple)):
        for part in tree:
            yield from leaves(part)


def describe(value):
    if isinstance(value, ShardedObject):
        return {"object": value.unique_key}
    return {"key": value.key, "dtype": kind(value.data), "local_shape": list(value.local_shape), "global_shape": list(value.global_shape),
            "global_offset": list(value.global_offset), "prepend": value.prepend_axis_num, "sha256": digest(value.data),
            "axis_fragmentations": list(value.axis_fragmentations or []), "replica_id": value.replica_id if isinstance(value.replica_id, int) else list(value.replica_id)}


def read_back(folder):
    """The save as torch reads it: key -> dtype, shape, digest."""
    import torch.distributed.checkpoint as dcp
    metadata = FileSystemReader(folder).read_metadata()
    tensors, others = {}, []
    for key, item in metadata.state_dict_metadata.items():
        if type(item).__name__ == "TensorStorageMetadata":
            tensors[key] = torch.empty(item.size, dtype=item.properties.dtype)
        else:
            others.append(key)
    dcp.load(tensors, storage_reader=FileSystemReader(folder), no_dist=True)
    return {"tensors": {k: {"dtype": str(t.dtype), "shape": list(t.shape), "sha256": digest(t)} for k, t in tensors.items()},
            "other_count": len(others), "other_sample": others}


def differences(got, model_dir):
    """An export against the file."""
    with safe_open(os.path.join(model_dir, "model.safetensors"), "pt") as f:
        file = {name: f.get_tensor(name) for name in f.keys()}
    bad = {n: "absent" if n not in got else "differs" for n, t in file.items()
           if n not in got or got[n].dtype != t.dtype or got[n].shape != t.shape or digest(got[n]) != digest(t)}
    return {"hf_tensors": len(file), "exported": len(got), "bitwise_equal": len(file) - len(bad), "bad": bad, "extra": [n for n in got if n not in file]}


def join(rank, world, grid, store):
    """Makes the process a rank of the grid."""
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world), LOCAL_WORLD_SIZE=str(world))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}/store", rank=rank, world_size=world)
    mpu.initialize_model_parallel(tensor_model_parallel_size=grid["tp"], pipeline_model_parallel_size=grid["pp"], context_parallel_size=grid["cp"],
                                  expert_model_parallel_size=grid["ep"], expert_tensor_parallel_size=grid["etp"])
    model_parallel_cuda_manual_seed(1)


def coordinates():
    return {"tp": mpu.get_tensor_model_parallel_rank(), "pp": mpu.get_pipeline_model_parallel_rank(), "cp": mpu.get_context_parallel_rank(),
            "dp": mpu.get_data_parallel_rank(), "ep": mpu.get_expert_model_parallel_rank(), "etp": mpu.get_expert_tensor_parallel_rank()}


def rank_main(rank, world, built, exported, grid, model_dir, out, opts, store):
    join(rank, world, grid, store)
    handle, models = built(model_dir, grid, opts)
    (model,) = models
    mine = {"rank": rank, "coords": coordinates(), **held_by(model)}
    shards = problem = None
    saves = world > 1 and grid["etp"] == 1  # pack.py's names of saves have no etp
    if saves:
        try:
            state = model.sharded_state_dict()
            shards = list(sharded_entries(state))
            os.makedirs(f"{store}/save", exist_ok=True)
            dist.barrier()
            dist_checkpointing.save(state, f"{store}/save", validate_access_integrity=True)
        except Exception:
            problem = traceback.format_exc()
    export = {"error": None}
    try:
        export = differences(exported(handle, models), model_dir)
    except Exception:
        export = {"error": traceback.format_exc()}
    gathered = [None] * world if rank == 0 else None
    dist.gather_object((mine, shards, problem), gathered)
    if rank == 0:
        tag = f"tp{grid['tp']}_cp{grid['cp']}_ep{grid['ep']}" + (f"_etp{grid['etp']}" if grid["etp"] != 1 else "") + (f"_pp{grid['pp']}" if grid["pp"] != 1 else "")
        sizes = {**grid, "dp": world // (grid["tp"] * grid["cp"] * grid["pp"])}
        name = os.path.basename(os.path.dirname(model_dir))
        with open(f"{out}/{name}/{tag}.json", "w") as f:
            json.dump({"model": name, "grid": {**grid, "world": world}, "sizes": sizes, "opts": {k: str(v) for k, v in opts.items()}, "export": export,
                       "ranks": [g[0] for g in gathered]}, f)
        print(f"{name} {tag}: {sum(len(g[0]['params']) for g in gathered)} parameters; export", json.dumps(export)[:1500])
        if any(g[2] for g in gathered):
            print(next(g[2] for g in gathered if g[2])[-1500:])
        elif saves:
            os.makedirs(f"{out}/torch_dist", exist_ok=True)
            with open(f"{out}/torch_dist/{name}.{tag}.json", "w") as f:
                json.dump({"ranks": [{"sharded": g[1]} for g in gathered]}, f)
            with open(f"{out}/torch_dist/{name}.{tag}.dcp.json", "w") as f:
                json.dump(read_back(f"{store}/save"), f)
            shutil.rmtree(f"{out}/torch_dist/{name}.{tag}.ckpt", ignore_errors=True)
            shutil.copytree(f"{store}/save", f"{out}/torch_dist/{name}.{tag}.ckpt")
    dist.barrier()


def run(world, in_rank, *arguments):
    """Whether in_rank(rank, world, *arguments, a folder that is removed) came to its end in so many processes."""
    store = tempfile.mkdtemp()
    children = []
    for rank in range(world):
        pid = os.fork()
        if not pid:
            status = 1
            try:
                in_rank(rank, world, *arguments, store)
                status = 0
            except BaseException:
                print(f"[rank {rank}] {traceback.format_exc()[-3000:]}" if rank == 0 else "", file=sys.stderr)
            sys.stdout.flush()
            sys.stderr.flush()
            for worker in multiprocessing.active_children():  # of a save: they would wait for ever, and keep the output open
                worker.kill()
            os._exit(status)
        children.append(pid)
    failed = False
    while children:
        pid, status = os.wait()
        children.remove(pid)
        if status and not failed:
            failed = True
            for other in children:
                os.kill(other, 15)
    shutil.rmtree(store, ignore_errors=True)
    return not failed


def main(in_rank, grids_of):
    """in_rank(rank, world, grid, model_dir, out, opts, store) in the ranks of each grid "TP,EP,PP,ETP[,WORLD]" of each model."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--grids", nargs="*")
    options = parser.parse_args()
    good = True
    for name in options.models:
        model = tiny_models.MODELS[name]
        folder = os.path.abspath(f"{options.out}/{name}/hf")
        if not os.path.exists(f"{folder}/model.safetensors"):
            tiny_models.write(name, folder)
        for text in options.grids or grids_of(model):
            tp, ep, pp, etp, *world = map(int, text.split(","))
            grid = {"tp": tp, "cp": 1, "ep": ep, "etp": etp, "pp": pp}
            good &= run(world[0] if world else max(tp * pp, ep * etp * pp), in_rank, grid, folder, options.out, model.opts)
    sys.exit(not good)


def main_of_ranks(built, exported):
    """built(model_dir, grid, opts): a handle and the rank's models with their weights; exported(handle, models): name -> tensor."""
    main(lambda rank, world, *rest: rank_main(rank, world, built, exported, *rest), lambda model: model.grids)
