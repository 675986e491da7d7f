"""How functions of the library are called: errors become exceptions, texts are freed, settings become texts.

    call("mckpt_prove", conversion, 1, None)                  raises Error if it failed
    read_json("mckpt_objects_json", checkpoint)["objects"]
    settings({"tp": 2, "dtype_rule": {"*.router": "fp32"}})   tp=2, dtype_rule=*.router=fp32
"""

from __future__ import annotations

import ctypes
import json
import operator
import os
import weakref
from collections.abc import Mapping
from typing import Any

from ._fields import FLAGS, NUMBERS
from ._library import library
from ._setting_types import Path as Path
from .errors import Error, from_facts, not_allowed


def taken_text(pointer: int) -> bytes:
    """The text of a `char*` that belongs to the caller, which is freed."""
    try:
        return ctypes.string_at(pointer)
    finally:
        library().mckpt_text_free(pointer)


def _taken_error(error: ctypes.c_void_p) -> Error:
    lib = library()
    try:
        line = lib.mckpt_error_text(error).decode("utf-8", "replace")
        return from_facts(line, json.loads(taken_text(lib.mckpt_error_json(error))))
    finally:
        lib.mckpt_error_free(error)


def call(function: str, *arguments: Any) -> Any:
    """Calls a function whose last parameter is the error. Raises what the library stores there."""
    error = ctypes.c_void_p()
    result = getattr(library(), function)(*arguments, ctypes.byref(error))
    if error:
        raise _taken_error(error)
    return result


def read_text(function: str, *arguments: Any) -> str:
    return taken_text(call(function, *arguments)).decode()


def read_json(function: str, *arguments: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(taken_text(call(function, *arguments)))
    return document


class Handle:
    """A handle of the library, which is freed when nothing refers to this object any more. So a handle that one
    thread gives up is not freed below another thread's call."""

    def __init__(self, pointer: int, free: str) -> None:
        self._as_parameter_ = ctypes.c_void_p(pointer)
        weakref.finalize(self, getattr(library(), free), pointer).atexit = False


def name_bytes(text: Path) -> bytes:
    """A path or the name of a tensor. Bytes that are not UTF-8 are kept as Python keeps them in file
    names."""
    given = os.fspath(text)
    encoded = given if isinstance(given, bytes) else given.encode("utf-8", "surrogateescape")
    if b"\0" in encoded:
        raise ValueError(f"a name with a null byte: {text!r}")
    return encoded


def shown_path(path: str) -> str:
    """A path for people: print() refuses the surrogates that stand for bytes that are not UTF-8."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _texts(name: str, value: Any) -> list[str]:
    """The texts of one setting: none, one, or one for each item of a list."""
    if value is None:
        return []
    if name in NUMBERS:
        return [str(whole_number(name, value))]
    if name in FLAGS and not isinstance(value, bool) and str(value) not in ("0", "1"):
        raise not_allowed(name, "True or False", value)  # the library would name the values of C
    if isinstance(value, bool):
        return ["1" if value else "0"]
    if isinstance(value, (str, int, float)):
        return [str(value)]
    if isinstance(value, (bytes, os.PathLike)):
        return [name_bytes(value).decode("utf-8", "surrogateescape")]
    if type(value).__module__ == "torch" and type(value).__name__ in ("dtype", "device"):
        return [str(value).removeprefix("torch.")]
    if isinstance(value, Mapping):
        return [f"{key}={text}" for key, item in value.items() for text in _texts(name, item)]
    if isinstance(value, (list, tuple)):
        return [text for item in value for text in _texts(name, item)]
    raise TypeError(f"the setting {name} has a value of type {type(value).__name__}: {value!r}")


def settings(values: Mapping[str, Any]) -> Any:
    """A list "name=value" as the library reads it. A value that is None leaves the setting out."""
    if isinstance(values.get("names"), (list, tuple)):  # an empty one would mean all tensors
        raise TypeError(f"names is one glob or regular expression, not a list: {values['names']!r}")
    texts = [name_bytes(f"{name}={text}") for name, value in values.items() for text in _texts(name, value)]
    return (ctypes.c_char_p * (len(texts) + 1))(*texts, None)


def call_text(function: str, *arguments: Any, **named: Any) -> str:
    """A call of this package as it was written, for a card that says how it was made: "mckpt.verify('ckpt')"."""
    parts = [repr(a) for a in arguments] + [f"{name}={value!r}" for name, value in named.items() if value is not None]
    return f"mckpt.{function}({', '.join(parts)})"


def whole_number(name: str, value: Any) -> int:
    """A number of any setting or parameter: an int, or an integer of another library such as numpy's. A text or a float is
    refused with the words of the library, whatever its value."""
    try:
        return operator.index(value)
    except TypeError:
        raise not_allowed(name, "a whole number", value) from None


def threads_for_c(threads: Any) -> int:
    """For a parameter of the library that is an int. Raises Error where ctypes would cut it."""
    number = whole_number("threads", threads)
    if not -(2**31) <= number < 2**31:
        raise not_allowed("threads", "a number of 31 bits", number)
    return number


def thread_count(threads: int | None) -> int:
    """None: as many as there are processors to run on."""
    return len(os.sched_getaffinity(0)) if threads is None else threads_for_c(threads)
