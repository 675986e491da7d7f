"""Loading: tensors of a checkpoint in the memory of a GPU, or of the host, at the speed of the machine.

    weights = mckpt.load("Qwen3-0.6B", device="cuda:0")
    model.load_state_dict(weights.torch(), assign=True)
    mckpt.load("Qwen3-0.6B", rank=1, tp=2)             what rank 1 of a Megatron run has

The memory is freed when neither what load() returned nor any tensor made of it needs it; tensors share blocks of about
1 GiB.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Iterator, Mapping
from math import prod
from types import TracebackType
from typing import TYPE_CHECKING, Any

from . import _dlpack, _html, dtypes
from ._call import Handle, Path, call, name_bytes, read_json, settings
from ._library import library
from .errors import no_such_tensor
from .progress import Show, watched
from .settings import LOAD, DType, LoadSettings, Unpack, lists
from .values import counted

if TYPE_CHECKING:
    import torch  # type: ignore[import-not-found, unused-ignore]


@lists(LOAD)
def load(
    path: Path,
    device: str | torch.device = "cuda:0",
    dtype: DType = None,
    *,
    names: str | None = None,
    threads: int | None = None,
    progress: Show = None,
    **what: Unpack[LoadSettings],
) -> Loaded:
    """Loads the tensors of a checkpoint of any format, or those that the glob `names` matches.

    device: "cpu", "cuda", "cuda:N" or a torch.device. dtype: "bf16", "fp16" or "fp32", as torch spells them or a
    torch.dtype, for floating-point tensors of 16 bits and more; others keep theirs. With a dtype the weights of a quantised
    model are loaded as their values; without one as they are stored, codes and scales apart. threads: how many
    read; unless it is set as many as there are processors, and for a GPU eight, and more while it waits for them. progress: see Conversion.run().

    With `rank`, and tp, ep, pp and the other sizes of a grid, path is a Hugging Face model, and what is loaded is what
    that rank of a Megatron run has, under its names there. All settings but follow_links and model_files belong to it.

    Ctrl-C ends the work and raises KeyboardInterrupt.
    """
    values = settings({"device": device, "dtype": dtype, "names": names, "threads": threads, **what})

    def work(observer: Any) -> Loaded:
        return Loaded(os.fsdecode(path), Handle(call("mckpt_load", name_bytes(path), values, observer), "mckpt_loaded_free"))

    loaded: Loaded = watched(work, progress)
    return loaded


class LoadedTensor:
    """A tensor in the memory of a device: row-major, contiguous, and free to be written to."""

    __slots__ = ("_device", "_handle", "_number", "dtype", "name", "nbytes", "shape")

    def __init__(self, handle: Handle, number: int, device: tuple[int, int], facts: dict[str, Any]) -> None:
        self._handle = handle
        self._number = number
        self._device = device
        self.name: str = facts["name"]
        self.dtype: str = facts["dtype"]  #: as torch spells it
        self.shape: tuple[int, ...] = tuple(facts["shape"])
        self.nbytes: int = facts["bytes"]

    def __repr__(self) -> str:
        return f"<mckpt.LoadedTensor {self.name}: {self.dtype} {list(self.shape)} on {self.device}>"

    def _repr_html_(self) -> str:
        return _html.table(self.name, [*dtypes.facts_of(self.dtype, self.shape, self.nbytes), ("device", self.device)])

    @property
    def device(self) -> str:
        """As torch names it."""
        return "cpu" if self._device[0] == _dlpack.CPU else f"cuda:{self._device[1]}"

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of items."""
        return prod(self.shape)

    @property
    def data(self) -> int:
        """The address in the memory of the device; 0 if the tensor has no bytes."""
        return library().mckpt_loaded_data(self._handle, self._number) or 0

    def numpy(self, raw: bool = False, *, copy: bool = False) -> Any:
        """A numpy.ndarray over the same memory, which has to be the host's. raw: the bits as unsigned numbers
        of the same size (for items that have no such size: the bytes), for types that numpy does not have.
        copy: memory of its own."""
        import numpy  # type: ignore[import-not-found, unused-ignore]

        self._require_host()
        bits = dtypes.raw_dtype(self.dtype) if raw else None
        dtype = bits or "u1" if raw else dtypes.numpy_dtype(self.dtype)
        shape = (-1,) if raw and not bits else self.shape
        if self.nbytes == 0:
            return numpy.empty(0 if shape == (-1,) else shape, dtype=dtype)
        values = numpy.asarray(_Held(self)).view(dtype).reshape(shape)
        return values.copy() if copy else values

    def tobytes(self) -> bytes:
        """The values one after the other, in row-major order, little-endian."""
        self._require_host()
        return ctypes.string_at(self.data, self.nbytes) if self.nbytes else b""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        values = self.numpy()
        if dtype is not None and values.dtype != dtype:
            if copy is False:
                raise ValueError(f"tensor '{self.name}' has the type {self.dtype}: an array of another type is a copy")
            return values.astype(dtype)
        return values.copy() if copy else values

    def _require_host(self) -> None:
        if self._device[0] != _dlpack.CPU:
            raise TypeError(f"tensor '{self.name}' is in the memory of {self.device}: torch().cpu() copies it to the host")

    def torch(self) -> Any:
        """A torch.Tensor over the same memory."""
        import torch  # type: ignore[import-not-found, unused-ignore]

        dtype = dtypes.torch_dtype(self.dtype)
        if self.nbytes == 0:
            return torch.empty(self.shape, dtype=dtype, device=self.device)
        if dtypes.item_bits(self.dtype) > 8 or self.dtype in ("uint8", "int8"):
            return torch.utils.dlpack.from_dlpack(self.__dlpack__())
        # Not every version of torch takes the small types by DLPack.
        return torch.utils.dlpack.from_dlpack(self._capsule(1, 8)).view(dtype).reshape(self.shape)

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> object:
        if dl_device is not None and tuple(dl_device) != self._device:
            raise BufferError(f"tensor '{self.name}' is on another device")
        if copy:
            raise BufferError(f"the memory of tensor '{self.name}' is passed on as it is, without a copy")
        return self._capsule(dtypes.dlpack_code(self.dtype), dtypes.item_bits(self.dtype))

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device

    def _capsule(self, code: int, bits: int) -> object:
        return _dlpack.taken_over(call("mckpt_loaded_dlpack", self._handle, self._number, code, bits))


