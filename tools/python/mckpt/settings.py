"""The settings of functions, with their types: for editors, mypy and help().

    mckpt.plan("Qwen3-0.6B", "ckpt", to="fsdp", tp=2, dtype_rule={"*.router.*": "fp32"})
                                                 '-----'-- keys of ConversionSettings

Names, types and sentences come from the library (lib/options), from which scripts/fields writes _fields.py.
None leaves a setting out. Settings of NUMBERS take whole numbers, and no texts of them.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Optional, TypeVar

from ._fields import FIELDS as FIELDS
from ._fields import NUMBERS as NUMBERS
from ._fields import WORDS as WORDS
from ._fields import CompareSettings as CompareSettings
from ._fields import ConversionSettings as ConversionSettings
from ._fields import DiffSettings as DiffSettings
from ._fields import ExportSettings as ExportSettings
from ._fields import Kind as Kind
from ._fields import LoadSettings as LoadSettings
from ._fields import ModelFiles as ModelFiles
from ._fields import PlotSettings as PlotSettings
from ._fields import SourceSettings as SourceSettings
from ._setting_types import DType as DType
from ._setting_types import Rules as Rules

if TYPE_CHECKING:
    from typing_extensions import Unpack as Unpack  # known to every type checker, and never imported
else:
    Unpack = getattr(typing, "Unpack", Optional)

# By function: the names in FIELDS whose settings it has.
SOURCE, DIFF, PLOT, COMPARE, LOAD = ("open_as_fsdp",), ("diff",), ("plot",), ("compare",), ("load_rank",)
EXPORT, CONVERSION = ("hf",), tuple(WORDS)
# Settings that other programs, or the program, have: what to call instead.
MISNAMED: dict[str, str] = {
    "dry_run": "mckpt.plan() plans without writing, and prove() of what it returns proves",
    "rtol": 'tolerances are those of mckpt.diff(a, b, within="rtol:1e-3")',
    "atol": 'tolerances are those of mckpt.diff(a, b, within="atol:1e-6")',
    "force": "overwrite=True replaces an existing result",
    "exist_ok": "overwrite=True replaces an existing result",
}


def refuse_misnamed(given: Iterable[str]) -> None:
    """Raises TypeError for a setting that there is under another name."""
    for name in given:
        if name in MISNAMED:
            raise TypeError(f"there is no setting {name}: {MISNAMED[name]}")


Function = TypeVar("Function", bound=Callable[..., Any])


def lists(groups: tuple[str, ...]) -> Callable[[Function], Function]:
    """Puts the settings of each group behind the text of a function, with a line for each setting; where the groups are kinds of
    conversions, also a line for each kind."""
    lines: dict[str, None] = {}  # in order, each once
    for group in groups:
        lines.update(dict.fromkeys(f"{name}: {sentence}" for name, sentence in FIELDS[group].items()))
    words, heads = [], ["Settings:"]
    if groups == CONVERSION:
        words = ["Values of to:", *(f'"{word}": {line}' for word, line in WORDS.items()), ""]
        heads = [f'Settings of to="{kind}": {", ".join(FIELDS[kind])}.' for kind in groups]
    text = "\n".join([*words, *heads, "", *lines])

    def listing(function: Function) -> Function:
        if function.__doc__:  # python -OO has no texts
            function.__doc__ = f"{inspect.cleandoc(function.__doc__)}\n\n{text}\n"
        return function

    return listing
