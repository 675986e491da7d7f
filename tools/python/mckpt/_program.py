"""Where the program `mckpt` is that was installed with this package."""

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
