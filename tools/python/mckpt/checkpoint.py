"""Checkpoints: a mapping from names to tensors, for every format that mckpt opens."""

from __future__ import annotations

import ast
import ctypes
from array import array
from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from types import TracebackType
from typing import Any

from . import _html
from ._call import Handle, Path, call, name_bytes, read_json, settings, shown_path, taken_text
from ._library import Table
from .errors import not_allowed
from .settings import SOURCE, ModelFiles, SourceSettings, Unpack, lists
from .tensor import Tensor
from .values import Finding, Object, counted


def open(
    path: Path,
    *,
    local: bool = False,
    follow_links: bool = False,
    model_files: ModelFiles = None,
    base: Path | None = None,
) -> Checkpoint:
    """Opens a file or a folder of any format. No tensor is read.

    Values of its tensors may be memory that is mapped from the files: a program that touches it after such a file was
    cut off, or after a network file system has lost it, ends with the signal SIGBUS, as with every mapping. Where files
    may change, numpy(copy=True), torch(copy=True) and tobytes() read the bytes instead, and raise an Error.

    local: open one rank's file with the shapes that the rank had in memory, so that what it has can be read; Checkpoint.shard
    says where that is in the whole tensors. follow_links: follow links that lead out of the checkpoint's folder. model_files: which weights are read of a folder with
    model.safetensors and an index that does not name it: equal, single or shards. base: the Hugging Face model that an adapter of PEFT
    (LoRA) changes: the adapter's folder is read as that model with it merged.
    """
    function = "mckpt_open_local" if local else "mckpt_open"
    return Checkpoint(function, path, {"follow_links": follow_links, "model_files": model_files, "base": base})


@lists(SOURCE)
def open_as_fsdp(path: Path, **source: Unpack[SourceSettings]) -> Checkpoint:
    """A view of a sharded checkpoint under the names of fsdp_dtensor, whatever its format on disk."""
    return Checkpoint("mckpt_open_as_fsdp", path, source)


def tensors(path: Path, glob: str | None = None) -> Iterator[tuple[str, Tensor]]:
    """The tensors of a checkpoint in the order of its files, in which reading them is fastest. The checkpoint is open as
    long as one of its tensors, or what this returns, is needed."""
    return open(path).in_file_order(glob)


