#!/usr/bin/env python3
"""Writes a large DCP folder for speed work: a .metadata of many tensors as a real Megatron-FSDP save pickles it, and
sparse .distcp files of the right length (no items in them).

usage: make_dcp_metadata.py FOLDER [--tensors 100000] [--ranks 64] [--torch-size]
"""
import argparse
import pathlib
import pickle

import torch
from torch.distributed.checkpoint.filesystem import _StorageInfo
from torch.distributed.checkpoint.metadata import (BytesStorageMetadata, ChunkStorageMetadata, Metadata, MetadataIndex,
                                                   StorageMeta, TensorProperties, TensorStorageMetadata)

SHAPES = [(2048, 4096), (4096, 2048), (4096,), (768, 4096), (4096, 768), (128,)]


def names(count):
    """Parameters of a mixture of experts with their moments, as Megatron-FSDP calls them."""
    kinds = ["linear_fc1.weight{e}_w", "linear_fc1.weight{e}_v", "linear_fc2.weight{e}"]
    made = 0
    for layer in range(10**6):
        for expert in range(64):
            for kind in kinds:
                name = f"module.decoder.layers.{layer}.mlp.experts.experts." + kind.format(e=expert)
                yield ("model", name)
                for moment in ("exp_avg", "exp_avg_sq"):
                    yield ("optimizer", "state", "module.module." + name, moment)
                made += 3
                if made >= count:
                    return


def chunks_of(shape, number, ranks, as_tuple):
    """Between one and three uneven row blocks, on neighbouring ranks."""
    pieces = min(1 + number % 3, shape[0])
    cuts = [shape[0] * i // pieces + (i % pieces) * (number % 2) for i in range(pieces)] + [shape[0]]
    for i in range(pieces):
        offsets = (cuts[i],) + (0,) * (len(shape) - 1)
        sizes = (cuts[i + 1] - cuts[i],) + shape[1:]
        kind = tuple if as_tuple else torch.Size
        yield (number + i) % ranks, kind(offsets), kind(sizes)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--tensors", type=int, default=100000)
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--torch-size", action="store_true", help="chunks as torch's own saves have them")
    args = parser.parse_args()

    tensors, planner, storage = {}, {}, {}
    ends = [0] * args.ranks
    paths = [f"__{rank}_0.distcp" for rank in range(args.ranks)]
    for number, path in enumerate(names(args.tensors)):
        if number == args.tensors:
            break
        name, shape = ".".join(path), SHAPES[number // 3 % len(SHAPES)]
        chunks = []
        for rank, offsets, sizes in chunks_of(shape, number, args.ranks, not args.torch_size):
            length = 1577 + 4 * torch.Size(sizes).numel()
            index = MetadataIndex(name, torch.Size(offsets), len(chunks))
            storage[index] = _StorageInfo(paths[rank], ends[rank], length)
            ends[rank] += length
            chunks.append(ChunkStorageMetadata(offsets=offsets, sizes=sizes))
        tensors[name] = TensorStorageMetadata(TensorProperties(dtype=torch.float32), torch.Size(shape), chunks)
        planner[".".join(path)] = path  # another string object than `name`, as after a gather over ranks
    for item in ("iteration", "checkpoint_version"):
        tensors[item], planner[item] = BytesStorageMetadata(), (item,)
        storage[MetadataIndex(item)] = _StorageInfo(paths[0], ends[0], 1261)
        ends[0] += 1261

    args.folder.mkdir(parents=True, exist_ok=True)
    for path, end in zip(paths, ends):
        with open(args.folder / path, "wb") as file:
            file.truncate(end)
    metadata = Metadata(tensors, planner, storage, StorageMeta(checkpoint_id=args.folder, save_id="0"), version="1.0.0")
    with open(args.folder / ".metadata", "wb") as file:
        pickle.dump(metadata, file, protocol=4)
    print(f"{len(tensors)} tensors, {len(storage)} items, {(args.folder / '.metadata').stat().st_size} bytes")


main()
