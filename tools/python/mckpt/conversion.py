"""Conversions: plan, prove, run.

    c = mckpt.plan("Qwen3-0.6B", "ckpt", to="fsdp", tp=2)
    c.prove()                     raises if an item would be lost, doubled or invented. Nothing is written so far
    c.run()                       writes; a result is there as a whole or not at all
    mckpt.convert(...)            all three

Settings are the fields of the structs in lib/api/mckpt/*plans.h: tp=2, strategy="optim", freeze=["*.bias"],
dtype_rule={"*.router.*": "fp32"}.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import _html
from ._call import Handle, Path, call, call_text, name_bytes, read_json, settings, shown_path, thread_count
from .progress import Show, checked, watched
from .settings import CONVERSION, EXPORT, ConversionSettings, ExportSettings, Kind, Unpack, lists, refuse_misnamed
from .values import Account, Finding, Note, OutputFile, RunReport, run_report


@lists(CONVERSION)
def plan(
    source: Path, target: Path, *, to: Kind, threads: int | None = None, **what: Unpack[ConversionSettings]
) -> Conversion:
    """Plans a conversion: headers are read, nothing is written.

    to: what is made, a word of the list below. threads: as many as there are processors, unless it is set.
    """
    refuse_misnamed(what)
    threads = thread_count(threads)
    values = {"source": source, "target": target, "threads": threads, **what}
    kind = name_bytes(to)
    command = call_text("plan", source, target, to=to, **what) + ".run()"
    return Conversion(Handle(call("mckpt_plan", kind, settings(values)), "mckpt_conversion_free"), threads, command)


@lists(CONVERSION)
def convert(
    source: Path,
    target: Path,
    *,
    to: Kind,
    threads: int | None = None,
    max_memory: int | None = None,
    sync: bool = True,
    overwrite: bool = False,
    resume: bool = False,
    allow_overflow: bool = False,
    card: Path | Sequence[Path] | None = None,
    progress: Show = None,
    **what: Unpack[ConversionSettings],
) -> RunReport:
    """Plans, proves and runs. to: what is made, a word of the list below. See Conversion.run() for what is not listed here."""
    checked(progress)
    return plan(source, target, to=to, threads=threads, **what).run(
        max_memory=max_memory,
        sync=sync,
        overwrite=overwrite,
        resume=resume,
        allow_overflow=allow_overflow,
        card=card,
        progress=progress,
    )


@lists(EXPORT)
def export(
    source: Path,
    target: Path,
    *,
    threads: int | None = None,
    max_memory: int | None = None,
    sync: bool = True,
    overwrite: bool = False,
    resume: bool = False,
    allow_overflow: bool = False,
    card: Path | Sequence[Path] | None = None,
    progress: Show = None,
    **what: Unpack[ExportSettings],
) -> RunReport:
    """convert() of a sharded checkpoint to a Hugging Face folder. See Conversion.run() for what is not listed here."""
    return convert(
        source,
        target,
        to="hf",
        threads=threads,
        max_memory=max_memory,
        sync=sync,
        overwrite=overwrite,
        resume=resume,
        allow_overflow=allow_overflow,
        card=card,
        progress=progress,
        **what,
    )


class Conversion:
    """A planned conversion. It can be run once, and is used by one thread at a time."""

    def __init__(self, handle: Handle, threads: int, command: str) -> None:
        self._handle = handle
        self._threads = threads
        self._command = command

    def _facts(self) -> dict[str, Any]:
        return read_json("mckpt_conversion_json", self._handle)

    def __repr__(self) -> str:
        facts = self._facts()
        state = "done" if facts["run"] else "proved" if facts["account"] else "planned"
        return f"<mckpt.Conversion to {shown_path(facts['path'])}: {facts['bytes']:,} bytes, {state}>"

    def _repr_html_(self) -> str:
        facts = self._facts()
        rows = [("made of", shown_path(name)) for name in facts["sources"]]
        rows += [(f["name"], f"{f['bytes']:,} bytes") for f in facts["outputs"]]
        rows += [("grid", f"{name}={size}") for name, size in (facts["grid"] or {}).items()]
        rows += [(name, f"{count:,}") for name, count in (facts["account"] or {}).items()]
        rows += [("warning" if note["warning"] else "note", note["text"]) for note in facts["notes"]]
        return _html.table(repr(self), rows)

    @property
    def path(self) -> str:
        """The path of the result."""
        return str(self._facts()["path"])

    @property
    def bytes(self) -> int:
        """The size of the result."""
        return int(self._facts()["bytes"])

    @property
    def sources(self) -> list[str]:
        return list(self._facts()["sources"])

    @property
    def outputs(self) -> list[OutputFile]:
        """The data files of the result."""
        return [OutputFile(**f) for f in self._facts()["outputs"]]

    @property
    def notes(self) -> list[Note]:
        """The notes of planning."""
        return [Note(**n) for n in self._facts()["notes"]]

    @property
    def findings(self) -> list[Finding]:
        """About the sources: odd, but nothing is lost."""
        return [Finding(**f) for f in self._facts()["findings"]]

    @property
    def grid(self) -> dict[str, int] | None:
        """The sizes tp, cp, ep, etp, pp, dp and hsdp of the training run whose checkpoint the result is, with those that
        planning chose, and its number of ranks. None: the result is of no run, or of the run of the source."""
        grid: dict[str, int] | None = self._facts()["grid"]
        return grid

    @property
    def account(self) -> Account | None:
        """The account of the result's tensors. None before prove()."""
        account = self._facts()["account"]
        return Account(**account) if account else None

    def prove(self, *, progress: Show = None) -> Account:
        """Shows that every item of every tensor is written exactly once. Reads no data and writes nothing. Raises
        Error with the tensor otherwise."""
        watched(lambda observer: call("mckpt_prove", self._handle, self._threads, observer), progress)
        return Account(**self._facts()["account"])

    def run(
        self,
        *,
        max_memory: int | None = None,
        sync: bool = True,
        overwrite: bool = False,
        resume: bool = False,
        allow_overflow: bool = False,
        card: Path | Sequence[Path] | None = None,
        progress: Show = None,
    ) -> RunReport:
        """Carries the conversion out and publishes the result. Proves before, if prove() was not called.

        max_memory: bytes for buffers. sync: wait until the result is on the disk. overwrite: replace an existing
        result, once the new one is complete, and what another conversion left unfinished. An interrupted run
        of the same conversion is continued; with `resume` also where that run was to replace a result. A
        result that is one file is made anew, without `resume`.
        allow_overflow: publish although a cast made finite values infinite. card: a file, or several, for a card of the
        result (.json, .md or .sha256), for which the result is read once more. progress: a function that is called
        with a Progress some ten times a second; True: a bar on stderr; None: the bar, if stderr is a terminal; False: none.

        Ctrl-C ends the work and raises KeyboardInterrupt: no result is published, and the same conversion, planned
        and run again, continues, if the result is a folder.
        """
        values = settings(
            {
                "threads": self._threads,
                "max_memory": max_memory,
                "sync": sync,
                "overwrite": overwrite,
                "resume": resume,
                "allow_overflow": allow_overflow,
                "card": card,
                "command": None if card is None else self._command,
            }
        )
        watched(lambda observer: call("mckpt_run", self._handle, values, observer), progress)
        facts = self._facts()
        return run_report(facts["run"], facts["grid"])
