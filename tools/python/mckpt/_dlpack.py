"""DLPack: memory of this process as a capsule that torch, numpy, jax and others take over without a copy.

A capsule has a DLManagedTensor. Whoever takes it over calls the deleter when the memory is no longer needed; a
capsule that nobody took over does so itself.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import Any

from ._library import library

CPU, CUDA = 1, 2  # kinds of devices
_NAME = b"dltensor"


class _DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Managed(ctypes.Structure):
    """DLManagedTensor, with the fields of DLTensor at its beginning."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_incref = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_IncRef", ctypes.pythonapi))
# Functions of mckpt_python, in its order.
_CALLED_BY_LIBRARY = (
    "PyCapsule_IsValid",
    "PyCapsule_GetPointer",
    "PyErr_Fetch",
    "PyErr_Restore",
    "PyGILState_Ensure",
    "PyGILState_Release",
    "Py_DecRef",
    "Py_IsInitialized",
)


@functools.lru_cache(maxsize=None)
def _ends() -> tuple[int, int]:
    """The addresses of the destructor of capsules and of the deleter. They are functions of the library: memory is also
    given up while an exception is on its way, when no function written in Python can be called."""
    lib = library()
    called = [_address(getattr(ctypes.pythonapi, name)) for name in _CALLED_BY_LIBRARY]
    lib.mckpt_python_set((ctypes.c_void_p * len(called))(*called))
    return _address(lib.mckpt_python_capsule_ends), _address(lib.mckpt_python_deleter)


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def capsule(memory: Any, address: int, code: int, bits: int, shape: Sequence[int]) -> object:
    """`memory` owns the bytes at `address`, which are contiguous, and lives as long as the capsule."""
    dims = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    steps = (ctypes.c_int64 * max(len(shape), 1))()
    step = 1
    for d in reversed(range(len(shape))):
        steps[d] = step
        step *= shape[d]
    managed = _Managed(
        data=address or None,
        device_type=CPU,
        ndim=len(shape),
        dtype=_DataType(code, bits, 1),
        shape=ctypes.cast(dims, ctypes.POINTER(ctypes.c_int64)),
        strides=ctypes.cast(steps, ctypes.POINTER(ctypes.c_int64)),
        deleter=_ends()[1],
    )
    owner = (memory, dims, steps, managed)
    managed.context = id(owner)
    _incref(owner)  # the deleter gives this reference up
    return taken_over(ctypes.addressof(managed))


def give_up(managed: int) -> None:
    """Calls the deleter of a DLManagedTensor that no capsule has."""
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_Managed.from_address(managed).deleter)(managed)


def taken_over(managed: int) -> object:
    """A capsule for a DLManagedTensor, whose deleter it calls if nobody takes it over."""
    made: object = _new(managed, _NAME, _ends()[0])
    return made
