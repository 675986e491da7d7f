"""The exception that the library raises: it says what went wrong, where, what was expected and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from itertools import islice
from typing import Any

NO_SUCH_TENSOR, WRONG_SETTING = "MC1007", "MC0001"
_MOST_COMPARED = 20000  # names: each comparison takes some microseconds


class Error(Exception):
    """A failure of the library. Texts that are empty, and an offset of -1, are not known."""

    code: str  #: "MC1107": stable, for programs to compare; `mckpt explain MC1107` explains it
    status: int  #: what the program would exit with: 2 a wrong setting, 3 a bad input, 4 refused, 5 writing failed
    message: str
    file: str
    tensor: str
    offset: int  #: in bytes, in the file
    expected: str
    found: str
    notes: list[str]
    help: str  #: what to do

    def __init__(self, line: str, facts: dict[str, Any]) -> None:
        super().__init__(line)
        self._line = line
        self._facts = facts
        for name, value in facts.items():
            setattr(self, name, value)

    def __str__(self) -> str:
        text = f"{self.code}: {self._line}"
        for note in self.notes:
            text += f"\n  note: {note}"
        return f"{text}\n  help: {self.help}" if self.help else text

    def __repr__(self) -> str:
        text = str(self).replace("\n  ", "; ")
        return f"<mckpt.{type(self).__name__} {text}>"

    def __reduce__(self) -> tuple[type[Error], tuple[str, dict[str, Any]]]:
        return type(self), (self._line, self._facts)


class NoSuchTensor(Error, KeyError):
    """There is no tensor, or no object, of the name. Also a KeyError, as a mapping raises it."""


def no_such_tensor(where: str, name: object, names: Iterable[str]) -> NoSuchTensor:
    """An error about tensors that are not in an open checkpoint, whose errors are the library's."""
    near = difflib.get_close_matches(str(name), list(islice(names, _MOST_COMPARED)), 1)
    message = f"there is no tensor of the name '{name}'"
    facts = {"code": NO_SUCH_TENSOR, "status": 3, "message": message, "file": where, "tensor": "", "offset": -1}
    notes = [f"the nearest name is {near[0]}"] if near else []
    return NoSuchTensor(f"{where}: {message}", {**facts, "expected": "", "found": "", "notes": notes, "help": ""})


def not_allowed(setting: str, expected: str, found: object) -> Error:
    """An error about a value that does not reach the library, as the library words it."""
    message = f"the value of `{setting}` is not allowed"
    facts = {"code": WRONG_SETTING, "status": 2, "message": message, "file": "", "tensor": "", "offset": -1}
    facts |= {"expected": expected, "found": repr(found), "notes": [], "help": ""}
    return Error(f"{message}: expected {expected}, found {found!r}", facts)


def from_facts(line: str, facts: dict[str, Any]) -> Error:
    return (NoSuchTensor if facts["code"] == NO_SUCH_TENSOR else Error)(line, facts)
