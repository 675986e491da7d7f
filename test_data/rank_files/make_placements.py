#!/usr/bin/env python3
"""Writes files of ranks with DTensors over random meshes, and what the whole tensors are: one process that is each rank in turn.

Which items a rank has is computed here, with torch.chunk alone, by the rules of torch's placements:

  Shard(d)             what is left of dimension d, in as many chunks as the mesh dimension has ranks
  _StridedShard(d, n)  what is left in n blocks, and of every block the rank's chunk
  shard_order          which mesh dimension cuts first; without it they cut from left to right
  strided as order     FSDP2 over tensor parallelism: plain cuts, of which the ones to the right come first

    python make_placements.py OUT_DIR [COUNT [SEED]]      OUT_DIR/model_world_size_8_rank_R.pt, OUT_DIR.expected.json
"""
import hashlib
import json
import os
import random
import sys
import warnings

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor._dtensor_spec import DTensorSpec, ShardOrderEntry, TensorMeta
from torch.distributed.tensor.placement_types import _StridedShard
from torch.testing._internal.distributed.fake_pg import FakeStore

WORLD = 8
GRIDS = [(8,), (2, 4), (4, 2), (2, 2, 2), (1, 8), (8, 1), (2, 1, 4), (1, 1, 8), (2, 2, 1, 2)]


def random_case(dice):
    """The facts of a tensor that all ranks know: the mesh, as a recipe; placements and their order; the
    shape."""
    grid = dice.choice(GRIDS)
    names = tuple("abcd"[: len(grid)])
    chosen = sorted(dice.sample(range(len(grid)), dice.randint(1, len(grid))))
    flatten = len(chosen) > 1 and dice.random() < 0.4
    sizes = [grid[i] for i in chosen]
    if flatten:
        sizes = [int(torch.Size(sizes).numel())]
    subset = dice.sample(range(WORLD), 4) if dice.random() < 0.15 else None
    if subset:
        sizes = [2, 2]
    shape = [dice.choice([1, 2, 3, 4, 5, 7, 8, 12, 16, 24, 29, 32]) for _ in range(dice.randint(1, 3))]
    kind = dice.choice(["plain", "plain", "order", "strided order", "strided"])
    placements = [None if dice.random() < 0.3 else dice.randrange(len(shape)) for _ in sizes]
    order = list(range(len(sizes)))
    if kind in ("order", "strided order"):
        dice.shuffle(order)
    blocks = [dice.choice([1, 2, 3, 4]) if kind == "strided" else 1 for _ in sizes]
    return {"grid": grid, "names": names, "chosen": chosen, "flatten": flatten, "subset": subset, "sizes": sizes, "shape": shape,
            "kind": kind, "placements": placements, "order": order, "blocks": blocks, "begin": dice.randrange(1000)}  # fmt: skip


def mesh_of(case, made):
    if case["subset"]:
        key = ("subset", tuple(case["subset"]))
        if key not in made:
            made[key] = DeviceMesh("cpu", torch.tensor(case["subset"]).reshape(2, 2), mesh_dim_names=("x", "y"))
        return made[key]
    if case["grid"] not in made:
        made[case["grid"]] = init_device_mesh("cpu", case["grid"], mesh_dim_names=case["names"])
    root = made[case["grid"]]
    names = tuple(case["names"][i] for i in case["chosen"])
    mesh = root if len(names) == len(case["grid"]) else root[names]
    if not case["flatten"]:
        return mesh
    key = (case["grid"], names)
    if key not in made:
        made[key] = mesh._flatten("flat_" + "".join(names))
    return made[key]


def factor(case, m):
    """The order that a strided shard shows: the ranks of the cuts to its right that come before it."""
    before = case["order"][: case["order"].index(m)]
    return int(torch.Size([case["sizes"][o] for o in before if o > m and case["placements"][o] == case["placements"][m]]).numel())


def placements_of(case):
    out = []
    for m, dim in enumerate(case["placements"]):
        n = factor(case, m) if case["kind"] == "strided order" and dim is not None else case["blocks"][m]
        strided = dim is not None and (case["kind"] == "strided" or n > 1)
        out.append(Replicate() if dim is None else _StridedShard(dim, split_factor=n) if strided else Shard(dim))
    return tuple(out)


def chunk(tensor, count, dim):
    parts = list(torch.chunk(tensor, count, dim))
    return parts + [tensor.narrow(dim, 0, 0)] * (count - len(parts))


def local_part(case, whole, place):
    for m in case["order"]:
        dim = case["placements"][m]
        if dim is not None:
            blocks = chunk(whole, case["blocks"][m], dim)
            whole = torch.cat([chunk(b, case["sizes"][m], dim)[place[m]] for b in blocks], dim)
    return whole.contiguous()


def shard_order(case):
    dims = {}
    for m in case["order"]:
        if case["placements"][m] is not None:
            dims.setdefault(case["placements"][m], []).append(m)
    return tuple(ShardOrderEntry(d, tuple(dims[d])) for d in sorted(dims))


def whole_of(case):
    count = int(torch.Size(case["shape"]).numel())
    return torch.arange(case["begin"], case["begin"] + count, dtype=torch.float32).reshape(case["shape"])


def dtensor(case, mesh, requires_grad=False):
    whole, place = whole_of(case), mesh.get_coordinate()
    local = torch.empty(0) if place is None else local_part(case, whole, place)
    order = {"shard_order": shard_order(case), "use_strided_shard_as_shard_order": False} if case["kind"] == "order" else {}
    spec = DTensorSpec(mesh, placements_of(case), TensorMeta(whole.shape, whole.stride(), whole.dtype), **order)
    return DTensor(local, spec, requires_grad=requires_grad)


def entry(tensor):
    return {"dtype": "float32", "shape": list(tensor.shape), "sha256": hashlib.sha256(tensor.numpy().tobytes()).hexdigest()}


def write(out, count, seed):
    dice = random.Random(seed)
    cases = {f"model.t{i}.weight": random_case(dice) for i in range(count)}
    os.makedirs(out, exist_ok=True)
    for rank in range(WORLD):
        dist.init_process_group("fake", rank=rank, world_size=WORLD, store=FakeStore())
        made = {}
        torch.save({name: dtensor(case, mesh_of(case, made)) for name, case in cases.items()}, f"{out}/model_world_size_{WORLD}_rank_{rank}.pt")
        dist.destroy_process_group()
    return {name: entry(whole_of(case)) for name, case in cases.items()}


def main():
    warnings.filterwarnings("ignore")
    out, count, seed = sys.argv[1], *(int(a) for a in (sys.argv[2:] + ["24", "1"][len(sys.argv) - 2 :]))
    wanted = write(out, count, seed)
    with open(f"{out}.expected.json", "w", encoding="utf-8") as f:
        f.write("{\n" + ",\n".join(f" {json.dumps(n)}: {json.dumps(w)}" for n, w in wanted.items()) + "\n}\n")


if __name__ == "__main__":
    main()
