"""ShardedTensors whose shards do not fit together, or that no job of torch could have saved: `verify` fails, names the rank or the reason, and
what is wrong is never converted."""
import os
import struct
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.program import run_mckpt
from mckpt_tests.torch_pickles import called, dict_of, list_of, made, made_of_slots, name, number, numbers, save, tensor, text, tuple_of, wrapper

SHARD = "torch.distributed._shard."
KIND = name(SHARD + "sharded_tensor.api", "ShardedTensor")


def shard_metadata(box):
    offsets, sizes = box
    device = made("torch.distributed.remote_device", "_remote_device", _rank=number(0))
    return made_of_slots(SHARD + "metadata", "ShardMetadata", shard_offsets=list_of(*map(number, offsets)),
                         shard_sizes=list_of(*map(number, sizes)), placement=device)


def shard(box, local):
    return made_of_slots(SHARD + "sharded_tensor.shard", "Shard", tensor=local, metadata=shard_metadata(box))


def state(size, boxes, local, rank, ranks, group=None, module=KIND):
    properties = name(SHARD + "sharded_tensor.metadata", "TensorProperties") + b")\x81"
    metadata = made(SHARD + "sharded_tensor.metadata", "ShardedTensorMetadata", size=called("torch", "Size", numbers(size)),
                    shards_metadata=list_of(*map(shard_metadata, boxes)), tensor_properties=properties)
    group_state = called("builtins", "getattr", module, text("ProcessGroupState")) + b")\x81" + dict_of(
        local_rank=number(rank), global_rank=number(rank), local_world_size=number(group or ranks), global_world_size=number(ranks)) + b"b"
    spec = made(SHARD + "sharding_spec.chunk_sharding_spec", "ChunkShardingSpec", dim=number(0))
    return tuple_of(list_of(*local), metadata, group_state, spec, b"\x89")


def strides(sizes):
    return [int(n) for n in [*sizes[1:], 1]][: len(sizes)]


def rows(begin, end):
    return [begin, 0], [end - begin, 2]


def rank_file(folder, rank, ranks, boxes, own, size=(4, 2), **how):
    """The file of a rank with the shards `own`, of `boxes` in all."""
    storages, local = {}, []
    for i, (offsets, sizes) in enumerate(own):
        count = sizes[0] * 2
        storages[f"_{i}"] = struct.pack(f"<{count}f", *(10 * offsets[0] + n for n in range(count)))
        local.append(shard((offsets, sizes), tensor(str(i), sizes, strides(sizes))))
    os.makedirs(folder, exist_ok=True)
    value = wrapper(KIND, size, strides(size), state(size, boxes, local, how.pop("writer", rank), ranks, **how))
    save(os.path.join(folder, f"model_world_size_{ranks}_rank_{rank}.pt"), value, **storages)


def judge(what, folder, status, *words):
    run = run_mckpt("verify", folder, timeout=60)
    told = run.stdout + run.stderr
    expect(run.returncode == status and all(w in told for w in words), f"{what}: {run.returncode}, not {status}: {told}")
    if status == 1:
        run = run_mckpt("convert", "pt-to-safetensors", folder, folder + ".safetensors", "--tensors-only")
        expect(run.returncode != 0, f"{what}: converted")


def main():
    with tempfile.TemporaryDirectory(prefix="mckpt_shards_") as scratch:
        def case(what, status, files, *words, ranks=2, **how):
            folder = os.path.join(scratch, what.replace(" ", "_"))
            for rank, (boxes, own) in enumerate(files):
                rank_file(folder, rank, ranks, boxes, own, **how)
            judge(what, folder, status, *words)

        a, b = rows(0, 2), rows(2, 4)
        case("two halves", 0, [([a, b], [a]), ([a, b], [b])])
        case("no shard on a rank", 0, [([a, b], [a, b]), ([a, b], [])])
        case("no shard on any rank", 1, [([a, b], []), ([a, b], [])], "leave out items")
        case("one rank twice", 1, [([a, b], [a]), ([a, b], [a])], "has a shard that an earlier rank has as well")
        case("an overlap", 1, [([a, rows(1, 4)], [a]), ([a, rows(1, 4)], [rows(1, 4)])], "piece")
        case("a gap", 1, [([a, rows(3, 4)], [a]), ([a, rows(3, 4)], [rows(3, 4)])], "leave out items")
        case("outside", 1, [([a, rows(3, 6)], [a]), ([a, rows(3, 6)], [rows(3, 6)])], "problem[")
        case("ranks of two minds", 1, [([a, b], [a]), ([rows(0, 1), rows(1, 4), b], [b])], "rank 1 describes the tensor differently than rank 0")
        case("not in the list", 1, [([rows(0, 3)], [a]), ([a, b], [b])], "is not in its tensor's list of all shards")
        case("another number of dimensions", 1, [([([0], [4])], [a]), ([a, b], [b])], "number of dimensions")
        case("groups of replicas", 0, [([a, b], [a]), ([a, b], [b]), ([a, b], [a]), ([a, b], [b])], ranks=4, group=2)
        case("another rank wrote it", 1, [([a, b], [a]), ([a, b], [b])], "by its name the file is of rank 1, but rank 0 wrote it", writer=0)
        case("a nested function", 1, [([a, b], [a]), ([a, b], [b])], "problem[", module=name("os", "system"))

        # Fields that are missing, of another kind, or the tensor itself.
        whole = tensor("0", [4, 2], [2, 1])
        for what, value in {
            "no state": wrapper(KIND, [4, 2], [2, 1], b"N"),
            "an empty state": wrapper(KIND, [4, 2], [2, 1], b")"),
            "numbers for shards": wrapper(KIND, [4, 2], [2, 1], tuple_of(*[number(1)] * 5)),
            "a tensor for a shard": wrapper(KIND, [4, 2], [2, 1], state([4, 2], [a], [whole], 0, 1)),
            "sizes that differ": wrapper(KIND, [5, 2], [2, 1], state([4, 2], [a], [shard(a, tensor("0", [2, 2], [2, 1]))], 0, 1)),
            "a shard of another size": wrapper(KIND, [4, 2], [2, 1], state([4, 2], [a], [shard(a, whole)], 0, 1)),
            "a shard of another type": wrapper(KIND, [4, 2], [2, 1], state([4, 2], [rows(0, 4)], [shard(rows(0, 4), whole)], 0, 1), name("torch", "int32")),
            "negative offsets": wrapper(KIND, [4, 2], [2, 1], state([4, 2], [([-1, 0], [4, 2])], [shard(([-1, 0], [4, 2]), whole)], 0, 1)),
            "enormous sizes": wrapper(KIND, [2**31 - 1] * 3, [1, 1, 1], state([2**31 - 1] * 3, [], [], 0, 1)),
            "a scalar without a shard": wrapper(KIND, [], [], state([], [], [], 0, 1)),
            "a shard that is a ShardedTensor": wrapper(KIND, [4, 2], [2, 1], state([4, 2], [a], [shard(a, wrapper(KIND, [4, 2], [2, 1], b"N"))], 0, 1)),
        }.items():
            path = os.path.join(scratch, what.replace(" ", "_") + ".pt")
            save(path, value, _0=bytes(32))
            judge(what, path, 1, "problem[")
    finish(40)


if __name__ == "__main__":
    main()
