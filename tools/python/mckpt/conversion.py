"""Conversions: plan, prove, run.

    c = mckpt.plan("Qwen3-0.6B", "ckpt", to="fsdp", tp=2)
    c.prove()                     raises if an item would be lost, doubled or invented. Nothing is written so far
    c.run()                       writes; a result is there as a whole or not at all
    mckpt.convert(...)            all three

Settings are the fields of the structs in lib/api/mckpt/plans.h: tp=2, strategy="optim", freeze=["*.bias"],
dtype_rule={"*.router.*": "fp32"}.
"""

from __future__ import annotations

import os
from typing import Any

from . import _html
from ._call import Handle, call, name_bytes, read_json, settings, thread_count
from .progress import Show, watched
from .values import Account, Finding, Note, OutputFile, RunReport, run_report

Path = str | os.PathLike[str]

_SHORT = {"fsdp": "to-fsdp", "hf": "to-hf", "safetensors": "to-safetensors", "pt": "to-pt"}


def plan(source: Path, target: Path, *, to: str, threads: int | None = None, **what: Any) -> Conversion:
    """Plans a conversion: headers are read, nothing is written.

    to: "fsdp" (of a Hugging Face model), "hf" (of a sharded checkpoint), "reshard", "safetensors" (of .pt files),
    "pt" (of safetensors files), "ungroup", "group", "hybrid-to-gpt", "gpt-to-hybrid".
    """
    threads = thread_count(threads)
    values = {"source": source, "target": target, "threads": threads, **what}
    kind = name_bytes(_SHORT.get(to, to))
    return Conversion(Handle(call("mckpt_plan", kind, settings(values)), "mckpt_conversion_free"), threads)


def convert(
    source: Path,
    target: Path,
    *,
    to: str,
    threads: int | None = None,
    max_memory: int | None = None,
    sync: bool = True,
    overwrite: bool = False,
    resume: bool = False,
    allow_overflow: bool = False,
    progress: Show = None,
    **what: Any,
) -> RunReport:
    """Plans, proves and runs. See plan() for `to` and the settings, and Conversion.run() for the rest."""
    return plan(source, target, to=to, threads=threads, **what).run(
        max_memory=max_memory,
        sync=sync,
        overwrite=overwrite,
        resume=resume,
        allow_overflow=allow_overflow,
        progress=progress,
    )


def export(source: Path, target: Path, **options: Any) -> RunReport:
    """convert() of a sharded checkpoint to a Hugging Face folder."""
    return convert(source, target, to="hf", **options)


class Conversion:
    """A planned conversion. It can be run once, and is used by one thread at a time."""

    def __init__(self, handle: Handle, threads: int) -> None:
        self._handle = handle
        self._threads = threads

    def _facts(self) -> dict[str, Any]:
        return read_json("mckpt_conversion_json", self._handle)

    def __repr__(self) -> str:
        facts = self._facts()
        state = "done" if facts["run"] else "proved" if facts["account"] else "planned"
        return f"<mckpt.Conversion to {facts['path']}: {facts['bytes']:,} bytes, {state}>"

    def _repr_html_(self) -> str:
        facts = self._facts()
        rows = [("made of", name) for name in facts["sources"]]
        rows += [(f["name"], f"{f['bytes']:,} bytes") for f in facts["outputs"]]
        rows += [(name, f"{count:,}") for name, count in (facts["account"] or {}).items()]
        rows += [("warning" if note["warning"] else "note", note["text"]) for note in facts["notes"]]
        return _html.table(repr(self), rows)

    @property
    def path(self) -> str:
        """Of the result."""
        return str(self._facts()["path"])

    @property
    def bytes(self) -> int:
        """Of the result."""
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
        """Of planning."""
        return [Note(**n) for n in self._facts()["notes"]]

    @property
    def findings(self) -> list[Finding]:
        """About the sources: odd, but nothing is lost."""
        return [Finding(**f) for f in self._facts()["findings"]]

    @property
    def account(self) -> Account | None:
        """What is made of the tensors. None before prove()."""
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
        progress: Show = None,
    ) -> RunReport:
        """Carries the conversion out and publishes the result. Proves before, if prove() was not called.

        max_memory: bytes for buffers. sync: wait until the result is on the disk. overwrite: replace an existing
        result, once the new one is complete. resume: continue what an interrupted run of the same conversion left.
        allow_overflow: publish although a cast made finite values infinite. progress: a function that is called
        with a Progress some ten times a second; True: a bar on stderr; None: the bar, if stderr is a terminal.

        Ctrl-C ends the work and raises KeyboardInterrupt: no result is published, and the same conversion, planned
        again and run with `resume`, continues.
        """
        values = settings(
            {
                "threads": self._threads,
                "max_memory": max_memory,
                "sync": sync,
                "overwrite": overwrite,
                "resume": resume,
                "allow_overflow": allow_overflow,
            }
        )
        watched(lambda observer: call("mckpt_run", self._handle, values, observer), progress)
        return run_report(self._facts()["run"])
