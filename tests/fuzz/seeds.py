#!/usr/bin/env python3
"""Writes what a fuzz target begins with: seeds from test_data, and the words that they are made of as a dictionary.

usage: seeds.py TARGET SEED_DIR DICTIONARY
"""
import argparse
import array
import collections
import datetime
import decimal
import fractions
import json
import pathlib
import pickle
import pickletools
import re
import struct
import sys
import zipfile

DATA = pathlib.Path(__file__).resolve().parents[2] / "test_data"
MOST_BYTES = 12_000
MOST_WORDS = 400


def files(folder, pattern):
    return [path.read_bytes() for path in sorted((DATA / folder).rglob(pattern))]


def archives():
    return [raw for raw in files("pt", "*.pt") if raw.startswith(b"PK")]


def torch_pickles():
    ranks = [path for name in ("shards", "pieces") for path in (DATA / "rank_files" / name).glob("*_0.pt")]
    ranks += (DATA / "zero").glob("zero[13]_tied*/*/*rank_0*.pt")
    for path in [*sorted((DATA / "pt").rglob("*.pt")), *sorted(ranks)]:
        if zipfile.is_zipfile(path) and path.name != "no_checksums.pt":  # Python insists on checksums
            archive = zipfile.ZipFile(path)
            yield from (archive.read(name) for name in archive.namelist() if name.endswith("/data.pkl"))


def dcp_pickles():
    return files("dcp", "*.metadata")


def python_pickles():
    """Every type that Python pickles by itself, in every protocol."""
    objects = [None, True, -1, 2**31, 2**70, 1.5, "a\n\u00e9", b"\0\xff", bytearray(b"ab"), (), (1,), (1, 2, 3, 4), [1, [2]],
               {"a": {"b": ()}}, {1, 2}, frozenset("a"), collections.OrderedDict(a=1), collections.defaultdict(list, a=[1]),
               collections.Counter("aa"), collections.deque([1]), complex(1, 2), range(3), argparse.Namespace(a=1),
               pathlib.PurePosixPath("a/b"), datetime.datetime(2020, 1, 2), decimal.Decimal("1.5"), fractions.Fraction(1, 3),
               array.array("i", [1]), len, "x" * 300, list(range(300))]
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        yield from (pickle.dumps(value, protocol) for value in objects)
        shared = [1]
        yield pickle.dumps([shared, shared], protocol)


def legacy_streams():
    """The bytes after the magic number and the protocol's number."""
    for raw in files("pt", "*legacy*.pt"):
        begin = raw.index(b".", 14) + 1
        yield raw[raw.index(b".", begin) + 1:]


def dcp_items():
    """The archives of .distcp files, which stand end to end."""
    for raw in files("dcp", "*.distcp"):
        begin = 0
        for end in re.finditer(re.escape(b"PK\x05\x06"), raw):
            yield raw[begin:end.start() + 22]
            begin = end.start() + 22
    yield from files("pt", "*legacy*.pt")


def zip_inputs():
    """As the target takes them: the last byte says raw bytes or building, the one before it how many may follow."""
    yield from (raw + tail for raw in archives() for tail in (b"\0\1", b"\x08\1"))
    yield from (bytes(range(i, 256)) * 2 + b"\0\0" for i in range(0, 256, 32))


