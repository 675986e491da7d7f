"""Writes what a rank of a training run holds: names, shapes, places, attributes and digests, no values. This file needs torch alone, and may
be copied. Call it on every rank, then `mckpt diff rank1.json HF_DIR --as megatron --tp 2`, or --as fsdp:

    dump_rank(model, f"rank{torch.distributed.get_rank()}.json")    # model: a module, or its state dict
"""

from __future__ import annotations

import hashlib
import importlib
import json
from typing import Any

import torch  # type: ignore[import-not-found, unused-ignore]

ATTRIBUTES = ("tensor_model_parallel", "partition_dim", "partition_stride", "sequence_parallel", "allreduce")


def offset_of(dtensor: Any) -> list[int] | None:
    """Where the rank's part begins. Parts of Megatron-FSDP are uneven: its own code finds them, with all ranks."""
    for package in () if hasattr(dtensor.to_local(), "__create_chunk_list__") else ("megatron_fsdp", "megatron.core.distributed.fsdp.src.megatron_fsdp"):
        try:
            return list(importlib.import_module(f"{package}.uneven_dtensor").gather_and_compute_chunk_metadata(dtensor).offsets)
        except ImportError:
            continue
    parts = dtensor.__create_chunk_list__() if dtensor.to_local().numel() else []
    return list(parts[0].offsets) if parts and tuple(parts[0].sizes) == tuple(dtensor.to_local().shape) else None


def describe(name: str, tensor: Any) -> dict[str, Any]:
    is_dtensor = hasattr(tensor, "placements")
    local = (tensor.to_local() if is_dtensor else tensor).detach()
    data = local.contiguous().reshape(-1).view(torch.uint8).cpu().numpy()
    marks = {a: getattr(tensor, a) for a in ATTRIBUTES if hasattr(tensor, a)}
    return {"name": name, "dtype": str(local.dtype).removeprefix("torch."), "shape": list(tensor.shape), "local_shape": list(local.shape),
            "offset": offset_of(tensor) if is_dtensor else [0] * tensor.dim(), "placements": [str(p) for p in tensor.placements] if is_dtensor else [],
            "attributes": marks, "sha256": hashlib.sha256(data).hexdigest()}


def dump_rank(model: Any, path: str) -> None:
    named = model if isinstance(model, dict) else model.state_dict(keep_vars=True)
    tensors = [describe(n, t) for n, t in named.items() if torch.is_tensor(t) and not n.endswith("_extra_state")]
    world = torch.distributed.get_world_size() if torch.distributed.is_initialized() else 1
    rank = torch.distributed.get_rank() if world > 1 else 0
    with open(path, "w") as file:
        json.dump({"schema": "mckpt.rank_dump/1", "rank": rank, "world": world, "tensors": tensors}, file)
