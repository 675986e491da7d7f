"""Where the program `mckpt` of this package is."""

import csv
import importlib.metadata
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def program() -> Path:
    """The program that was installed with this package, or was built with it.

    A package of its own folder (`pip install --target`) has it in bin/ beside it; elsewhere the list of installed
    files says where it is, which differs between environments, users and systems. A package without a list is in
    lib/python of an installed folder, or in tools/python of its source tree. $PATH may have another version.
    """
    places = [_PACKAGE.parent / "bin" / "mckpt"]
    try:
        # The list itself: .files has only what is there since Python 3.12, and an error has to say what is missing.
        record = importlib.metadata.distribution("mckpt").read_text("RECORD") or ""
    except importlib.metadata.PackageNotFoundError:
        record = ""
    for row in csv.reader(record.splitlines()):
        if row and Path(row[0]).parts[-2:] == ("bin", "mckpt"):
            places.append((_PACKAGE.parent / row[0]).resolve())
    places += [_PACKAGE.parent.parent.parent / folder / "mckpt" for folder in ("bin", "build")]
    for place in places:
        if place.is_file():
            return place
    help = "install the package again, or build it: cmake --build build --target mckpt"
    raise FileNotFoundError(f"the program mckpt of this package is in none of: {', '.join(map(str, places))}; {help}")
