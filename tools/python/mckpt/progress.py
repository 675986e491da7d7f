"""Long work: it runs in a thread of its own, while the caller's thread shows progress and listens for Ctrl-C.

    caller's thread     every 0.1 s: how far is it? -> progress(...)       Ctrl-C -> stop -> wait -> KeyboardInterrupt
    thread "mckpt"      the function of the library, with threads of its own

So functions of the caller are called in the caller's thread, and what they raise reaches the caller, once the
work has been stopped.
"""

from __future__ import annotations

import ctypes
import html
import importlib
import json
import sys
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, TextIO, Union

from ._call import Handle, taken_text
from ._library import Observer, library
from .errors import Error

_INTERVAL = 0.1  # seconds


class Progress(NamedTuple):
    """How far a piece of work is."""

    phase: str  #: such as "prove", "write" or "compare"
    done: int  #: bytes; the last event of each phase has done == bytes
    bytes: int  #: of the phase, about; of one that has none, such as "finish", those of the phase before it


# None: a bar, in a notebook, or on stderr if that is a terminal. A function is called some ten times a second, and at the end.
Show = Union[Callable[[Progress], Any], bool, None]


class Bar:
    """One line of a terminal that is overwritten, and is gone at the end."""

    def __init__(self, to: TextIO) -> None:
        self._to = to

    def __call__(self, progress: Progress) -> None:
        text = progress.phase
        if progress.bytes > 0:
            share = min(progress.done / progress.bytes, 1.0)
            filled = round(24 * share)
            text += f" [{'#' * filled}{'.' * (24 - filled)}] {share:4.0%} of {progress.bytes / 1e6:,.0f} MB"
        self._to.write(f"\r{text}\x1b[K")
        self._to.flush()

    def end(self) -> None:
        self._to.write("\r\x1b[K")
        self._to.flush()


class NotebookBar:
    """A bar below the cell of a notebook, which is gone at the end. Nothing but the notebook's own IPython is needed."""

    def __init__(self, display: Any) -> None:
        self._display = display  # IPython.display
        self._handle: Any = None
        self._shown = ""

    def __call__(self, progress: Progress) -> None:
        phase = html.escape(progress.phase)
        if progress.bytes > 0:
            share = min(progress.done / progress.bytes, 1.0)
            text = f'{phase} <progress value="{share:.3f}"></progress> {share:.0%} of {progress.bytes / 1e6:,.0f} MB'
        else:
            text = f"{phase} <progress></progress>"
        self._show(text)

    def end(self) -> None:
        if self._handle is not None:
            self._show("")

    def _show(self, text: str) -> None:
        if text == self._shown:
            return
        self._shown = text
        if self._handle is None:
            self._handle = self._display.display(self._display.HTML(text), display_id=True)
        else:
            self._handle.update(self._display.HTML(text))


def _notebook() -> Any:
    """IPython.display, if this process is the kernel of a notebook. Nothing is imported that is not there already."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return importlib.import_module("IPython.display") if hasattr(shell, "kernel") else None


class _Watch:
    """A mckpt_watch."""

    def __init__(self) -> None:
        self._handle = Handle(library().mckpt_watch_new(), "mckpt_watch_free")

    def observer(self) -> Observer:
        observer: Observer = library().mckpt_watch_observer(self._handle)
        return observer

    def stop(self) -> None:
        library().mckpt_watch_stop(self._handle)

    def look(self) -> dict[str, Any]:
        facts: dict[str, Any] = json.loads(taken_text(library().mckpt_watch_json(self._handle)))
        return facts


class _Events:
    """The events that a watch has seen: none goes back, and the last one of a phase that has ended is a full
one.

    write 0 of 1000, write 400 of 1000, [finish: bytes not known]   ->   400 of 1000, 1000 of 1000, finish 1000 of 1000
    """

    def __init__(self, show: Callable[[Progress], Any]) -> None:
        self._show = show
        self._ended = 0  # phases
        self._bytes = 0  # of the last phase that had some
        self._last: Progress | None = None

    def take(self, facts: dict[str, Any], complete: bool) -> None:
        """complete: the work has succeeded, so that the phase has ended too."""
        for phase in facts["ended"][self._ended :]:
            self._ended += 1
            self._send(phase["phase"], phase["bytes"], phase["bytes"], again=False)
        if facts["phase"]:
            done = facts["bytes"] if complete else min(facts["done"], facts["bytes"])
            self._send(facts["phase"], done, facts["bytes"], again=not complete)

    def _send(self, phase: str, done: int, size: int, again: bool) -> None:
        if size == 0:
            done = size = self._bytes
        self._bytes = size
        progress = Progress(phase, done, size)
        if again or progress != self._last:
            self._last = progress
            self._show(progress)


def checked(show: Show) -> None:
    """Raises TypeError for what cannot show progress: before any work is begun."""
    if show is not None and not isinstance(show, bool) and not callable(show):
        raise TypeError(f"progress is a function, True, False or None, not {type(show).__name__}: {show!r}")


def _shown(show: Show) -> Callable[[Progress], Any] | None:
    checked(show)
    if show is None or show is True:
        notebook = _notebook()
        if notebook is not None:
            return NotebookBar(notebook)
        if show is None:
            show = sys.stderr is not None and sys.stderr.isatty()
    if show is True:
        return Bar(sys.stderr)
    return show or None


def watched(work: Callable[[Any], Any], show: Show) -> Any:
    """The result of work(observer), where the observer is what functions of the library take."""
    shown = _shown(show)
    events = _Events(shown) if shown else None
    watch = _Watch()
    results: list[Any] = []
    failures: list[BaseException] = []
    finished = threading.Event()

    def run() -> None:
        try:
            # The thread itself refers to the watch: it lives until the thread ends, whatever happens to the caller.
            results.append(work(ctypes.byref(watch.observer())))
        except BaseException as failure:
            failures.append(failure)
        finally:
            finished.set()

    thread = threading.Thread(target=run, name="mckpt")

    def look() -> None:
        if events:
            over = finished.is_set()  # asked first: what is seen then is all
            events.take(watch.look(), complete=over and not failures)

    try:
        thread.start()
        while not finished.wait(_INTERVAL):
            look()
        look()
    except BaseException as reason:
        watch.stop()
        if thread.ident is not None:
            thread.join()
        if failures and isinstance(failures[0], Error) and hasattr(reason, "add_note"):
            reason.add_note(str(failures[0]))
        raise
    finally:
        if isinstance(shown, (Bar, NotebookBar)):
            shown.end()
    thread.join()
    if failures:
        raise failures[0]
    return results[0]
