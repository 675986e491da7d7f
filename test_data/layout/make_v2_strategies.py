#!/usr/bin/env python3
"""Makes v2_strategies.json: how Megatron-FSDP v2 (megatron_fsdp.experimental of PyPI) packs and shards lists of shapes under every strategy of
every axis, on meshes of one and two axes, and why it refuses some of them. Runs over gloo on CPU.

usage: PYTHONPATH=tests/support .venv/bin/python test_data/layout/make_v2_strategies.py
"""
import itertools
import json
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from mckpt_tests.fsdp_v2_ranks import build, leave, packing, placements

STRATEGIES = ["no_shard", "optim", "optim_grads", "optim_grads_params"]
MESHES = [[1], [3], [4], [2, 2], [2, 3], [3, 2]]
SHAPES = [
    [[11, 6], [11], [10, 4], [1, 6], [10]],
    [[4, 4], [2, 6], [1, 2], [4, 4], [1, 6]],  # fragments in gaps
    [[3, 6], [4, 4], [7], [5, 3, 2]],  # a partner in the gap
    [[1], [13, 10], [6, 15], [2, 9], [9, 1]],
]


def in_rank(rank, world, port, meshes, results):
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "GLOO_SOCKET_IFNAME": "lo"}
    dist.init_process_group("gloo", rank=rank, world_size=world)
    from megatron_fsdp.experimental import fully_shard
    from torch.distributed.device_mesh import init_device_mesh

    out = []
    for sizes in meshes:
        mesh = init_device_mesh("cpu", tuple(sizes))
        for axes, shapes in itertools.product(itertools.product(STRATEGIES, repeat=len(sizes)), SHAPES):
            root = build([{"name": f"p{i}", "shape": s, "trained": True} for i, s in enumerate(shapes)])
            run = {"mesh": sizes, "axes": list(axes), "shapes": shapes}
            try:
                fully_shard(root, mesh=mesh, placements=placements(axes))
            except (ValueError, NotImplementedError) as error:
                out.append(run | {"refused": f"{type(error).__name__}: {error}"})
            else:
                [group] = packing(root)
                out.append(run | {k: group[k] for k in ("size", "offsets", "held", "main", "weights", "gradients", "one_buffer")})
    with open(f"{results}/{rank}.json", "w") as f:
        json.dump(out, f)
    leave(rank, world, results)


def main():
    torch.set_num_threads(1)
    runs = []
    for world in sorted({a[0] * (a + [1])[1] for a in MESHES}):
        meshes = [m for m in MESHES if m[0] * (m + [1])[1] == world]
        with tempfile.TemporaryDirectory() as results:
            mp.start_processes(in_rank, (world, 29800 + world, meshes, results), nprocs=world, start_method="fork")
            ranks = []
            for rank in range(world):
                with open(f"{results}/{rank}.json") as f:
                    ranks.append(json.load(f))
        for run, *others in zip(*ranks):
            if "refused" not in run:
                run |= {field: [r[field] for r in (run, *others)] for field in ("held", "main")}
            runs.append(run)
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "v2_strategies.json"), "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(run) for run in runs) + "\n]\n")


main()
