"""mckpt converts, inspects and proves checkpoints of large language models.

This package brings the program `mckpt`: program() is its path, and `python -m mckpt ...` runs it.
"""

import ctypes
import importlib.metadata
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def program() -> Path:
    """The program that was installed with this package.

    A package of its own folder (`pip install --target`) has it in bin/ beside it; elsewhere the list of installed
    files says where it is, which differs between environments, users and systems.
    """
    places = [_PACKAGE.parent / "bin" / "mckpt"]
    try:
        installed = importlib.metadata.distribution("mckpt").files or []
    except importlib.metadata.PackageNotFoundError:
        installed = []
    places += [Path(file.locate()).resolve() for file in installed if file.parts[-2:] == ("bin", "mckpt")]
    for place in places:
        if place.is_file():
            return place
    raise FileNotFoundError(
        "the program mckpt was installed with this package, but is in none of: "
        + ", ".join(map(str, places))
        + "; install the package again"
    )


def __getattr__(name: str) -> str:
    # The library knows its version; it is loaded when somebody asks.
    if name == "__version__":
        library = ctypes.CDLL(str(_PACKAGE / "lib" / "libmckpt.so"))
        library.mckpt_version.restype = ctypes.c_char_p
        return library.mckpt_version().decode()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