class Checkpoint(Mapping[str, Tensor]):
    """An open checkpoint. All threads may use it. Once it is closed its names are left, and asking for a tensor or for the
    values of one is a ValueError; arrays that were made of them before live on."""

    def __init__(self, function: str, path: Path, values: Mapping[str, Any]) -> None:
        handle = Handle(call(function, name_bytes(path), settings(values)), "mckpt_checkpoint_free")
        self._handle: Handle | None = handle
        table = Table()
        call("mckpt_tensor_table", handle, ctypes.byref(table))
        self._names = _texts(table.names, table.names_bytes)
        self._dtypes = _texts(table.dtypes, table.dtypes_bytes)
        self._bytes = _numbers(table.bytes, table.count)
        self._in_files = _numbers(table.in_files, table.count)
        ranks = _numbers(table.ranks, table.count)
        dims = _numbers(table.shapes, sum(ranks))
        self._shapes: list[tuple[int, ...]] = []
        at = 0
        for rank in ranks:
            self._shapes.append(tuple(dims[at : at + rank]))
            at += rank
        self._numbers = {name: number for number, name in enumerate(self._names)}
        facts = read_json("mckpt_checkpoint_json", handle)
        self._findings = facts["findings"]
        self._writer: dict[str, Any] | None = None  # read when it is asked for
        self.path: str = facts["path"]  #: what was opened, behind a tracker file
        self.format: str = facts["format"]  #: for people: "safetensors", "DCP fsdp_dtensor"
        self.ranks: int = facts["ranks"]  #: that wrote it; 1 if the format does not say so
        self.facts: dict[str, str] = facts["facts"]  #: of the format: {"iteration": "10"}

    # The mapping.

    def __getitem__(self, name: str) -> Tensor:
        number = self._numbers.get(name)
        if number is None:
            # The library's error has the nearest name.
            call("mckpt_read_bytes", self._opened(), name_bytes(name), None)
            raise KeyError(name)
        return self._tensor(number)

    def _tensor(self, number: int) -> Tensor:
        self._opened()
        return Tensor(self, self._names[number], self._dtypes[number], self._shapes[number], self._bytes[number])

    # The methods of Mapping would look every name up again.

    def items(self) -> ItemsView[str, Tensor]:
        return {name: self._tensor(number) for number, name in enumerate(self._names)}.items()

    def values(self) -> ValuesView[Tensor]:
        return dict(self.items()).values()

    def __contains__(self, name: object) -> bool:
        return name in self._numbers

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    # A checkpoint is itself, and not equal to another one that has the same names.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        tensors = counted(len(self), "tensor")
        return f"<mckpt.Checkpoint {shown_path(self.path)}: {self.format}, {tensors}{'' if self._handle else ', closed'}>"

    def _repr_html_(self) -> str:
        opened = self.values() if self._handle else ()
        rows = [(t.name, t.dtype, list(t.shape), f"{t.nbytes:,}") for t in opened]
        return _html.table(repr(self), rows, ("tensor", "dtype", "shape", "bytes"))

    def names(self, glob: str | None = None) -> list[str]:
        """The names of all tensors, or of those that the glob matches as a whole; layers.2 before layers.10."""
        return list(self._names) if glob is None else [self._names[number] for number in self._matching(glob)]

    def _matching(self, glob: str) -> list[int]:
        if not glob:  # the library would choose all
            raise not_allowed("glob", "a glob; without one all tensors are chosen", glob)
        found = (ctypes.c_int64 * max(len(self), 1))()
        count = call("mckpt_matching", self._opened(), name_bytes(glob), found)
        return found[:count]

    def in_file_order(self, glob: str | None = None) -> Iterator[tuple[str, Tensor]]:
        """Names and tensors by file, and by their places in the files."""
        chosen = None if glob is None else set(self._matching(glob))
        numbers = (number for number in self._in_files if chosen is None or number in chosen)
        return ((self._names[number], self._tensor(number)) for number in numbers)

    # The other objects in it.

    @property
    def findings(self) -> list[Finding]:
        """Problems and oddities that opening it has shown."""
        return [Finding(**finding) for finding in self._findings]

    @property
    def shard(self) -> dict[str, Any] | None:
        """The facts of one rank's file: its rank and mesh, and of each tensor local shape, offsets, whole shape and placements, as
        `mckpt inspect --json` has them (docs/json.md). None for any other checkpoint."""
        facts: dict[str, Any] | None = self._written_by()["shard"]
        return facts

    @property
    def packing(self) -> dict[str, Any] | None:
        """How a run of Megatron-FSDP packed the checkpoint, recognised by names and boxes alone: engine, units, strategies,
        ranks, and whether all boxes fit. None where nothing shows that one did."""
        facts: dict[str, Any] | None = self._written_by()["packing"]
        return facts

    def _written_by(self) -> dict[str, Any]:
        if self._writer is None:
            self._writer = read_json("mckpt_writer_json", self._opened())
        return self._writer

    def objects(self) -> list[Object]:
        """All objects that are not tensors, with a summary of each."""
        return [Object(**o) for o in read_json("mckpt_objects_json", self._opened())["objects"]]

    def object(self, name: str) -> Any:
        """The value of an object that is made of None, bools, numbers, texts, bytes, tuples, lists, sets and dicts alone.
        Nothing in the file is executed. TypeError for other values, such as an argparse.Namespace."""
        literal = taken_text(call("mckpt_object_literal", self._opened(), name_bytes(name)))
        if not literal:
            summary = next((o.summary for o in self.objects() if o.name == name), "")
            raise TypeError(f"the object '{name}' is not made of plain values alone: {summary}")
        return _value_of(literal.decode("utf-8", "surrogatepass"))

    # Its life.

    def _opened(self) -> Handle:
        handle = self._handle
        if handle is None:
            raise ValueError(f"the checkpoint {self.path} is closed")
        return handle

    def close(self) -> None:
        """Gives up memory and files. Arrays that were made of its tensors live on."""
        self._handle = None

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _NanAsNumber(ast.NodeTransformer):
    """A NaN has no literal: its text is the name nan."""

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.copy_location(ast.Constant(float("nan")), node) if node.id == "nan" else node


def _value_of(literal: str) -> Any:
    if "nan" not in literal:
        return ast.literal_eval(literal)
    return ast.literal_eval(_NanAsNumber().visit(ast.parse(literal, mode="eval")))


def _texts(at: int | None, length: int) -> list[str]:
    if not length:
        return []
    return ctypes.string_at(at or 0, length - 1).decode("utf-8", "surrogateescape").split("\0")


def _numbers(at: int | None, count: int) -> array[int]:
    numbers = array("q")
    if count:
        numbers.frombytes(ctypes.string_at(at or 0, count * numbers.itemsize))
    return numbers
