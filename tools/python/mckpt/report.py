"""Verifying: whether a checkpoint is sound, and whether it contains what converting another one would write."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from . import _html
from ._call import Handle, Path, call, call_text, name_bytes, read_json, settings, shown_path, thread_count
from .progress import Show, watched
from .settings import COMPARE, CompareSettings, Unpack, lists, refuse_misnamed
from .values import Check, Difference, Finding, counted, difference, left_uncompared


@lists(COMPARE)
def verify(
    path: Path,
    against: Path | None = None,
    *,
    report: Path | Sequence[Path] | None = None,
    card: Path | None = None,
    strict: bool = False,
    threads: int | None = None,
    progress: Show = None,
    **how: Unpack[CompareSettings],
) -> Report:
    """Checks a checkpoint by itself; with `against`, compares it bit by bit with what converting that one would
    write. Faults are in the report; Error is raised only if nothing can be checked.

    report: a file, or several, for the card of what was found: .json, .md or .sha256. card: such a card as JSON; the
    checkpoint's files are compared with it, and nothing else is checked.

    strict: warnings are problems; not together with `against`.

    The answer is report.ok: report.equal with `against`, report.as_card with `card`, else report.sound. threads: as many
    as there are processors, unless it is set. progress: see Conversion.run(). Without `against` there are four other
    settings: follow_links; model_files, which of two models in a folder is read; accept, ["MC2015"] for args of a run that contradict config.json; assets, a folder with
    config.json whose names and shapes the tensors must have; and with assets model_dict, the dict of the save that is the model.
    """
    refuse_misnamed(how)
    command = None if report is None else call_text("verify", path, against, report=report, **how)
    given = {"against": against, "report": report, "card": card, "strict": None if strict is False else strict, "command": command, "threads": thread_count(threads)}
    values = settings({**given, **how})

    def work(observer: Any) -> dict[str, Any]:
        pointer = call("mckpt_verify", name_bytes(path), values, observer)
        return read_json("mckpt_report_json", Handle(pointer, "mckpt_report_free"))

    return Report(os.fsdecode(path), None if against is None else os.fsdecode(against), watched(work, progress))


class Report:
    """The findings of verify(): ok,

    As text it is a line for each check, finding and difference; a notebook shows a table.
    """

    def __init__(self, path: str, against: str | None, fields: dict[str, Any]) -> None:
        self.path = path
        self.against = against
        self.sound: bool = fields["sound"]  #: no finding is a problem. Only what was read counts: see `unread`. With `against` values are not judged (NaN); False with `card`
        self.equal: bool | None = fields["equal"]  #: everything was compared and is equal; None: nothing was compared
        self.differing_tensors: int | None = fields["differing_tensors"]  #: how many have another type, shape or value; `differences` has the first ones
        self.rounded: int | None = fields["rounded"]  #: tensors of which `equal` is about values that a cast rounded
        self.as_card: bool | None = fields["as_card"]  #: all files are those of the card, and nothing else was checked
        self.checks = [Check(**c) for c in fields["checks"]]
        self.findings = [Finding(**f) for f in fields["findings"]]
        self.differences = [difference(d) for d in fields["differences"]]
        self.unread: list[str] = fields["unread"]  #: files and folders that no check looked at: paths, with the reason
        self.unread_paths: list[str] = fields["unread_paths"]  #: the same in the same order, without the reasons
        self.oddities = [Finding(**f) for f in fields["oddities"]]  #: of both sides: odd, but nothing is lost

    @property
    def ok(self) -> bool:
        """The answer: whether both sides are equal, whether all is as on the card, or whether one side alone is sound."""
        return next(answer for answer in (self.equal, self.as_card, self.sound) if answer is not None)

    def __bool__(self) -> bool:
        # A report is never false in itself, also when the answer is negative: the question has to be named.
        raise TypeError("the answer of a report is report.ok: report.equal with `against`, report.as_card with `card`, else report.sound")

    def _answer(self) -> str:
        if self.as_card is not None:
            return f"{self.path}: {'as' if self.as_card else 'not as'} on the card"
        if self.against is None:
            return f"{self.path}: {'sound' if self.sound else 'not sound'}"
        cast = f" after a cast that rounds {counted(self.rounded, 'tensor')}" if self.equal and self.rounded else ""
        infinite = sum(check.count for check in self.checks if check.name == "overflow")
        buts = [f"{counted(infinite, 'tensor')} {'has' if infinite == 1 else 'have'} values that a cast made infinite"] if infinite else []
        buts += left_uncompared(self.checks)
        but = f", but {' and '.join(buts)}" if self.equal and buts else ""
        return f"{self.path}: {'equal to' if self.equal else 'differs from'} {self.against}{cast}{but}"

    def _rows(self) -> list[tuple[str, str, str]]:
        """Kind, name and text of everything in the report."""
        rows = [(c.status, c.name, _check_text(c)) for c in self.checks]
        rows += [("warning" if f.warning else "problem", f.code, _where(f) + f.message) for f in self.findings]
        for d in self.differences:
            rows.append(("differs", d.tensor or d.file, f"{d.at}: expected {d.expected}, found {d.found}"))
        rows += [("unread", name, "") for name in self.unread]
        rows += [("odd", f.code, _where(f) + f.message) for f in self.oddities]
        return rows

    def __repr__(self) -> str:
        return shown_path(f"<mckpt.Report {self._answer()}; {counted(len(self.findings), 'finding')}, {counted(len(self.differences), 'difference')}>")

    def __str__(self) -> str:
        return shown_path("\n".join([self._answer()] + ["  " + "  ".join(filter(None, row)) for row in self._rows()]))

    def _repr_html_(self) -> str:
        return shown_path(_html.table(self._answer(), self._rows()))


def _check_text(check: Check) -> str:
    unit = check.unit[:-1] if check.count == 1 else check.unit  # "1 file", "2 files"
    text = f"{check.count:,} {unit}" if unit else ""
    if check.unseen:
        text += f", {check.unseen:,} not looked at"
    return f"{text} ({check.note})" if check.note else text


def _where(finding: Finding) -> str:
    return (f"{finding.file}: " if finding.file else "") + (f"tensor '{finding.tensor}': " if finding.tensor else "")
