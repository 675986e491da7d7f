"""DLPack: memory of this process as a capsule that torch, numpy, jax and others take over without a copy.

A capsule has a DLManagedTensor. Whoever takes it over calls the deleter when the memory is no longer needed; a
capsule that nobody took over does so itself.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

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


# What belongs to a capsule, by the address of its structure: it must live until the deleter is called.
_alive: dict[int, tuple[Any, ...]] = {}


def _forget(address: int) -> None:
    _alive.pop(address, None)


# Callers need not hold the interpreter's lock.
_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_delete = _DELETER(_forget)


_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)
# The capsule is being deleted, so that it must not become an object of Python again: it stays an address.
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def _forget_capsule(address: int) -> None:
    if _is_valid(address, _NAME):  # who takes it over gives it another name
        managed = _pointer(address, _NAME)
        _DELETER(_Managed.from_address(managed).deleter)(managed)


_capsule_ends = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_forget_capsule)


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
        deleter=ctypes.cast(_delete, ctypes.c_void_p),
    )
    where = ctypes.addressof(managed)
    _alive[where] = (memory, dims, steps, managed)
    return taken_over(where)


def taken_over(managed: int) -> object:
    """A capsule for a DLManagedTensor, whose deleter it calls if nobody takes it over."""
    made: object = _new(managed, _NAME, ctypes.cast(_capsule_ends, ctypes.c_void_p))
    return made
