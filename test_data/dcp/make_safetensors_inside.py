"""Makes safetensors_inside: two tensors and an object that torch saves with FileSystemWriter(serialization_format=SerializationFormat.SAFETENSORS), on two ranks (gloo).
It ends with what torch itself says when it loads them: it cannot.

    python make_safetensors_inside.py        (made by torch 2.15.0)
"""
import os
import shutil
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint import filesystem
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "safetensors_inside")
WORLD = 2


def state():
    mesh = init_device_mesh("cpu", (WORLD,))
    cut = distribute_tensor(torch.arange(15, dtype=torch.float32).reshape(5, 3), mesh, [Shard(0)])
    return {"layer.weight": cut, "layer.bias": torch.arange(4, dtype=torch.bfloat16), "epoch": {"number": 3}}


def rank(number, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=number, world_size=WORLD)
    dcp.save(state(), storage_writer=dcp.FileSystemWriter(FOLDER, serialization_format=filesystem.SerializationFormat.SAFETENSORS))
    dist.barrier()
    if number == 0:
        try:
            dcp.load({"layer.bias": torch.zeros(4, dtype=torch.bfloat16)}, checkpoint_id=FOLDER, no_dist=True)
        except dcp.api.CheckpointException as e:
            failure = e.failures[0][0] if isinstance(e.failures[0], tuple) else e.failures[0]
            print("torch", torch.__version__, "does not load it:", type(failure).__name__, str(failure).splitlines()[0][:120])
        else:
            sys.exit("torch loads it")
    dist.destroy_process_group()


if __name__ == "__main__":
    shutil.rmtree(FOLDER, ignore_errors=True)
    with tempfile.TemporaryDirectory() as work:
        torch.multiprocessing.spawn(rank, (os.path.join(work, "store"),), nprocs=WORLD)
