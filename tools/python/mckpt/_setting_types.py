"""Types of settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Optional, Union

from ._call import Path

if TYPE_CHECKING:
    import torch  # type: ignore[import-not-found, unused-ignore]

Int = Optional[int]
Flag = Optional[bool]
Text = Optional[str]
Texts = Union[str, Sequence[str], None]
Place = Optional[Path]
#: "bf16", "fp16", "fp32", as torch spells them or as torch has them; some settings have more words, such as "auto"
DType = Union[str, "torch.dtype", None]
Rules = Optional[Mapping[str, Union[str, "torch.dtype"]]]
