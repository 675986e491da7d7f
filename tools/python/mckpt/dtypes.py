"""The types of tensors, under the names that torch has for them, and what numpy and DLPack have for them."""

from __future__ import annotations

import functools
from typing import Any

# Types with items of other sizes than a byte, in bits.
_BITS = {
    **dict.fromkeys(["float4_e2m1fn"], 4),
    **dict.fromkeys(["float6_e2m3fn", "float6_e3m2fn"], 6),
    **dict.fromkeys(["uint16", "int16", "float16", "bfloat16", "bits16"], 16),
    **dict.fromkeys(["uint32", "int32", "float32", "complex32", "qint32"], 32),
    **dict.fromkeys(["uint64", "int64", "float64", "complex64"], 64),
    "complex128": 128,
}

_NUMPY = {
    "bool": "?",
    "uint8": "u1",
    "int8": "i1",
    "uint16": "<u2",
    "int16": "<i2",
    "uint32": "<u4",
    "int32": "<i4",
    "uint64": "<u8",
    "int64": "<i8",
    "float16": "<f2",
    "float32": "<f4",
    "float64": "<f8",
    "complex64": "<c8",
    "complex128": "<c16",
}

# Types that the package ml_dtypes adds to numpy, under the same names.
_ML_DTYPES = {
    "bfloat16",
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
}

# The type codes of DLPack 1.1.
_DLPACK = {
    **dict.fromkeys(["int8", "int16", "int32", "int64"], 0),
    **dict.fromkeys(["uint8", "uint16", "uint32", "uint64"], 1),
    **dict.fromkeys(["float16", "float32", "float64"], 2),
    "bfloat16": 4,
    **dict.fromkeys(["complex32", "complex64", "complex128"], 5),
    "bool": 6,
    "float8_e4m3fn": 10,
    "float8_e4m3fnuz": 11,
    "float8_e5m2": 12,
    "float8_e5m2fnuz": 13,
    "float8_e8m0fnu": 14,
}


def item_bits(dtype: str) -> int:
    return _BITS.get(dtype, 8)


def numpy_dtype(dtype: str) -> Any:
    """The numpy.dtype. Raises TypeError for a type that numpy does not have here."""
    import numpy  # type: ignore[import-not-found, unused-ignore]

    if dtype in _NUMPY:
        return numpy.dtype(_NUMPY[dtype])
    advice = "torch() has the type, and numpy(raw=True) gives the bits as unsigned numbers"
    if dtype in _ML_DTYPES:
        try:
            import ml_dtypes  # type: ignore[import-not-found, unused-ignore]
        except ImportError:
            raise TypeError(f"numpy has no type {dtype} without the package ml_dtypes: {advice}") from None
        if hasattr(ml_dtypes, dtype):
            return numpy.dtype(getattr(ml_dtypes, dtype))
    raise TypeError(f"numpy has no type {dtype}: {advice}")


def raw_dtype(dtype: str) -> str | None:
    """The unsigned numpy type whose items are as long; None if there is none."""
    return {8: "u1", 16: "<u2", 32: "<u4", 64: "<u8"}.get(item_bits(dtype))


@functools.lru_cache(maxsize=None)
def torch_dtype(dtype: str) -> Any:
    """The torch.dtype. Raises TypeError for a type that torch does not have, or of which it cannot make tensors."""
    import torch  # type: ignore[import-not-found, unused-ignore]

    found = getattr(torch, dtype, None)
    if not isinstance(found, torch.dtype) or dtype.startswith(("qint", "quint")):
        raise TypeError(f"torch cannot make a tensor of the type {dtype}: tobytes() gives its bytes")
    return found


def facts_of(dtype: str, shape: tuple[int, ...], nbytes: int) -> list[tuple[str, str]]:
    """The rows that a notebook shows of a tensor."""
    return [("dtype", dtype), ("shape", str(list(shape))), ("bytes", f"{nbytes:,}")]


def dlpack_code(dtype: str) -> int:
    if dtype not in _DLPACK:
        raise BufferError(f"DLPack has no type {dtype}: tobytes() gives the bytes")
    return _DLPACK[dtype]
