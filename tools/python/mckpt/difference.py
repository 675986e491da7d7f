"""Differences between two checkpoints of any formats and grids.

    d = mckpt.diff("ckpt/iter_0000100", "Qwen3-0.6B")
    d.equal            False
    for row in d: print(row)
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from . import _html
from ._call import Handle, Path, call, name_bytes, read_json, settings, shown_path, thread_count
from .progress import Show, watched
from .settings import DIFF, DiffSettings, Unpack, lists, refuse_misnamed
from .values import Check, Finding, counted, left_uncompared

_MOST_SHOWN = 20  # rows of a text

_KINDS = {  # in words, for one or more of them
    "only_a": "only in the first",
    "only_b": "only in the second",
    "shape": "of another shape",
    "dtype": "of another dtype, values not compared",
    "cast": "of another dtype, values compared all the same",
    "attribute": "with other attributes or places",
    "values": "with other values",
    "object": "other values that are not tensors",
    "file": "other files beside the tensors",
}


@dataclass(frozen=True)
class DiffRow:
    """One tensor, object or file that is not the same in both."""

    kind: str  #: only_a, only_b, shape, dtype, cast, attribute, values, object or file
    name: str
    at: str  #: the first place: "[3, 2]" in a tensor, ".lr" in an object
    a: str  #: "bfloat16 [2, 3]", or the value at that place; "" is what this side does not have
    b: str
    items: int  #: how many items differ; -1: not counted
    beyond: int  #: of these, items that are further apart than `within` allows
    largest: float | None  #: the largest difference of two finite floats, if one was counted
    relative_l2: float | None  #: the length of a - b by that of b, of floats
    cosine: float | None  #: of the angle between the two, of floats
    most_ulps: int  #: the most steps from one float of the type to the next between two items
    not_finite: int  #: items with NaN or infinity on one side: relative_l2 and cosine are then None
    hint: str  #: where the values are instead, such as "the same rows in another order"; "": nothing was found
    file: str  #: of the first checkpoint, if one file has the first difference; of the second with its path, if its tensors are compared

    def __str__(self) -> str:
        text = f"{self.kind}  {self.name}"
        if self.at:
            text += f"  {self.at}"
        if self.a or self.b:
            text += f"  {self.a or 'nothing'} | {self.b or 'nothing'}"
        return f"{text}  ({self._counts()})" if self.items >= 0 else text

    def _counts(self) -> str:
        if self.items < 0:
            return ""
        text = f"{self.items:,} item differs" if self.items == 1 else f"{self.items:,} items differ"
        if self.largest is not None:
            text += f", by {self.largest:g} at most"
        if self.relative_l2 is not None:
            text += f", relative L2 {self.relative_l2:.2g}"
        return f"{text}; {self.hint}" if self.hint else text


class Diff:
    """The differences that diff() has found: an iterable of rows. As text it is a line for each of the first
    20; a notebook shows a table."""

    def __init__(self, a: str, b: str, fields: dict[str, Any]) -> None:
        self.a = a
        self.b = b
        self.equal: bool = fields["equal"]  #: everything was compared, and there is no row
        self.alike: bool = fields["alike"]  #: everything was compared, and no row has an item beyond its tolerance
        self.compared: str = fields["compared"]  #: what was compared with what
        self.tensors: int = fields["tensors"]  #: how many were compared
        self.rows = [_row(r) for r in fields["rows"]]
        self.checks = [Check(**c) for c in fields["checks"]]  #: their notes say what was not compared
        self.findings = [Finding(**f) for f in fields["findings"]]  #: damage: it was not compared; and oddities
        self.unread: list[str] = fields["unread"]  #: checkpoints beside those of both sides, hidden ones too, that were not looked at: paths, with the reason
        self.unread_paths: list[str] = fields["unread_paths"]  #: the same in the same order, without the reasons

    @property
    def only_a(self) -> list[str]:
        """The tensors that only the first one has."""
        return self._names("only_a")

    @property
    def only_b(self) -> list[str]:
        """The tensors that only the second one has."""
        return self._names("only_b")

    def _names(self, kind: str) -> list[str]:
        return [row.name for row in self.rows if row.kind == kind]

    def __iter__(self) -> Iterator[DiffRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.rows)

    def __bool__(self) -> bool:
        # A diff without rows is not nothing, and not the same as "equal": this question has no clear answer.
        raise TypeError("whether two checkpoints are equal is diff.equal; whether there are rows is len(diff) > 0")

    def _answer(self) -> str:
        if self.equal:
            left_out = left_uncompared(self.checks)
            return f"equal: {self.compared} ({self.tensors:,} compared){', but ' + ' and '.join(left_out) if left_out else ''}"
        counts = Counter(row.kind for row in self.rows)
        parts = [f"{counts[kind]:,} {words}" for kind, words in _KINDS.items() if kind in counts]
        problems = sum(not f.warning for f in self.findings)
        if problems:
            parts.append(counted(problems, "problem"))
        return f"not equal: {'; '.join(parts)}. Compared: {self.compared} ({self.tensors:,})"

    def _not_compared(self) -> list[tuple[str, str]]:
        """The parts that the answer does not speak of: notes of checks, findings, paths that were not looked
        at."""
        rows = [(check.name, check.note) for check in self.checks if check.note]
        rows += [("warning" if f.warning else "problem", str(f)) for f in self.findings]
        return rows + [("not looked at", name) for name in self.unread]

    def __repr__(self) -> str:
        return shown_path(f"<mckpt.Diff {self.a} | {self.b}: {self._answer()}>")

    def __str__(self) -> str:
        lines = [f"{self.a} | {self.b}", self._answer()]
        lines += [f"  {row}" for row in self.rows[:_MOST_SHOWN]]
        if len(self.rows) > _MOST_SHOWN:
            lines.append(f"  ... and {len(self.rows) - _MOST_SHOWN:,} more, in .rows")
        return shown_path("\n".join(lines + [f"  {kind}: {text}" for kind, text in self._not_compared()]))

    def _repr_html_(self) -> str:
        rows = [(r.kind, r.name, r.at, r.a, r.b, r._counts()) for r in self.rows]
        shown = _html.table(f"{self.a} | {self.b}: {self._answer()}", rows, ("", "name", "at", "first", "second", ""))
        rest = self._not_compared()
        return shown_path(shown + (_html.table("besides", rest) if rest else ""))


def _row(fields: dict[str, Any]) -> DiffRow:
    # Numbers that JSON does not have are the texts "NaN", "Infinity" and "-Infinity".
    numbers = {name: fields[name] for name in ("largest", "relative_l2", "cosine")}
    return DiffRow(**{**fields, **{name: None if n is None else float(n) for name, n in numbers.items()}})


@lists(DIFF)
def diff(
    a: Path,
    b: Path,
    *,
    names: str | None = None,
    regex: bool = False,
    html: Path | None = None,
    threads: int | None = None,
    progress: Show = None,
    **how: Unpack[DiffSettings],
) -> Diff:
    """Compares two checkpoints bit by bit: tensors, objects and the files beside them. Where names differ, because the
    formats do, one side is compared with what converting the other one would write.

    names: a glob of names, as `a` has them, or with `regex` a regular expression: only these tensors are compared, and neither
    objects nor files. live: one of the two is a dump that mckpt.rank_dump made of a rank of a training run. html: a file that gets a page of the change by layer and module. threads: as many as there are processors, unless it is set. progress: see Conversion.run().
    """
    refuse_misnamed(how)
    values = settings({"names": names, "regex": regex or None, "html": html, "threads": thread_count(threads), **how})

    def work(observer: Any) -> dict[str, Any]:
        made = call("mckpt_diff", name_bytes(a), name_bytes(b), values, observer)
        return read_json("mckpt_diff_json", Handle(made, "mckpt_diff_free"))

    return Diff(os.fsdecode(a), os.fsdecode(b), watched(work, progress))
