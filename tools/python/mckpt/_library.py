"""libmckpt.so: where it is, and its functions as ctypes has to know them.

The first of these places that has the library is taken; with the first one set, no other is looked at:

    $MCKPT_LIBRARY              a file
    mckpt/lib/libmckpt.so       in this package
    ../../libmckpt.so           of the package in an installed folder, lib/python/mckpt
    ../../../build/libmckpt.so  of the package in its source tree, tools/python/mckpt
"""

from __future__ import annotations

import ctypes
import functools
import os
from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t, c_void_p
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
# A pointer whose text the caller frees must not become bytes at once.
OWNED_TEXT = c_void_p
ERROR = POINTER(c_void_p)
SETTINGS = POINTER(c_char_p)


class Observer(ctypes.Structure):
    """mckpt_observer. Only the library fills it in."""

    _fields_ = [("user", c_void_p), ("begin", c_void_p), ("done", c_void_p), ("stop", c_void_p)]


class Table(ctypes.Structure):
    """mckpt_table: pointers into lists that belong to the checkpoint."""

    _fields_ = [
        ("count", c_int64),
        ("names", c_void_p),
        ("names_bytes", c_int64),
        ("dtypes", c_void_p),
        ("dtypes_bytes", c_int64),
        ("ranks", c_void_p),
        ("shapes", c_void_p),
        ("bytes", c_void_p),
        ("in_files", c_void_p),
    ]


class Stretch(ctypes.Structure):
    """mckpt_stretch."""

    _fields_ = [("file", c_char_p), ("offset", c_int64)]


class Plotted(ctypes.Structure):
    """mckpt_plotted."""

    _fields_ = [("sound", c_int), ("bytes", c_int64), ("tensors", c_int64), ("faulty_tensors", c_int64)]


# name: (result, parameters), as lib/api/mckpt/c_*.h declare them.
FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "mckpt_version": (c_char_p, []),
    "mckpt_text_free": (None, [c_void_p]),
    "mckpt_error_text": (c_char_p, [c_void_p]),
    "mckpt_error_json": (OWNED_TEXT, [c_void_p]),
    "mckpt_error_free": (None, [c_void_p]),
    "mckpt_watch_new": (c_void_p, []),
    "mckpt_watch_observer": (Observer, [c_void_p]),
    "mckpt_watch_stop": (None, [c_void_p]),
    "mckpt_watch_json": (OWNED_TEXT, [c_void_p]),
    "mckpt_watch_free": (None, [c_void_p]),
    "mckpt_open": (c_void_p, [c_char_p, SETTINGS, ERROR]),
    "mckpt_open_as_fsdp": (c_void_p, [c_char_p, SETTINGS, ERROR]),
    "mckpt_open_local": (c_void_p, [c_char_p, SETTINGS, ERROR]),
    "mckpt_checkpoint_free": (None, [c_void_p]),
    "mckpt_checkpoint_json": (OWNED_TEXT, [c_void_p, ERROR]),
    "mckpt_writer_json": (OWNED_TEXT, [c_void_p, ERROR]),
    "mckpt_objects_json": (OWNED_TEXT, [c_void_p, ERROR]),
    "mckpt_object_literal": (OWNED_TEXT, [c_void_p, c_char_p, ERROR]),
    "mckpt_tensor_table": (c_int, [c_void_p, POINTER(Table), ERROR]),
    "mckpt_matching": (c_int64, [c_void_p, c_char_p, POINTER(c_int64), ERROR]),
    "mckpt_chunks_json": (OWNED_TEXT, [c_void_p, c_char_p, ERROR]),
    "mckpt_statistics_json": (OWNED_TEXT, [c_void_p, c_char_p, c_int, ERROR]),
    "mckpt_slice_statistics_json": (OWNED_TEXT, [c_void_p, c_char_p, c_char_p, ERROR]),
    "mckpt_digest": (OWNED_TEXT, [c_void_p, c_char_p, ERROR]),
    "mckpt_read_bytes": (c_int64, [c_void_p, c_char_p, c_char_p, ERROR]),
    "mckpt_read": (c_int, [c_void_p, c_char_p, c_char_p, c_void_p, c_int64, ERROR]),
    "mckpt_tensor_stretch": (c_int, [c_void_p, c_char_p, POINTER(Stretch), ERROR]),
    "mckpt_plan": (c_void_p, [c_char_p, SETTINGS, ERROR]),
    "mckpt_prove": (c_int, [c_void_p, c_int, POINTER(Observer), ERROR]),
    "mckpt_run": (c_int, [c_void_p, SETTINGS, POINTER(Observer), ERROR]),
    "mckpt_conversion_free": (None, [c_void_p]),
    "mckpt_conversion_json": (OWNED_TEXT, [c_void_p, ERROR]),
    "mckpt_load": (c_void_p, [c_char_p, SETTINGS, POINTER(Observer), ERROR]),
    "mckpt_loaded_free": (None, [c_void_p]),
    "mckpt_loaded_json": (OWNED_TEXT, [c_void_p, ERROR]),
    "mckpt_loaded_data": (c_void_p, [c_void_p, c_int64]),
    "mckpt_loaded_dlpack": (c_void_p, [c_void_p, c_int64, c_int, c_int, ERROR]),
    "mckpt_python_set": (None, [c_void_p]),
    "mckpt_python_capsule_ends": (None, [c_void_p]),
    "mckpt_python_deleter": (None, [c_void_p]),
    "mckpt_verify": (c_void_p, [c_char_p, SETTINGS, POINTER(Observer), ERROR]),
    "mckpt_report_free": (None, [c_void_p]),
    "mckpt_report_json": (OWNED_TEXT, [c_void_p, ERROR]),
    "mckpt_diff": (c_void_p, [c_char_p, c_char_p, SETTINGS, POINTER(Observer), ERROR]),
    "mckpt_diff_free": (None, [c_void_p]),
    "mckpt_diff_json": (OWNED_TEXT, [c_void_p, ERROR]),
    "mckpt_plot": (c_int, [c_char_p, c_char_p, SETTINGS, POINTER(Observer), POINTER(Plotted), ERROR]),
}


def _path() -> Path:
    named = os.environ.get("MCKPT_LIBRARY")
    if named:
        return Path(named)
    places = [
        HERE / "lib" / "libmckpt.so",
        HERE.parents[1] / "libmckpt.so",
        HERE.parents[2] / "build" / "libmckpt.so",
    ]
    for place in places:
        if place.exists():
            return place
    looked = "\n".join(f"  {place}" for place in places)
    raise ImportError(
        f"libmckpt.so was not found. These places have none:\n{looked}\n"
        "Build it with `cmake --build build --target mckpt_api`, or name the file in the variable MCKPT_LIBRARY."
    )


@functools.lru_cache(maxsize=None)
def library() -> ctypes.CDLL:
    """The library, with the types of its functions. Raises ImportError if it cannot be loaded."""
    path = _path()
    try:
        loaded = ctypes.CDLL(os.fspath(path))
    except OSError as fault:
        raise ImportError(f"libmckpt.so cannot be loaded: {fault}") from fault
    for name, (result, parameters) in FUNCTIONS.items():
        try:
            function = getattr(loaded, name)
        except AttributeError:
            raise ImportError(f"{path} has no function {name}: library and package are of different versions") from None
        function.restype = result
        function.argtypes = parameters
    return loaded


def version() -> str:
    """The version of the library."""
    return str(library().mckpt_version().decode())
