"""The answer of a release of torch to every mutation of judges/more_fields: python judge_more_fields.py
TABLE, with the Python of that release and PYTHONPATH=tests/support:tests/judges. Adds its answers to TABLE,
more_fields.json: "same", "other" values or places, or the error."""

import hashlib
import json
import os
import sys
import tempfile

import more_fields
import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.metadata import TensorStorageMetadata


def described(value):
    """The contents of a loaded file; of DTensors and ShardedTensors also the places of their items."""
    if isinstance(value, dict):
        return [(key, described(value[key])) for key in value]
    if not isinstance(value, torch.Tensor) and not hasattr(value, "local_shards"):
        return repr(value)
    if hasattr(value, "local_shards"):
        return [(repr(s.metadata), described(s.tensor)) for s in value.local_shards()], repr(value.metadata())
    if hasattr(value, "_spec"):
        mesh = value._spec.mesh
        return (repr(value._spec.placements), repr(mesh._layout), mesh._rank_map.tolist(), repr(getattr(value._spec, "shard_order", None)), repr(value._spec.tensor_meta),
                described(value._local_tensor))
    value = value.detach().contiguous()
    return str(value.dtype), list(value.shape), hashlib.sha256(value.reshape(-1).view(torch.uint8).numpy().tobytes() if value.numel() else b"").hexdigest()


def read(folder):
    if os.path.exists(os.path.join(folder, ".metadata")):
        reader = dcp.FileSystemReader(folder)
        tensors = {key: torch.empty(entry.size, dtype=entry.properties.dtype) for key, entry in reader.read_metadata().state_dict_metadata.items()
                   if isinstance(entry, TensorStorageMetadata)}
        dcp.load(tensors, storage_reader=reader, no_dist=True)
        return described(tensors)
    names = [name for name in sorted(os.listdir(folder)) if name.startswith("model_")]
    if is_of_sharded_tensors(folder, names):
        names = [as_that_rank(names)]
    return [described(torch.load(os.path.join(folder, name), weights_only=False)) for name in names]


def is_of_sharded_tensors(folder, names):
    return b"sharded_tensor" in more_fields.pickle_of(os.path.join(folder, names[0]))


def as_that_rank(names):
    """ShardedTensors load in the rank that saved them alone: this process becomes rank 1, without others."""
    import torch.distributed as dist
    from torch.testing._internal.distributed.fake_pg import FakeStore
    if not dist.is_initialized():
        dist.init_process_group("fake", rank=1, world_size=len(names), store=FakeStore())
    return names[1]


def main():
    table = {}
    if os.path.exists(sys.argv[1]):
        with open(sys.argv[1]) as f:
            table = json.load(f)
    release, plain = "torch " + torch.__version__.split("+")[0], {}
    with tempfile.TemporaryDirectory() as work:
        for what, folder, copy in more_fields.mutants(work):
            try:
                if folder not in plain:
                    plain[folder] = read(folder)
                answer = "same" if read(copy) == plain[folder] else "other"
            except BaseException as e:  # noqa: BLE001 - CheckpointException is one of these
                answer = f"{type(e).__name__}: {(str(e).strip().splitlines() or [''])[-1].split(' on <module')[0]}"[:100]
            table.setdefault(what, {})[release] = answer
    with open(sys.argv[1], "w") as f:
        json.dump(table, f, indent=0, sort_keys=True)
    print(release, len(table))


if __name__ == "__main__":
    main()
