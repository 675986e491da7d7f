#!/usr/bin/env python3
"""Writes the folders of variations/: one small checkpoint, saved as many writers could save it, and damaged as many
faults could damage it. The right reading of each stands in variations/expected.json.

usage: make_variations.py [OUT]     (needs torch)
"""
import hashlib
import io
import json
import pathlib
import pickle
import shutil
import struct
import sys
import zipfile

import torch
from torch.distributed.checkpoint.filesystem import _StorageInfo
from torch.distributed.checkpoint.metadata import (BytesStorageMetadata, ChunkStorageMetadata, Metadata, MetadataIndex,
                                                   StorageMeta, TensorProperties, TensorStorageMetadata)

ROWS, COLUMNS, CUT = 8, 4, 5
W = torch.arange(ROWS * COLUMNS, dtype=torch.float32).reshape(ROWS, COLUMNS) + 0.5


def saved(value, **options):
    out = io.BytesIO()
    torch.save(value, out, **options)
    return out.getvalue()


def rezipped(item, top="archive", method=zipfile.ZIP_STORED, only=None, replace=None):
    """The records of a torch.save archive, written again by Python's zipfile."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(item)) as source, zipfile.ZipFile(out, "w", method) as target:
        for name in source.namelist():
            leaf = name.split("/", 1)[1]
            if only is None or leaf in only:
                target.writestr(zipfile.ZipInfo(f"{top}/{leaf}"), (replace or {}).get(leaf, source.read(name)), method)
    return out.getvalue()


def plain_metadata(items):
    """Metadata of W in two chunks and the iteration, with `items` laid end to end in two files."""
    size = torch.Size([ROWS, COLUMNS])
    boxes = [((0, 0), (CUT, COLUMNS)), ((CUT, 0), (ROWS - CUT, COLUMNS))]
    chunks = [ChunkStorageMetadata(torch.Size(o), torch.Size(s)) for o, s in boxes]
    storage = {MetadataIndex("iteration"): _StorageInfo("__0_0.distcp", 0, len(items[0]))}
    storage[MetadataIndex("w", torch.Size(boxes[0][0]), 0)] = _StorageInfo("__0_0.distcp", len(items[0]), len(items[1]))
    storage[MetadataIndex("w", torch.Size(boxes[1][0]), 1)] = _StorageInfo("__1_0.distcp", 0, len(items[2]))
    tensor = TensorStorageMetadata(TensorProperties(dtype=torch.float32), size, chunks)
    return Metadata({"iteration": BytesStorageMetadata(), "w": tensor}, {"iteration": ("iteration",), "w": ("w",)}, storage,
                    StorageMeta(checkpoint_id="x", save_id="42"), version="1.0.0")


class NamingPickler(pickle._Pickler):
    """Writes classes under the names they claim to have, and states as they are given."""

    def save_global(self, obj, name=None):
        module, name = obj.__module__, name or obj.__qualname__
        if self.proto >= 4:
            self.save(module), self.save(name)
            self.write(pickle.STACK_GLOBAL)
        else:
            self.write(pickle.GLOBAL + module.encode() + b"\n" + name.encode() + b"\n")
        self.memoize(obj)

    dispatch = dict(pickle._Pickler.dispatch)
    dispatch[type] = save_global


def pickled(metadata, protocol=4, fast=False):
    out = io.BytesIO()
    pickler = NamingPickler(out, protocol)
    pickler.fast = fast
    pickler.dump(metadata)
    return out.getvalue()


class Case:
    def __init__(self, items=None, edit=None, write=pickled, **expected):
        first, second = W[:CUT].clone(), W[CUT:].clone()
        self.items = [saved(10), saved(first), saved(second)]
        for number, change in (items or {}).items():
            self.items[number] = change(self.items[number])
        self.metadata = plain_metadata(self.items)
        if edit:
            self.metadata = edit(self.metadata) or self.metadata
        self.write, self.expected = write, expected

    def save(self, folder):
        folder.mkdir(parents=True)
        (folder / "__0_0.distcp").write_bytes(self.items[0] + self.items[1])
        (folder / "__1_0.distcp").write_bytes(self.items[2])
        (folder / ".metadata").write_bytes(self.write(self.metadata))


def without(*fields):
    def edit(metadata):
        for field in fields:
            delattr(metadata, field)
    return edit


def setting(**fields):
    def edit(metadata):
        for name, value in fields.items():
            setattr(metadata, name, value)
    return edit


def no_index(metadata):
    metadata.storage_data = {MetadataIndex(k.fqn, k.offset, None): v for k, v in metadata.storage_data.items()}


def wrong_index(metadata):
    metadata.storage_data = {MetadataIndex(k.fqn, k.offset, None if k.index is None else 1 - k.index): v
                             for k, v in metadata.storage_data.items()}


def tensor_of(metadata):
    return metadata.state_dict_metadata["w"]


def tuple_chunks(metadata):
    for chunk in tensor_of(metadata).chunks:
        chunk.offsets, chunk.sizes = tuple(chunk.offsets), tuple(chunk.sizes)
    chunks = tensor_of(metadata).chunks
    shared = (0, 0)  # one object in two places, as a constant would be
    chunks[0].offsets = shared
    metadata.planner_data["shared"] = shared


def megatron_class(metadata):
    made = type("MCoreMetadata", (Metadata,), {"__module__": "megatron.core.dist_checkpointing.strategies.torch"})
    out = made.__new__(made)
    out.__dict__.update(metadata.__dict__, mcore_data={"w": {}})
    return out


def unknown_class(metadata):
    made = type("Metadata", (Metadata,), {"__module__": "somefork.checkpoint"})
    out = made.__new__(made)
    out.__dict__.update(metadata.__dict__)
    return out


def properties_dict(metadata):
    made = type("TensorProperties", (), {"__module__": TensorProperties.__module__})
    properties = made()
    properties.dtype, properties.requires_grad = torch.float32, False
    tensor_of(metadata).properties = properties


def old_storage_info(transforms):
    def edit(metadata):
        made = type("_StorageInfo", (), {"__module__": _StorageInfo.__module__})
        for key, info in metadata.storage_data.items():
            new = made()
            new.relative_path, new.offset, new.length = info.relative_path, info.offset, info.length
            if transforms != "absent":
                new.transform_descriptors = transforms
            metadata.storage_data[key] = new
    return edit


def drop_chunk(metadata):
    tensor_of(metadata).chunks.pop()
    metadata.storage_data = {k: v for k, v in metadata.storage_data.items() if not k.offset or k.offset[0] == 0}


def flipped(item):
    at = item.index(struct.pack("<f", 0.5)) + 1
    return item[:at] + bytes([item[at] ^ 4]) + item[at + 1:]


def extra_entry(metadata):
    metadata.storage_data[MetadataIndex("v", torch.Size([0]), 0)] = _StorageInfo("__1_0.distcp", 0, 10)


def lost_entry(metadata):
    metadata.storage_data = {k: v for k, v in metadata.storage_data.items() if k.index != 1}


def same_record(metadata):
    infos = [v for k, v in metadata.storage_data.items() if k.fqn == "w"]
    infos[1].relative_path, infos[1].offset, infos[1].length = infos[0].relative_path, infos[0].offset, infos[0].length


def padded_dims(metadata):
    tensor_of(metadata).chunks[0].sizes = torch.Size([CUT, COLUMNS, 1])
    tensor_of(metadata).chunks[0].offsets = torch.Size([0, 0, 0])


EMPTY = saved(torch.empty(0, COLUMNS))


def empty_chunks(metadata):
    """The part that the last two of four ranks of FSDP2 leave: two chunks, one item."""
    chunks = tensor_of(metadata).chunks
    for _ in range(2):
        chunks.append(ChunkStorageMetadata(torch.Size([ROWS, 0]), torch.Size([0, COLUMNS])))
    second = [v for k, v in metadata.storage_data.items() if k.index == 1][0]
    second.length -= len(EMPTY)
    metadata.storage_data[MetadataIndex("w", torch.Size([ROWS, 0]), 2)] = _StorageInfo("__1_0.distcp", second.length, len(EMPTY))


only_data = {"data.pkl", "data/0"}
CASES = {
    "as_torch": Case(),
    "protocol_2": Case(write=lambda m: pickled(m, 2)),
    "protocol_2_without_memo": Case(write=lambda m: pickled(m, 2, fast=True)),
    "protocol_5": Case(write=lambda m: pickle.dumps(m, 5)),
    "storage_meta_none": Case(edit=setting(storage_meta=None, planner_data=None, version=None)),
    "fields_missing": Case(edit=without("storage_meta", "planner_data", "version")),
    "index_none": Case(edit=no_index),
    "index_wrong": Case(edit=wrong_index, warnings=["MC1301"]),
    "tuple_chunks": Case(edit=tuple_chunks, write=lambda m: pickled(m, 2)),
    "megatron_class": Case(edit=megatron_class),
    "unknown_class": Case(edit=unknown_class, warnings=["MC1214"]),
    "properties_dict": Case(edit=properties_dict),
    "storage_info_3_fields": Case(edit=old_storage_info("absent")),
    "storage_info_4_fields": Case(edit=old_storage_info(None)),
    "empty_chunks": Case(items={2: lambda i: i + EMPTY}, edit=empty_chunks),
    "item_bare_zip": Case(items={1: lambda i: rezipped(i, "weights", only=only_data)}, item="MC1220"),
    "item_deflated": Case(items={1: lambda i: rezipped(i, method=zipfile.ZIP_DEFLATED)}),
    "item_legacy": Case(items={1: lambda i: saved(W[:CUT].clone(), _use_new_zipfile_serialization=False)}),
    "item_junk_behind": Case(items={1: lambda i: i + b"junk"}),
    "item_protocol_3": Case(items={1: lambda i: saved(W[:CUT].clone(), pickle_protocol=3)}),
    "item_protocol_4": Case(items={1: lambda i: saved(W[:CUT].clone(), pickle_protocol=4)}),
    "item_big_endian": Case(items={1: lambda i: rezipped(i, replace={
        "byteorder": b"big", "data/0": W[:CUT].contiguous().numpy().astype(">f4").tobytes()})}),
    "item_transposed": Case(items={1: lambda i: saved(W[:CUT].t().contiguous().t())}),
    "item_parameter": Case(items={1: lambda i: saved(torch.nn.Parameter(W[:CUT].clone()))}),
    # Damage that must not pass in silence.
    "transformed": Case(edit=old_storage_info(["zstd"]), item="MC1310"),
    "hole": Case(edit=drop_chunk, findings=["MC1304"], warnings=["MC1315"]),
    "record_extra": Case(edit=extra_entry, warnings=["MC1307"]),
    "record_lost": Case(edit=lost_entry, findings=["MC1306"], warnings=["MC1315"]),
    "record_shared": Case(edit=same_record, findings=["MC1309"], warnings=["MC1315"]),
    "other_rank": Case(edit=padded_dims, opens="MC1301"),
    "item_raw_bytes": Case(items={1: lambda i: W[:CUT].numpy().tobytes()}, item="MC1310"),
    "item_other_dtype": Case(items={1: lambda i: saved(W[:CUT].to(torch.float64))}, item="MC1310"),
    "item_other_shape": Case(items={1: lambda i: saved(W[:CUT - 1].clone())}, item="MC1310"),
    "item_two_tensors": Case(items={1: lambda i: saved([W[:CUT].clone(), W[:CUT].clone()])}, item="MC1310"),
    "item_no_tensor": Case(items={1: lambda i: saved({"w": 1})}, item="MC1310"),
    "item_bit_flip": Case(items={1: flipped}, checksum="MC1203"),
}


def main():
    out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "variations")
    shutil.rmtree(out, ignore_errors=True)
    expected = {}
    for name, case in CASES.items():
        case.save(out / name)
        expected[name] = {"opens": "", "item": "", "checksum": "", "findings": [], "warnings": [], **case.expected}
    answer = {"sha256": hashlib.sha256(W.numpy().tobytes()).hexdigest(), "folders": expected}
    (out / "expected.json").write_text(json.dumps(answer, indent=1) + "\n")
    print(len(CASES), "folders")


main()
