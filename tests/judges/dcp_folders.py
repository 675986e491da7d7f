"""torch.distributed.checkpoint as the judge: folders of one rank and of several, with even and uneven shards, grids, views and objects."""

import argparse

from mckpt_tests.judge import NEWER, OLDER, Judge, random_tensor, random_view, row
from mckpt_tests.ranks import Shards, cuts, save_as_ranks
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.metadata import TensorStorageMetadata
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.testing._internal.distributed.fake_pg import FakeStore

DTYPES = OLDER + NEWER
PARAMETERS = [
    "embedding.word_embeddings.weight",
    "decoder.layers.{}.self_attention.linear_qkv.weight",
    "decoder.layers.{}.mlp.linear_fc1.weight_w",
    "decoder.layers.{}.mlp.linear_fc1.weight_v",
    "decoder.layers.{}.mlp.experts.experts.linear_fc2.weight3",
    "\u00e9.\u952e",
]


def writer(folder, r):
    options = r.choice([{}, {}, {"single_file_per_rank": False}, {"thread_count": 2}])
    return lambda: dcp.FileSystemWriter(str(folder), sync_files=False, **options)


def flat(value, path=()):
    """Names as torch flattens them. Lists stay one object, unless tensors are in them."""
    if isinstance(value, torch.Tensor):
        yield ".".join(path), value
    elif isinstance(value, dict):
        for k, v in value.items():
            yield from flat(v, (*path, str(k)))
    elif isinstance(value, (list, tuple)):
        for i, v in enumerate(value):
            yield from flat(v, (*path, str(i)))


def one_rank(judge, count):
    r = judge.random
    for _ in judge.repeat(count):
        folder, bases = judge.path(), [random_tensor(r, DTYPES) for _ in range(3)]
        state = {
            "model": {
                f"layers.{i}.w": random_view(r, r.choice(bases)) if r.random() < 0.5 else random_tensor(r, DTYPES)
                for i in range(r.randrange(6))
            },
            "optimizer": {
                "state": {i: {"exp_avg": random_tensor(r, OLDER), "step": torch.tensor(float(i))} for i in range(r.randrange(3))},
                "param_groups": [{"lr": 0.1, "betas": (0.9, 0.95), "params": [0, 1]}],
            },
            "list": [random_tensor(r, DTYPES), {"inner": random_tensor(r, DTYPES)}],
            "args": argparse.Namespace(bf16=True, dtype=torch.bfloat16),
            "iteration": 7,
            12: "text",
        }
        dcp.save(state, storage_writer=writer(folder, r)(), no_dist=True)
        names = dcp.FileSystemReader(str(folder)).read_metadata().state_dict_metadata
        want = {name: row(t) for name, t in flat(state)}
        assert want.keys() == {n for n, m in names.items() if isinstance(m, TensorStorageMetadata)}, "torch flattens otherwise"
        judge.expect(folder, want, "one rank")


def random_boxes(r, shape, ranks):
    """For each rank the boxes it holds: rows, or rows and columns, of any size, the empty ones left out as Megatron-FSDP does, or
    kept at the tensor's end as torch FSDP2 does."""
    boxes = [[] for _ in range(ranks)]
    if not shape:
        boxes[r.randrange(ranks)].append(((), ()))
        return boxes
    columns = cuts(r, shape[1], r.choice([1, 1, 2])) if len(shape) > 1 else None
    keep_empty = r.random() < 0.3
    for rank, (begin, end) in enumerate(cuts(r, shape[0], ranks)):
        for left, right in columns or [(None, None)]:
            offsets, sizes = [begin, *[0] * (len(shape) - 1)], [end - begin, *shape[1:]]
            if columns:
                offsets[1], sizes[1] = left, right - left
            if 0 not in sizes or (keep_empty and begin == shape[0] and columns is None):
                boxes[rank].append((tuple(offsets), tuple(sizes)))
    return boxes


def uneven_ranks(judge, count):
    """Shards with their own write items under the names of Megatron-FSDP, replicated tensors, objects of rank 0."""
    r = judge.random
    for _ in judge.repeat(count):
        ranks, folder, whole = r.randrange(2, 6), judge.path(), {}
        for prefix in ("model.module.", "optimizer.state.module.module."):
            for layer in range(2):
                for parameter in PARAMETERS[: r.randrange(1, len(PARAMETERS) + 1)]:
                    name = prefix + parameter.format(layer) + (".exp_avg" if prefix.startswith("opt") else "")
                    whole.setdefault(name, random_tensor(r, DTYPES, [r.randrange(1, 14)] + [r.randrange(1, 6)] * r.randrange(3)))
        states = [{} for _ in range(ranks)]
        for name, tensor in whole.items():
            for rank, boxes in enumerate(random_boxes(r, list(tensor.shape), ranks)):
                states[rank][name] = Shards(tensor, boxes)
        everywhere = random_tensor(r, DTYPES, [3, 2])
        for state in states:
            state |= {"everywhere": everywhere, "iteration": 3, "args": argparse.Namespace(tp=2)}
        save_as_ranks(states, writer(folder, r))
        judge.expect(folder, {name: row(t) for name, t in {**whole, "everywhere": everywhere}.items()}, f"{ranks} uneven ranks")


def as_each_rank(world, make_state):
    """The states of this process as each rank in turn. The group is torch's fake one: it has sizes and coordinates, and moves nothing."""
    for rank in range(world):
        dist.init_process_group("fake", rank=rank, world_size=world, store=FakeStore())
        yield make_state()
        dist.destroy_process_group()


def dtensor_grids(judge, count):
    """DTensors as torch cuts them itself: one mesh dimension or two, also both on one dimension of the tensor."""
    r = judge.random
    for _ in judge.repeat(count):
        shape, whole, placements = r.choice([(2,), (3,), (4,), (2, 2), (3, 2)]), {}, {}
        for i in range(r.randrange(1, 7)):
            tensor = random_tensor(
                r, [torch.float32, torch.bfloat16, torch.int64], [r.randrange(1, 12) for _ in range(r.choice([1, 2, 3]))]
            )
            whole[f"t{i}"] = tensor
            placements[f"t{i}"] = [r.choice([Replicate(), *map(Shard, range(tensor.dim()))]) for _ in shape]

        def state():
            mesh = init_device_mesh("cpu", shape)
            return {name: distribute_tensor(t, mesh, placements[name], src_data_rank=None) for name, t in whole.items()}

        folder = judge.path()
        save_as_ranks(as_each_rank(torch.Size(shape).numel(), state), writer(folder, r))
        judge.expect(folder, {name: row(t) for name, t in whole.items()}, f"DTensors on a mesh of {shape}: {placements}")


def main():
    judge = Judge(seed=3)
    one_rank(judge, 180)
    uneven_ranks(judge, 160)
    dtensor_grids(judge, 80)
    judge.finish(least=420)


main()
