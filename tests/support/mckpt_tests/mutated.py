"""Mutated files: the mutators of tests/fuzz/mutate from Python, and what the library makes of a file, in this process.

    mutate("pickle", data, other, seed)        bytes; the same arguments give the same bytes
    opened(path)                               Opened: tensors with their bytes, or the code of the refusal
"""
import ctypes
import dataclasses
import json
import os
import sys

from mckpt_tests.setting import BUILD, SOURCE

MUTATORS = os.environ.get("MCKPT_MUTATORS") or os.path.join(BUILD, "tests", "support", "libmutators.so")
ROOM = 1 << 20
MOST_READ = 1 << 20  # of one tensor: views may be large in a small file

_room = ctypes.create_string_buffer(ROOM)
_mutate = None


def mutate(kind, data, other, seed):
    """kind: json, pickle, pickles, zip, safetensors, bytes. Nothing where the result has more than 1 MiB."""
    global _mutate
    if _mutate is None:
        _mutate = ctypes.CDLL(MUTATORS).mckpt_mutate
        _mutate.restype = ctypes.c_int64
        _mutate.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int64, ctypes.c_char_p, ctypes.c_int64, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_int64]
    size = _mutate(kind.encode(), data, len(data), other, len(other), seed, _room, ROOM)
    return ctypes.string_at(_room, size) if size >= 0 else None


@dataclasses.dataclass
class Opened:
    """`code`: of the refusal, or of the first problem among the findings; "" where there is none. `tensors`: name -> (dtype, shape, bytes or None where
    they are too many); of the whole file, or of what is left beside the problems."""

    code: str = ""
    text: str = ""
    tensors: dict = dataclasses.field(default_factory=dict)
    warnings: list = dataclasses.field(default_factory=list)


def _library():
    os.environ.setdefault("MCKPT_LIBRARY", os.path.join(BUILD, "libmckpt.so"))
    if (package := os.path.join(SOURCE, "tools", "python")) not in sys.path:
        sys.path.insert(0, package)
    from mckpt._library import Table, library
    lib = library()
    lib.mckpt_error_code.restype, lib.mckpt_error_code.argtypes = ctypes.c_char_p, [ctypes.c_void_p]
    return lib, Table


def _texts(address, size):
    return ctypes.string_at(address, size).decode("utf-8", "surrogateescape").split("\0")[:-1] if size else []


def _taken(lib, error):
    out = lib.mckpt_error_code(error).decode(), lib.mckpt_error_text(error).decode("utf-8", "replace")
    lib.mckpt_error_free(error)
    return out


def _tensors(lib, Table, handle, error):
    table = Table()
    lib.mckpt_tensor_table(handle, ctypes.byref(table), ctypes.byref(error))
    if error:
        return {}
    names, dtypes = _texts(table.names, table.names_bytes), _texts(table.dtypes, table.dtypes_bytes)
    ranks = ctypes.cast(table.ranks, ctypes.POINTER(ctypes.c_int64))
    shapes = ctypes.cast(table.shapes, ctypes.POINTER(ctypes.c_int64))
    sizes = ctypes.cast(table.bytes, ctypes.POINTER(ctypes.c_int64))
    out, at = {}, 0
    for i, name in enumerate(names):
        shape = tuple(shapes[at:at + ranks[i]])
        at += ranks[i]
        data = None
        if sizes[i] <= MOST_READ:
            room = ctypes.create_string_buffer(sizes[i] or 1)
            lib.mckpt_read(handle, name.encode("utf-8", "surrogateescape"), None, room, sizes[i], ctypes.byref(error))
            if error:
                return {}
            data = room.raw[:sizes[i]]
        out[name] = (dtypes[i], shape, data)
    return out


def opened(path):
    lib, Table = _library()
    error = ctypes.c_void_p()
    handle = lib.mckpt_open(os.fsencode(path), None, ctypes.byref(error))
    if error:
        return Opened(*_taken(lib, error))
    try:
        out = Opened()
        pointer = lib.mckpt_checkpoint_json(handle, ctypes.byref(error))
        findings = json.loads(ctypes.string_at(pointer))["findings"]
        lib.mckpt_text_free(pointer)
        out.warnings = [f for f in findings if f["warning"]]
        problems = [f for f in findings if not f["warning"]]
        if problems:
            out.code, out.text = problems[0]["code"], problems[0]["message"]
        out.tensors = _tensors(lib, Table, handle, error)
        if error:
            out.code, out.text = _taken(lib, error)
        return out
    finally:
        lib.mckpt_checkpoint_free(handle)
