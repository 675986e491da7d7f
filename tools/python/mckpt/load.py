"""Loading: tensors of a checkpoint in the memory of a GPU, or of the host, at the speed of the machine.

    weights = mckpt.load("Qwen3-0.6B", device="cuda:0")
    model.load_state_dict(weights.torch(), assign=True)
    mckpt.load("Qwen3-0.6B", rank=1, tp=2)             what rank 1 of a Megatron run has

The memory is freed when neither what load() returned nor any tensor made of it needs it; tensors share blocks of about
1 GiB.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from . import _dlpack, dtypes
from ._call import Handle, call, name_bytes, read_json, settings
from ._library import library
from .conversion import Path
from .progress import Show, watched


def load(
    path: Path,
    device: str = "cuda:0",
    dtype: str | None = None,
    *,
    names: str | None = None,
    threads: int | None = None,
    progress: Show = None,
    **what: Any,
) -> Loaded:
    """Loads the tensors of a checkpoint of any format, or those that the glob `names` matches.

    device: "cpu", "cuda" or "cuda:N". dtype: "bf16", "fp16" or "fp32", for floating-point tensors of 16 bits and more;
    others keep theirs. With `rank`, and tp, ep, pp and the other sizes of a grid, path is a Hugging Face model, and what
    is loaded is what that rank of a Megatron run has, under its names there; further settings are the fields of
    RankToLoad in lib/api/mckpt/load.h, such as params_dtype, vocab_size and hybrid_pattern.

    Ctrl-C ends the work and raises KeyboardInterrupt.
    """
    values = settings({"device": device, "dtype": dtype, "names": names, "threads": threads, **what})

    def work(observer: Any) -> Loaded:
        return Loaded(Handle(call("mckpt_load", name_bytes(path), values, observer), "mckpt_loaded_free"))

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
        device = "cpu" if self._device[0] == _dlpack.CPU else f"cuda:{self._device[1]}"
        return f"<mckpt.LoadedTensor {self.name}: {self.dtype} {list(self.shape)} on {device}>"

    @property
    def data(self) -> int:
        """The address in the memory of the device; 0 if the tensor has no bytes."""
        return library().mckpt_loaded_data(self._handle, self._number) or 0

    def torch(self) -> Any:
        """A torch.Tensor over the same memory."""
        import torch  # type: ignore[import-not-found, unused-ignore]

        dtype = dtypes.torch_dtype(self.dtype)
        if self.nbytes == 0:
            kind, number = self._device
            return torch.empty(self.shape, dtype=dtype, device="cpu" if kind == _dlpack.CPU else f"cuda:{number}")
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


class Loaded(Mapping[str, LoadedTensor]):
    """Tensors that were loaded together, by name, in the order of the files or of the rank's parameters."""

    def __init__(self, handle: Handle) -> None:
        facts = read_json("mckpt_loaded_json", handle)
        self.device: str = facts["device"]  #: as torch names it
        self.nbytes: int = facts["bytes"]  #: of all tensors
        device = (_dlpack.CPU, 0) if self.device == "cpu" else (_dlpack.CUDA, int(self.device.partition(":")[2]))
        self._tensors = {t["name"]: LoadedTensor(handle, i, device, t) for i, t in enumerate(facts["tensors"])}

    def __getitem__(self, name: str) -> LoadedTensor:
        return self._tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<mckpt.Loaded {len(self)} tensors, {self.nbytes:,} bytes on {self.device}>"

    def torch(self) -> dict[str, Any]:
        """All tensors as torch.Tensors over the same memory: a state_dict."""
        return {name: tensor.torch() for name, tensor in self._tensors.items()}
