"""Makes affine_maps.json: maps by which DeepSpeed's AutoTP says how a parameter is split among tensor-parallel ranks, made by DeepSpeed's own
functions, and the shards that its `ParamAffineMap.extract` cuts of a parameter whose items are 0, 1, 2, ... in their order.

    python make_affine_maps.py            in an environment with deepspeed 0.19.8 and torch
"""
import json
import os

import torch
from deepspeed.checkpoint import affine

# For each number of ranks: name, shape and map.
MAPS = {
    2: {
        "rows": ((5, 3), lambda shape: affine.contiguous_split_map(shape, [3, 2], 0)),
        "columns": ((4, 5), lambda shape: affine.contiguous_split_map(shape, [2, 3], 1)),
        "middle": ((2, 5, 3), lambda shape: affine.contiguous_split_map(shape, [2, 3], 1)),
        "bias": ((7,), lambda shape: affine.contiguous_split_map(shape, [4, 3], 0)),
        "norm": ((6,), lambda shape: affine.replicated_map(shape, 2)),
        "embedding": ((5, 4), lambda shape: affine.replicated_map(shape, 2)),
        "qkv": ((11, 3), lambda shape: affine.sub_param_map(shape, [5, 4, 2], [[3, 2], [2, 2], [1, 1]], 0)),
        "gate_up_columns": ((3, 8), lambda shape: affine.sub_param_map(shape, [4, 4], [[2, 2], [3, 1]], 1)),
        "one_key": ((9, 3), lambda shape: affine.segmented_map(shape, [(5, False), (4, True)], 0, 2, [[3, 2]])),
        "one_key_columns": ((2, 9), lambda shape: affine.segmented_map(shape, [(5, False), (4, True)], 1, 2, [[3, 2]])),
        "blocks": ((12, 2), lambda shape: affine.block_gather_map(shape, {0: [0, 3, 4], 1: [5, 1, 2]}, 2, 0)),
        "blocks_of_columns": ((3, 8), lambda shape: affine.block_gather_map(shape, {0: [0, 3], 1: [2, 1]}, 2, 1)),
        "empty_shard": ((1, 3), lambda shape: affine.contiguous_split_map(shape, [1, 0], 0)),
    },
    3: {
        "rows": ((8, 3), lambda shape: affine.contiguous_split_map(shape, [3, 3, 2], 0)),
        "columns": ((3, 7), lambda shape: affine.contiguous_split_map(shape, [3, 3, 1], 1)),
        "norm": ((5,), lambda shape: affine.replicated_map(shape, 3)),
        "qkv": ((12, 2), lambda shape: affine.sub_param_map(shape, [6, 3, 3], [[2, 3, 1], [1, 1, 1], [0, 2, 1]], 0)),
        "one_key": ((10, 2), lambda shape: affine.segmented_map(shape, [(3, True), (7, False)], 0, 3, [[3, 2, 2]])),
    },
}


def main():
    out = {}
    for ranks, maps in MAPS.items():
        for name, (shape, make) in maps.items():
            made = make(shape)
            made.validate_coverage()
            whole = torch.arange(torch.Size(shape).numel()).reshape(shape)
            out.setdefault(str(ranks), {})[name] = {"map": made.to_dict(), "shards": [made.extract(whole, r).tolist() for r in range(ranks)]}
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "affine_maps.json"), "w") as f:
        f.write(json.dumps(out, separators=(",", ":")).replace('"map"', '\n"map"') + "\n")


if __name__ == "__main__":
    main()
