"""Pictures of checkpoints.

    mckpt.plot("ckpt", "ckpt.html")
"""

from __future__ import annotations

import ctypes
from typing import Any

from ._call import Path, call, name_bytes, settings, thread_count
from ._library import Plotted
from .progress import Show, watched
from .settings import PLOT, PlotSettings, Unpack, lists


@lists(PLOT)
def plot(
    path: Path,
    output: Path,
    *,
    names: str | None = None,
    regex: bool = False,
    stats: bool = False,
    threads: int | None = None,
    progress: Show = None,
    **how: Unpack[PlotSettings],
) -> bool:
    """Draws which rank or file holds which items of every tensor, with holes and overlaps, and the sizes of modules: as one
    page for any browser where `output` ends in .html, as a drawing of the shard map where it ends in .svg. An earlier picture
    is replaced. Returns whether nothing is wrong with the checkpoint, as far as headers say it.

    names: a glob of the tensors that are drawn, or with regex a regular expression. stats: also read all values. threads: as
    many as there are processors, unless it is set. progress: see Conversion.run().
    """
    values = settings({"names": names, "regex": regex or None, "stats": stats or None, "threads": thread_count(threads), **how})

    def work(observer: Any) -> bool:
        made = Plotted()
        call("mckpt_plot", name_bytes(path), name_bytes(output), values, observer, ctypes.byref(made))
        return bool(made.sound)

    sound: bool = watched(work, progress)
    return sound
