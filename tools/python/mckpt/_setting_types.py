"""Types of settings, and of paths."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Optional, Union

if TYPE_CHECKING:
    import torch  # type: ignore[import-not-found, unused-ignore]

Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
Int = Optional[int]
Flag = Optional[bool]
Text = Optional[str]
Texts = Union[str, Sequence[str], None]
Place = Optional[Path]
#: "bf16", "fp16", "fp32", as torch spells them or as torch has them; some settings have more words, such as "auto"
DType = Union[str, "torch.dtype", None]
Rules = Optional[Mapping[str, Union[str, "torch.dtype"]]]