def safetensors_inputs():
    """As the target takes them: how many bytes of data, then the header; and whole files, as they are."""
    rows = [{}, {"a": ("F32", [2, 3])}, {"a": ("BF16", [0]), "b\u00e9": ("F8_E4M3", [4]), "c": ("I64", [])},
            {"x" * 100: ("F4", [2, 4]), "y": ("BOOL", [3]), "__metadata__": {"format": "pt"}}]
    bits = {"F32": 32, "BF16": 16, "F8_E4M3": 8, "I64": 64, "F4": 4, "BOOL": 8}
    for tensors in rows:
        header, at = {}, 0
        for name, row in tensors.items():
            if name == "__metadata__":
                header[name] = row
                continue
            items = 1
            for size in row[1]:
                items *= size
            header[name] = {"dtype": row[0], "shape": row[1], "data_offsets": [at, at + items * bits[row[0]] // 8]}
            at += items * bits[row[0]] // 8
        for text in (json.dumps(header), json.dumps(header, ensure_ascii=False), json.dumps(header, indent=1)):
            raw = text.encode()
            yield struct.pack("<H", at) + raw
            yield struct.pack("<Q", len(raw)) + raw + bytes(at)


def indexes():
    yield from files("models", "*.index.json")
    yield b'{"metadata": {}, "weight_map": {}}'
    yield b'{"metadata": {"total_size": 8.0}, "weight_map": {"a": "x/model-00001-of-00002.safetensors", "b": "../b.safetensors"}}'


def configs():
    yield from files("golden/models", "config.json")
    yield from files("models", "config.json")


def json_texts():
    yield from configs()
    yield from indexes()
    yield from (text.encode() for text in (
        '[1, -0, 0.5, 1e9, 1E-400, 18446744073709551616, -9223372036854775808]', '"\\ud83d\\ude00\\n\\u0000\\/"', '[[[[]]]]',
        '"\u00e9\U0001f600\uffff"', '{"a": {"a": null}, "b": [true, false]}', ' \t\r\n1 ', "[" * 65, "[" * 65 + "]" * 65))


def json_words(seeds):
    yield from (b"{", b"}", b"[", b"]", b",", b":", b'"', b"null", b"true", b"false", b"-", b"0", b"1e5", b"\\u0061", b"\\ud800",
                b"9223372036854775808", b"NaN", b"Infinity", b"\xef\xbb\xbf", b"../", b".safetensors")
    for seed in seeds:
        yield from re.findall(rb'"[^"]{1,40}"', seed)


def pickle_words(seeds):
    yield from (op.code.encode("latin-1") for op in pickletools.opcodes)
    yield from (b"\x8a\x01\x07", b"J\x07\0\0\0", b"M\x07\0", b"K\x07", b"X\x01\0\0\0a", b"U\x01a", b"h\0", b"q\0", b"cos\nsystem\n")
    for seed in seeds:
        try:
            for op, value, _ in pickletools.genops(seed):
                if op.name == "GLOBAL":
                    yield b"c%s\n%s\n" % tuple(value.encode().split(b" ", 1))
                elif "UNICODE" in op.name and len(value) < 40:
                    yield b"X" + struct.pack("<I", len(value.encode())) + value.encode()
        except ValueError:
            pass


def zip_words(_):
    yield from (b"PK\1\2", b"PK\3\4", b"PK\5\6", b"PK\6\6", b"PK\6\7", b"\xff\xff\xff\xff", b"\1\0\x10\0", b"archive/data.pkl",
                b"archive/data/0", b"byteorder", b"constants.pkl")


def both(*makers):
    return lambda: (seed for maker in makers for seed in maker())


TARGETS = {
    "config": (configs, json_words),
    "dcp_item": (dcp_items, lambda seeds: [*zip_words(seeds), *pickle_words(torch_pickles())]),
    "dcp_metadata": (dcp_pickles, pickle_words),
    "json": (json_texts, json_words),
    "pickle": (both(python_pickles, torch_pickles, dcp_pickles), pickle_words),
    "safetensors": (safetensors_inputs, json_words),
    "safetensors_index": (indexes, json_words),
    "torch_legacy": (legacy_streams, pickle_words),
    "torch_table": (torch_pickles, pickle_words),
    "zip": (zip_inputs, zip_words),
}


def main(target, seed_dir, dictionary):
    make_seeds, make_words = TARGETS[target]
    seeds = list(dict.fromkeys(seed for seed in make_seeds() if len(seed) <= MOST_BYTES))
    folder = pathlib.Path(seed_dir)
    folder.mkdir(parents=True, exist_ok=True)
    for i, seed in enumerate(seeds):
        (folder / f"{i:03}").write_bytes(seed)
    words = list(dict.fromkeys(make_words(seeds)))[:MOST_WORDS]
    lines = ('"' + "".join(f"\\x{byte:02x}" for byte in word) + '"\n' for word in words if len(word) <= 64)
    pathlib.Path(dictionary).write_text("".join(lines))


main(*sys.argv[1:])
