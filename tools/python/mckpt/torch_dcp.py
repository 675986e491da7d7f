"""torch.distributed.checkpoint.load() from everything that mckpt opens.

    import torch.distributed.checkpoint as dcp

    dcp.load(model.state_dict(), storage_reader=mckpt.torch_dcp.StorageReader("Qwen3-0.6B"))

torch plans which part of which tensor each rank needs, and asks for boxes of whole tensors; mckpt reads the bytes of
these boxes alone, whatever pieces the files store. Names have to be the checkpoint's. Nothing in a file is
executed: objects other than tensors give plain values, such as the values of an optimizer's groups.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable
from typing import Any

import torch  # type: ignore[import-not-found, unused-ignore]
from torch.distributed.checkpoint import metadata as dcp_metadata  # type: ignore[import-not-found, unused-ignore]
from torch.distributed.checkpoint import planner as dcp_planner  # type: ignore[import-not-found, unused-ignore]
from torch.distributed.checkpoint import storage as dcp_storage  # type: ignore[import-not-found, unused-ignore]
from torch.futures import Future  # type: ignore[import-not-found, unused-ignore]

from . import dtypes
from .checkpoint import Checkpoint
from .checkpoint import open as open_checkpoint
from .tensor import Tensor

Path = str | os.PathLike[str]


class StorageReader(dcp_storage.StorageReader):  # type: ignore[misc, unused-ignore]
    """Reads a checkpoint of any format for torch.distributed.checkpoint.load().

    source: a path, or an open checkpoint such as a view of open_as_fsdp(), which stays open.
    keep_objects: everything that is not a tensor keeps the value that it has in the state dict. Otherwise
    plain values are the checkpoint's, and loading any other object raises TypeError.
    """

    def __init__(self, source: Path | Checkpoint, *, keep_objects: bool = False) -> None:
        super().__init__()
        # Here and not in read_metadata(), whose exceptions torch hides.
        self.checkpoint = source if isinstance(source, Checkpoint) else open_checkpoint(source)
        self._keep_objects = keep_objects

    # The methods that torch calls, in this order.

    def reset(self, checkpoint_id: Path | None = None) -> None:
        if checkpoint_id is not None:
            self.checkpoint = open_checkpoint(checkpoint_id)

    def read_metadata(self, *args: Any, **kwargs: Any) -> dcp_metadata.Metadata:
        checkpoint = self.checkpoint
        entries: dict[str, Any] = {o.name: dcp_metadata.BytesStorageMetadata() for o in checkpoint.objects()}
        entries.update((name, _entry(tensor)) for name, tensor in checkpoint.items())
        # torch rebuilds nested state dicts along these paths; here no name is taken apart.
        return dcp_metadata.Metadata(entries, planner_data={name: (name,) for name in entries})

    def set_up_storage_reader(
        self, metadata: dcp_metadata.Metadata, is_coordinator: bool, *args: Any, **kwargs: Any
    ) -> None:
        pass

    def prepare_local_plan(self, plan: dcp_planner.LoadPlan) -> dcp_planner.LoadPlan:
        return plan

    def prepare_global_plan(self, plans: list[dcp_planner.LoadPlan]) -> list[dcp_planner.LoadPlan]:
        return plans

    def read_data(self, plan: dcp_planner.LoadPlan, planner: dcp_planner.LoadPlanner) -> Future[None]:
        checkpoint = self.checkpoint
        for item in _by_file(checkpoint, plan.items):
            name = item.storage_index.fqn
            if name in checkpoint and item.type == dcp_planner.LoadItemType.TENSOR:
                _read(checkpoint[name], item, planner)
            elif name in checkpoint:
                dtypes.torch_dtype(checkpoint[name].dtype)  # raises for what torch does not have
                raise TypeError(f"'{name}' is a tensor in {checkpoint.path}, and something else in the state dict")
            elif not self._keep_objects:
                planner.load_bytes(item, _saved(checkpoint.object(name)))
        done: Future[None] = Future()
        done.set_result(None)
        return done

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Path) -> bool:
        return os.path.exists(checkpoint_id)


def _entry(tensor: Tensor) -> Any:
    """The facts that torch needs of a tensor: one piece that is all of it, so that it asks for boxes of the
    whole."""
    try:
        dtype = dtypes.torch_dtype(tensor.dtype)
    except TypeError:
        return dcp_metadata.BytesStorageMetadata()  # read_data() refuses it by name, if it is asked for
    size = torch.Size(tensor.shape)
    whole = dcp_metadata.ChunkStorageMetadata(offsets=torch.Size([0] * tensor.ndim), sizes=size)
    return dcp_metadata.TensorStorageMetadata(dcp_metadata.TensorProperties(dtype=dtype), size, [whole])


def _by_file(checkpoint: Checkpoint, items: Iterable[Any]) -> list[Any]:
    """In the order of the files, in which a disk reads them fastest; what is not a tensor comes last."""
    places = {name: place for place, (name, _) in enumerate(checkpoint.in_file_order())}
    return sorted(items, key=lambda item: places.get(item.storage_index.fqn, len(places)))


def _read(tensor: Tensor, item: Any, planner: Any) -> None:
    box = tuple(slice(begin, begin + length) for begin, length in zip(item.storage_offsets, item.lengths))
    part = tensor[box] if box else tensor
    target = planner.resolve_tensor(item).detach()
    if tuple(target.shape) != part.shape:
        raise ValueError(f"'{tensor.name}': the state dict has a place for {list(target.shape)}, not {list(part.shape)}")
    if _takes_bytes(target, part):
        part._read_to(target.data_ptr())
    else:
        target.copy_(part.torch())
    planner.commit_tensor(item, target)


def _takes_bytes(target: torch.Tensor, part: Tensor) -> bool:
    """Whether the bytes of the part can be read to where the target has its own."""
    plain = target.device.type == "cpu" and target.is_contiguous() and not target.is_conj() and not target.is_neg()
    return plain and target.dtype == dtypes.torch_dtype(part.dtype)


def _saved(value: Any) -> io.BytesIO:
    """As planners expect it. They run what they load: here it was made of a plain value in this process."""
    to = io.BytesIO()
    torch.save(value, to)
    to.seek(0)
    return to
