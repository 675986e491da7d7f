"""Tensors of an open checkpoint, or parts of them. Nothing is read before a function asks for the values.

    t = ckpt["model.embed_tokens.weight"]     bfloat16 [151936, 1024]
    t[:16, 0]                                 a part: bfloat16 [16]
    t[:16].torch()                            reads 16 rows

Where a file has the bytes exactly as they are read, they are mapped instead of read: the memory is private, writing
to it does not change the file, and pages that are not touched are never loaded. A page that is touched after the file
was cut off ends the program with SIGBUS: numpy(copy=True), torch(copy=True) and tobytes() have memory of their own.
"""

from __future__ import annotations

import ctypes
import hashlib
import mmap
import os
from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING, Any, Union

from . import _dlpack, _html, dtypes
from ._call import Handle, call, name_bytes, read_json, read_text, threads_for_c
from ._library import Stretch
from .values import Chunk, Statistics, chunk, statistics

if TYPE_CHECKING:
    from .checkpoint import Checkpoint

# Smaller tensors are read, because a process may have some 65,000 mappings only.
MAPPED_FROM = 1 << 16

# The part that is taken of a dimension of the whole tensor: an index, which removes the dimension, or a
# range.
_Taken = Union[int, range]


class Tensor:
    """A tensor, or a part of one."""

    __slots__ = ("_checkpoint", "_some", "_whole", "dtype", "name", "nbytes", "shape")

    name: str
    dtype: str  #: as torch spells it
    shape: tuple[int, ...]
    nbytes: int  #: of the values, one after the other

    def __init__(
        self,
        checkpoint: Checkpoint,
        name: str,
        dtype: str,
        whole: tuple[int, ...],
        nbytes: int,
        taken: tuple[_Taken, ...] | None = None,
    ) -> None:
        self._checkpoint = checkpoint
        self._whole = whole
        self._some = taken  # None: all of it, which is not worked out for every tensor of a checkpoint
        self.name = name
        self.dtype = dtype
        self.shape = whole
        self.nbytes = nbytes
        if taken is not None:
            self.shape = tuple(len(part) for part in taken if isinstance(part, range))
            self.nbytes = nbytes if self._is_whole() else self.size * dtypes.item_bits(dtype) // 8

    @property
    def _taken(self) -> tuple[_Taken, ...]:
        return tuple(range(size) for size in self._whole) if self._some is None else self._some

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of items."""
        return prod(self.shape)

    def __repr__(self) -> str:
        return f"<mckpt.Tensor {self.name}: {self.dtype} {list(self.shape)}>"

    def _repr_html_(self) -> str:
        return _html.table(self.name, dtypes.facts_of(self.dtype, self.shape, self.nbytes))

    # Parts.

    def __getitem__(self, key: Any) -> Tensor:
        """A part, as Python's slices name it, without steps: t[0:4, :3], t[-1], t[..., 0]."""
        self._checkpoint._opened()
        keys = key if isinstance(key, tuple) else (key,)
        if any(k is Ellipsis for k in keys):
            at = next(i for i, k in enumerate(keys) if k is Ellipsis)
            if any(k is Ellipsis for k in keys[at + 1 :]):
                raise IndexError("a slice can have only one ellipsis ('...')")
            missing = self.ndim - (len(keys) - 1)
            keys = keys[:at] + (slice(None),) * missing + keys[at + 1 :]
        if len(keys) > self.ndim:
            raise IndexError(f"too many indexes: tensor '{self.name}' has {self.ndim} dimensions here, not {len(keys)}")
        left = iter(keys)
        taken = tuple(
            part if isinstance(part, int) else self._chosen(part, next(left, slice(None))) for part in self._taken
        )
        return Tensor(self._checkpoint, self.name, self.dtype, self._whole, self._whole_bytes(), taken)

    def _chosen(self, part: range, key: Any) -> _Taken:
        if isinstance(key, slice):
            if key.step is not None and key.step != 1:
                raise ValueError(f"a slice of tensor '{self.name}' has the step {key.step}: only parts without steps can be read")
            begin, end, _ = key.indices(len(part))
            return part[begin : max(begin, end)]
        if not isinstance(key, bool) and hasattr(key, "__index__"):
            index: int = key.__index__()
            if not -len(part) <= index < len(part):
                raise IndexError(f"the index {index} is outside a dimension of {len(part)} of tensor '{self.name}'")
            return part[index]
        raise TypeError(f"a part of a tensor is named by whole numbers and slices, not by {type(key).__name__}")

    def __iter__(self) -> Iterator[Tensor]:
        if not self.shape:
            raise TypeError(f"tensor '{self.name}' has no dimensions to go through")
        return (self[i] for i in range(self.shape[0]))

    def _is_whole(self) -> bool:
        if self._some is None:
            return True
        return all(isinstance(part, range) and len(part) == size for part, size in zip(self._some, self._whole))

    def _whole_bytes(self) -> int:
        return -(-prod(self._whole) * dtypes.item_bits(self.dtype) // 8)

    # Values.

    def numpy(self, raw: bool = False, *, copy: bool = False) -> Any:
        """A numpy.ndarray that the caller may write to. raw: the bits as unsigned numbers of the same size (of items
        that have no such size: the bytes), for types that numpy does not have. copy: the bytes are read, never mapped
        from the file: a file that is cut off later is of no concern (see mckpt.open)."""
        import numpy  # type: ignore[import-not-found, unused-ignore]

        if not raw:
            dtype = dtypes.numpy_dtype(self.dtype)
            return numpy.frombuffer(self._memory(copy), dtype=dtype).reshape(self.shape)
        bits = dtypes.raw_dtype(self.dtype)
        values = numpy.frombuffer(self._memory(copy), dtype=bits or "u1")
        return values.reshape(self.shape) if bits else values

    def torch(self, *, copy: bool = False) -> Any:
        """A torch.Tensor in the memory of the host. copy: as in numpy()."""
        import torch  # type: ignore[import-not-found, unused-ignore]

        dtype = dtypes.torch_dtype(self.dtype)
        if self.nbytes == 0:
            self._checkpoint._opened()
            return torch.empty(self.shape, dtype=dtype)
        return torch.frombuffer(self._memory(copy), dtype=dtype).reshape(self.shape)

    def tobytes(self) -> bytes:
        """The values one after the other, in row-major order, little-endian. They are read, never mapped."""
        return bytes(self._memory(copy=True))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if copy is False:
            raise ValueError(f"tensor '{self.name}' is in a file: an array of it is always new memory")
        values = self.numpy(copy=bool(copy))
        return values if dtype is None else values.astype(dtype, copy=False)

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> object:
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError("a tensor of a checkpoint can be had in the memory of the host only")
        code = dtypes.dlpack_code(self.dtype)
        memory = self._memory(bool(copy))
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory)) if self.nbytes else 0
        return _dlpack.capsule(memory, address, code, dtypes.item_bits(self.dtype), self.shape)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (_dlpack.CPU, 0)

    # Facts.

    def chunks(self) -> list[Chunk]:
        """The stored pieces; of a part, those that have items of it. Their boxes are parts of the whole tensor."""
        stored = [chunk(c) for c in read_json("mckpt_chunks_json", *self._asked())["chunks"]]
        return stored if self._is_whole() else [c for c in stored if self._meets(c)]

    def _meets(self, stored: Chunk) -> bool:
        boxes = zip(self._taken, stored.offsets, stored.sizes)
        taken = ((part if isinstance(part, range) else range(part, part + 1), at, size) for part, at, size in boxes)
        return all(max(part.start, at) < min(part.stop, at + size) for part, at, size in taken)

    def digest(self) -> str:
        """SHA-256 of the bytes, as tobytes() gives them, in hexadecimal digits."""
        if self._is_whole():
            return read_text("mckpt_digest", *self._asked())
        return hashlib.sha256(self._memory()).hexdigest()

    def statistics(self, threads: int = 1) -> Statistics:
        """The statistics of the numbers. The numbers of a part are read by one thread, whatever `threads`
        is."""
        if self._is_whole():
            return statistics(read_json("mckpt_statistics_json", *self._asked(), threads_for_c(threads)))
        return statistics(read_json("mckpt_slice_statistics_json", *self._asked(), self._slice_text().encode()))

    def _asked(self) -> tuple[Handle, bytes]:
        return self._checkpoint._opened(), name_bytes(self.name)

    # Memory.

    def _memory(self, copy: bool = False) -> Any:
        """A writable buffer of nbytes bytes with the values, which belongs to the caller alone. copy: it is not mapped."""
        handle, name = self._asked()
        if self.nbytes >= MAPPED_FROM and self.nbytes > 0 and not copy:
            mapped = self._mapped(handle, name)
            if mapped is not None:
                return mapped
        memory = bytearray(self.nbytes)
        self._read_to(ctypes.addressof((ctypes.c_char * self.nbytes).from_buffer(memory)))
        return memory

    def _read_to(self, address: int) -> None:
        """Reads the values to nbytes bytes of memory, which the caller owns."""
        call("mckpt_read", *self._asked(), self._slice_text().encode(), address, self.nbytes)

    def _slice_text(self) -> str:
        if self._is_whole():
            return ""
        texts = [str(p) if isinstance(p, int) else f"{p.start}:{p.stop}" for p in self._taken]
        return f"[{', '.join(texts)}]"

    def _first_byte(self) -> int | None:
        """The range of the part, in the bytes of the whole tensor; None if the part is not one piece of
        them."""
        bits = dtypes.item_bits(self.dtype)
        if self._is_whole():
            return 0
        if bits % 8:
            return None
        item, step, several = 0, 1, True  # several: the dimensions behind are taken whole
        for part, size in zip(reversed(self._taken), reversed(self._whole)):
            length = len(part) if isinstance(part, range) else 1
            if not several and length != 1:
                return None
            several = several and length == size
            item += (part.start if isinstance(part, range) else part) * step
            step *= size
        return item * bits // 8

    def _mapped(self, handle: Handle, name: bytes) -> Any:
        first = self._first_byte()
        if first is None:
            return None
        stretch = Stretch()
        call("mckpt_tensor_stretch", handle, name, ctypes.byref(stretch))
        if stretch.file is None:
            return None
        begin = stretch.offset + first
        # Not every library can work with items at odd addresses.
        if begin % min(max(dtypes.item_bits(self.dtype) // 8, 1), 8):
            return None
        before = begin % mmap.ALLOCATIONGRANULARITY
        try:
            file = os.open(stretch.file, os.O_RDONLY | os.O_CLOEXEC)
            try:
                pages = mmap.mmap(file, before + self.nbytes, access=mmap.ACCESS_COPY, offset=begin - before)
            finally:
                os.close(file)
        except (OSError, ValueError):  # too many mappings, or a file that has become shorter: reading says more
            return None
        return memoryview(pages)[before:]
