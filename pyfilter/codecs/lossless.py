# SPDX-License-Identifier: BSD-3-Clause
"""Lossless: every value back bit for bit. In the library it is kernels/lossless/, its payload docs/format.md."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pyfilter.codecs.base import Codec


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Lossless(Codec):
    """Every value bit for bit: differences of neighbouring bit patterns in the blocks of `Cuszp2`.

    Takes float32, float64 and integers of 8 to 64 bits.

    Parameters
    ----------
    block_dims : {1, 2, 3}
        Blocks of 32 values in a row, of 8 x 8, or of 4 x 4 x 4 values of the last dimensions of a chunk.

    Raises
    ------
    ValueError
        If ``block_dims`` is another value.

    Examples
    --------
    >>> Lossless()
    Lossless()
    """

    codec_name: ClassVar[str] = "lossless"

    block_dims: int = 1

    def __post_init__(self) -> None:
        """Check every field."""
        self._validate()
