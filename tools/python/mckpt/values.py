"""Answers of the library as plain values. The fields have the names of the structs in lib/api/mckpt/*.h."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from . import _html


def counted(count: int, what: str) -> str:
    """1 tensor, 1,024 tensors."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def left_uncompared(checks: Iterable[Check]) -> list[str]:
    """Words about tensors beside the model that may be weights, about weights of DeepSpeed ZeRO that one side alone has
    beside their float32 parts, and about scales of a quantised side that the other side does not have."""
    count = Counter[str]()
    for check in checks:
        count[check.name] += check.count
    others, copies, scales = count["others"], count["copies"], count["activations"]
    out = [f"{counted(others, 'tensor')} beside the model {_was(others)} not compared"] if others else []
    out += [f"{counted(copies, 'weight')} that DeepSpeed saves beside {'its float32 part' if copies == 1 else 'their float32 parts'} {_was(copies)} not compared"] if copies else []
    out += [f"{counted(scales, 'scale')} of activations or caches {_was(scales)} not compared"] if scales else []
    return out


def _was(count: int) -> str:
    return "was" if count == 1 else "were"


class _Shown:
    """Values that a notebook shows as a table of their fields."""

    def _repr_html_(self) -> str:
        rows = [(f.name, getattr(self, f.name)) for f in dataclasses.fields(self)]  # type: ignore[arg-type]
        shown = [(name, f"{v:,}" if isinstance(v, int) else v) for name, v in rows if v not in ("", (), None)]
        return _html.table(type(self).__name__, shown)


@dataclass(frozen=True)
class Finding:
    """A problem or an oddity of a checkpoint. Texts that are empty, and numbers that are -1, are not known."""

    code: str
    warning: bool  #: odd, but nothing is lost
    tensor: str
    file: str
    offset: int
    rank: int
    message: str
    help: str

    def __str__(self) -> str:
        where = (f"{self.file}: " if self.file else "") + (f"tensor '{self.tensor}': " if self.tensor else "")
        return f"{'warning' if self.warning else 'problem'}[{self.code}]: {where}{self.message}"


@dataclass(frozen=True)
class Object:
    """Something in a checkpoint that is not a tensor."""

    name: str
    file: str
    summary: str


@dataclass(frozen=True)
class Chunk:
    """A stored piece of a tensor: a box of it, and where its bytes are."""

    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    file: str
    offset: int
    bytes: int
    rank: int
    replica: bool  #: an earlier chunk of the tensor is the same box


@dataclass(frozen=True)
class Statistics(_Shown):
    """The statistics of a tensor's numbers; min, max, mean, deviation and l2 are of the finite ones, None where there are none."""

    numbers: int
    finite: int
    zeros: int
    nan: int
    infinite: int
    min: float | None  #: extremes of integers beyond 2**53 are rounded
    max: float | None
    mean: float | None
    deviation: float | None
    l2: float | None


@dataclass(frozen=True)
class Note:
    """A remark of one line."""

    warning: bool
    text: str


@dataclass(frozen=True)
class OutputFile:
    """A data file of the result of a conversion."""

    name: str
    bytes: int


@dataclass(frozen=True)
class Account(_Shown):
    """The account of a conversion: how its tensors are made."""

    tensors_in: int
    tensors_out: int
    copied: int  #: made of one tensor, which is used for no other
    fused: int  #: made of several
    split: int  #: made of one that is used for others as well
    tied: int  #: a copy of another one, in the source or in the result
    padded: int  #: have zeros that the source does not have
    unpadded: int  #: of the source; their padding is dropped
    changed: int  #: have another type, or other values, than the source
    dropped: int  #: of the source; left out on purpose
    dropped_objects: int
    invented: int  #: made of nothing: always 0 once a conversion is proved
    dequantized: int  #: values of one tensor, which the source has as codes and scales
    quantized: int  #: codes or scales of one tensor


@dataclass(frozen=True)
class RunReport(_Shown):
    """The numbers of a finished conversion."""

    output: str  #: the folder or file that was made
    bytes: int
    bytes_read: int
    bytes_written: int
    rounded_norms: int  #: items of norms stored less one that were rounded by it: the way back gives others
    became_infinite: int
    became_zero: int
    overflowed: tuple[str, ...]  #: tensors with items that became infinite
    notes: tuple[Note, ...]
    #: tp, cp, ep, etp, pp, dp, hsdp and ranks of the training run whose checkpoint the result is; None: of no run
    grid: dict[str, int] | None = dataclasses.field(default=None, hash=False)


@dataclass(frozen=True)
class Check:
    """One kind of check, and how it ended."""

    name: str
    status: str  #: none (nothing to check), pass, warn, fail
    count: int
    unit: str
    unseen: int  #: how many could not be looked at
    note: str


@dataclass(frozen=True)
class Difference:
    """How two sides differ in one tensor or object."""

    tensor: str
    file: str
    at: str  #: the first place
    expected: str
    found: str
    items: int  #: how many items differ; -1 for an object
    largest: float | None  #: the largest difference between two numbers


def chunk(fields: dict[str, Any]) -> Chunk:
    return Chunk(**{**fields, "offsets": tuple(fields["offsets"]), "sizes": tuple(fields["sizes"])})


def statistics(fields: dict[str, Any]) -> Statistics:
    # Numbers that JSON does not have are the texts "NaN", "Infinity" and "-Infinity".
    floats = {name: None if fields[name] is None else float(fields[name]) for name in ("min", "max", "mean", "deviation", "l2")}
    return Statistics(**{**fields, **floats})


def run_report(fields: dict[str, Any], grid: dict[str, int] | None) -> RunReport:
    notes = tuple(Note(**note) for note in fields["notes"])
    return RunReport(**{**fields, "overflowed": tuple(fields["overflowed"]), "notes": notes, "grid": grid})


def difference(fields: dict[str, Any]) -> Difference:
    largest = fields["largest"]
    return Difference(**{**fields, "largest": None if largest is None else float(largest)})
