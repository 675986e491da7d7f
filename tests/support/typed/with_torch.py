"""A user's code with types, torch and numpy; mypy looks at it."""

import mckpt
import mckpt.torch_dcp


def reader(path: str, view: mckpt.Checkpoint) -> list[mckpt.torch_dcp.StorageReader]:
    return [mckpt.torch_dcp.StorageReader(path), mckpt.torch_dcp.StorageReader(view, keep_objects=True)]