class _Held:
    """The bytes of a tensor as numpy takes them over: an array of them keeps this, and this the memory."""

    def __init__(self, tensor: LoadedTensor) -> None:
        managed = call("mckpt_loaded_dlpack", tensor._handle, tensor._number, 1, 8)
        weakref.finalize(self, _dlpack.give_up, managed).atexit = False
        self.__array_interface__ = {"version": 3, "typestr": "|u1", "shape": (tensor.nbytes,), "data": (tensor.data, False)}


class Loaded(Mapping[str, LoadedTensor]):
    """Tensors that were loaded together, by name, in the order of the files or of the rank's parameters. `with` gives
    them up at its end, like close()."""

    def __init__(self, path: str, handle: Handle) -> None:
        self._path = path
        self._closed = False
        facts = read_json("mckpt_loaded_json", handle)
        self.device: str = facts["device"]  #: as torch names it
        self.nbytes: int = facts["bytes"]  #: of all tensors
        device = (_dlpack.CPU, 0) if self.device == "cpu" else (_dlpack.CUDA, int(self.device.partition(":")[2]))
        self._tensors = {t["name"]: LoadedTensor(handle, i, device, t) for i, t in enumerate(facts["tensors"])}

    def __getitem__(self, name: str) -> LoadedTensor:
        tensor = self._tensors.get(name)
        if tensor is None:
            self._require_open()
            raise no_such_tensor(self._path, name, self._tensors)
        return tensor

    def _require_open(self) -> None:
        if self._closed:
            raise ValueError(f"the tensors of {self._path} were given up")

    def __contains__(self, name: object) -> bool:
        return name in self._tensors

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def close(self) -> None:
        """Gives the tensors up. Their memory is freed when nothing that was made of them needs it."""
        self._tensors = {}
        self._closed = True

    def __enter__(self) -> Loaded:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        if self._closed:
            return f"<mckpt.Loaded {self._path}: given up>"
        return f"<mckpt.Loaded {counted(len(self), 'tensor')}, {self.nbytes:,} bytes on {self.device}>"

    def _repr_html_(self) -> str:
        rows = [(t.name, t.dtype, list(t.shape), f"{t.nbytes:,}") for t in self.values()]
        return _html.table(repr(self), rows, ("tensor", "dtype", "shape", "bytes"))

    def torch(self) -> dict[str, Any]:
        """All tensors as torch.Tensors over the same memory: a state_dict."""
        self._require_open()
        return {name: tensor.torch() for name, tensor in self._tensors.items()}
