"""Files made to cost much for their size: safetensors headers, pickles and indexes with very many entries, names, values or levels.

    MANY_TINY[name]: (the file's bytes, commands with the bound of each)
    SAFETENSORS[name]: (the file's bytes, exit status of a command that looks, words that it says)      PICKLES[name]: a pickle
    INDEXES[name]: (the names of so many tensors, of files, the commands that look at it)      METADATA[name]: a .metadata of DCP, or metadata.pkl
"""
import json
import os
import pickle
import random
import struct
import sys
import zipfile

MIB = 1 << 20


def safetensors(header, data_bytes=0):
    text = header.encode()
    return struct.pack("<Q", len(text)) + text + bytes(data_bytes)


def entries(names):
    rows = ",".join(f'"{n}":{{"dtype":"U8","shape":[],"data_offsets":[{i},{i + 1}]}}' for i, n in enumerate(names))
    return safetensors("{" + rows + "}", len(names))


def parts(count, most, total):
    """Names of so many parts, each below `most` or a letter: no two layers are alike, and hardly two parts are shared."""
    r = random.Random(count)
    part = (lambda: str(r.randrange(most))) if most else (lambda: r.choice("abcdefghij"))
    return list({"a." + ".".join(part() for _ in range(count)) for _ in range(total // (3 * count + 50))})


def one_entry(fields, shape="[]"):
    return safetensors('{"a":{' + fields + '"dtype":"U8","shape":' + shape + ',"data_offsets":[0,1]}}', 1)


def pickled(body):
    return b"\x80\x02" + body + b"."


def listed(item, mib):
    return pickled(b"](" + item * (mib * MIB // len(item)) + b"e")


SAFETENSORS = {  # name: (what, exit status, words)
    "plain names": (lambda: entries([f"t{i}" for i in range(300000)]), 0, ""),
    "names with control bytes": (lambda: entries([f"\\u0001{i}" for i in range(300000)]), 0, "(46 more: -v)"),
    "names of layers": (lambda: entries([f"model.layers.{i}.mlp.gate.weight" for i in range(300000)]), 0, "x300000"),
    "empty tensors": (
        lambda: safetensors("{" + ",".join(f'"{i}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}' for i in range(300000)) + "}"),
        0,
        "",
    ),
    "30 numbers": (lambda: entries(parts(30, 100, 4_000_000)), 0, ""),
    "60 numbers": (lambda: entries(parts(60, 100, 4_000_000)), 0, ""),
    "100 letters": (lambda: entries(parts(100, 0, 4_000_000)), 0, ""),
    "long dotted names": (lambda: entries(["a." * 30000 + str(i) for i in range(100)]), 0, ""),
    "metadata": (
        lambda: safetensors('{"__metadata__":{' + ",".join(f'"{i}":""' for i in range(1000000)) + "}}"),
        3,
        "more than 65536 entries",
    ),
    "dimensions": (lambda: one_entry("", "[" + "0," * 10000000 + "0]"), 3, "too many dimensions"),
    "unknown fields": (lambda: one_entry("".join(f'"{i}":1,' for i in range(700000))), 3, "too many unknown fields"),
}
# So many tensors that the 64 MiB hide nothing. {name: (make, {command: how many times the header it may take})}
MANY_TINY = {
    "many empty tensors": (
        lambda: safetensors("{" + ",".join(f'"{i:x}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}' for i in range(1_000_000)) + "}"),
        {"inspect": 4, "inspect --tree": 5, "stats": 4, "stats --json": 4, "ls": 4, "verify": 5, "plot -o {folder}/x.html": 14},
    ),
    "many tensors of one byte": (
        lambda: entries([f"l.{i}" for i in range(1_000_000)]),
        {"stats": 4, "verify": 5, "diff {path}": 8},
    ),
}
PICKLES = {
    "integers": lambda: listed(b"K\x01", 60),
    "tuples": lambda: listed(b"K\x01\x85", 60),
    "lists": lambda: listed(b"]", 40),
    "dicts": lambda: listed(b"}", 40),
    "floats": lambda: listed(b"G" + struct.pack(">d", 1.5), 60),
    "texts": lambda: listed(b"X\x01\x00\x00\x00a", 60),
    "one text": lambda: pickled(b"X" + struct.pack("<I", 200 * MIB) + b"a" * (200 * MIB)),
    "objects": lambda: pickled(b"](ccollections\nOrderedDict\nq\x00)R" + b"h\x00)R" * (10 * MIB) + b"e"),
    "marks": lambda: pickled(b"(" * (60 * MIB)),
    # Compressed to less than the sixteen MiB that may be inflated: the interpreter has to see it.
    "small integers": lambda: listed(b"K\x01", 14),
    "small floats": lambda: listed(b"G" + struct.pack(">d", 1.5), 14),
    "small lists": lambda: listed(b"]", 14),
}


def apart(make):
    """Runs make() in a process of its own: what this one ever took counts as memory of the programs that it starts."""
    if (child := os.fork()) == 0:
        make()
        os._exit(0)
    if os.waitpid(child, 0)[1] != 0:
        sys.exit("FAILED: a file was not made")


def written(path, content):
    with open(path, "wb") as f:
        f.write(content)


def zipped(path, pickle_bytes):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as z:
        z.writestr("archive/data.pkl", pickle_bytes)
        z.writestr("archive/version", b"3\n")


# An index that names as many files as tensors, none of which is there, or one file that lacks all that it names. With 300,000 names a
# name that is kept twice is beyond the bound of memory.
INDEXES = {
    "absent shards": (300_000, "t{}", "s{}.safetensors", ["inspect", "verify"]),
    "absent tensors": (100_000, "tensor.{}.weight", "m.safetensors", ["inspect", "verify", "ls"]),
}


def indexed(folder, name):
    """Makes the folder with this index, and returns the path of the index."""
    count, tensor, file, _ = INDEXES[name]
    os.mkdir(folder)
    index = os.path.join(folder, "model.safetensors.index.json")
    apart(lambda: written(index, json.dumps({"metadata": {"total_size": 1}, "weight_map": {tensor.format(i): file.format(i) for i in range(count)}}).encode()))
    if name == "absent tensors":
        written(os.path.join(folder, "m.safetensors"), entries(["a"]))
    return index


def text(word):
    return b"X" + struct.pack("<I", len(word)) + word.encode()


def record(name, **fields):
    module = "torch.distributed.checkpoint." + ("filesystem" if name == "_StorageInfo" else "metadata")
    return b"c" + f"{module}\n{name}\n".encode() + b")\x81}(" + b"".join(text(key) + value for key, value in fields.items()) + b"ub"


def sizes(number, rank):
    return b"(" + (b"K" + bytes([number])) * rank + b"t"


def kept(value, number):
    """Remembered by the pickle, so that again(number) names it in two bytes."""
    return value + b"q" + bytes([number])


def again(number):
    return b"h" + bytes([number])


def metadata_of(tensors, storage=b"", paths=b""):
    return pickled(record("Metadata", state_dict_metadata=b"}(" + tensors + b"u", planner_data=b"}(" + paths + b"u", storage_data=b"}(" + storage + b"u"))


def tensor_of(rank, chunks):
    return record("TensorStorageMetadata", properties=record("TensorProperties", dtype=b"ctorch\nfloat32\n"), size=sizes(1, rank), chunks=chunks)


def one_chunk(rank):
    return record("ChunkStorageMetadata", offsets=sizes(0, rank), sizes=sizes(1, rank))


def shared_chunks():
    """Very many tensors that share a list of very many times the same chunk."""
    first = text("w") + kept(tensor_of(60, b"](" + kept(one_chunk(60), 1) + again(1) * 20_000 + b"e"), 2)
    return metadata_of(first + b"".join(text(f"w{i}") + again(2) for i in range(20_000)))


def shared_sizes():
    """Chunks whose sizes are one tuple."""
    chunk = record("ChunkStorageMetadata", offsets=again(1), sizes=again(1))
    chunks = kept(sizes(0, 64), 1) + b"0](" + chunk * 20_000 + b"e"
    return metadata_of(text("w") + tensor_of(64, chunks))


def nested_path():
    """A path of planner_data that is 10^12 characters, were it written out."""
    path = b"](" + text("a") * 10 + b"e"
    for number in range(12):
        path = b"](" + kept(path, number) + again(number) * 9 + b"e"
    index = record("MetadataIndex", fqn=text("w"), offset=sizes(0, 1), index=b"K\0")
    place = record("_StorageInfo", relative_path=text("__0_0.distcp"), offset=b"K\0", length=b"K\x04")
    return metadata_of(text("w") + tensor_of(1, b"](" + one_chunk(1) + b"e"), index + place, text("w") + path + b"\x85")


def long_extensions():
    """Records whose extensions are one long text many times."""
    index = record("MetadataIndex", fqn=text("w"), offset=sizes(0, 1), index=b"K\0")
    names = b"](" + kept(text("x" * 60_000), 1) + again(1) * 60_000 + b"e"
    place = record("_StorageInfo", relative_path=text("__0_0.distcp"), offset=b"K\0", length=b"K\x04", transform_descriptors=names)
    return metadata_of(text("w") + tensor_of(1, b"](" + one_chunk(1) + b"e"), index + place)


def shared_groups():
    """metadata.pkl of torch_checkpointing whose tensors share a list of very many times the same group of ranks."""
    data = {"global_shape": [4], "mesh_spec": {"mesh_shape": [1000], "mesh_data": list(range(1000))}, "placements": [{"type": "Shard", "dim": 0}]}
    groups = [{"ranks": list(range(1000)), "sharding_metadata": {"type": "DTensorShardingMetadata", "data": data}}] * 5000
    item = {"nested_path_to_metadata": {f'["w{i}"]': groups for i in range(5000)}, "rank_to_layout_info": {rank: None for rank in range(1000)}}
    return pickle.dumps({"metadata": {"model": item}, "world_size": 1000, "version": "2.0"})


def long_item():
    """metadata.pkl whose very many tensors belong to an item with a long name."""
    paths = {f'["w{i}"]': [] for i in range(20_000)}
    return pickle.dumps({"metadata": {"n" * 60_000: {"nested_path_to_metadata": paths, "rank_to_layout_info": {0: None}}}, "world_size": 1, "version": "2.0"})


OF_ITEMS = {"shared groups of ranks": shared_groups, "a long name of an item": long_item}
METADATA = {
    "shared chunks": shared_chunks,
    "shared sizes": shared_sizes,
    "a nested path": nested_path,
    "long extensions": long_extensions,
    **OF_ITEMS,
}


def folder_of_ranks(folder, name):
    """Makes a folder with this .metadata or metadata.pkl, and returns the path of it."""
    os.mkdir(folder)
    of_items = name in OF_ITEMS
    written(os.path.join(folder, "model_0.pt" if of_items else "__0_0.distcp"), bytes(4))
    metadata = os.path.join(folder, "metadata.pkl" if of_items else ".metadata")
    written(metadata, METADATA[name]())
    return metadata
