"""mckpt: checkpoints of language models, opened, read, converted and verified.

    import mckpt

    with mckpt.open("Qwen3-0.6B") as ckpt:
        ckpt["model.norm.weight"][:16].numpy(raw=True)
    mckpt.convert("Qwen3-0.6B", "ckpt", to="fsdp", tp=2)
    mckpt.verify("ckpt", against="Qwen3-0.6B").equal
    mckpt.load("Qwen3-0.6B", device="cuda:0").torch()

Nothing but the standard library and libmckpt.so is needed; numpy and torch are imported when a function that is
named after them is called; mckpt.torch_dcp, which torch.distributed.checkpoint uses, imports torch. The program is in the package too: program() is its path, `python -m mckpt` runs it.
"""

import importlib
from typing import Any

from ._library import version
from ._program import program
from .checkpoint import Checkpoint, open, open_as_fsdp, tensors
from .conversion import Conversion, convert, export, plan
from .difference import Diff, DiffRow, diff
from .errors import Error, NoSuchTensor
from .load import Loaded, LoadedTensor, load
from .picture import plot
from .progress import Progress
from .report import Report, verify
from .tensor import Tensor
from .values import Account, Check, Chunk, Difference, Finding, Note, Object, OutputFile, RunReport, Statistics

__all__ = [
    "Account",
    "Check",
    "Checkpoint",
    "Chunk",
    "Conversion",
    "Diff",
    "DiffRow",
    "Difference",
    "Error",
    "Finding",
    "Loaded",
    "LoadedTensor",
    "NoSuchTensor",
    "Note",
    "Object",
    "OutputFile",
    "Progress",
    "Report",
    "RunReport",
    "Statistics",
    "Tensor",
    "convert",
    "diff",
    "export",
    "load",
    "open",
    "open_as_fsdp",
    "plan",
    "plot",
    "program",
    "tensors",
    "verify",
    "version",
]


def __getattr__(name: str) -> Any:
    # The library knows its version; it is loaded when somebody asks. And torch_dcp imports torch.
    if name == "__version__":
        return version()
    if name == "torch_dcp":
        return importlib.import_module(".torch_dcp", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
