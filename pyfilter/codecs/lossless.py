# SPDX-License-Identifier: BSD-3-Clause
"""Lossless: every value back bit for bit. In the library it is kernels/lossless/, its payload docs/format.md."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pyfilter.codecs.base import Codec
from pyfilter.errors import InvalidArgument


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Lossless(Codec):
    """Every value comes back bit for bit; takes floats, complex numbers, integers and bool.

    Parameters
    ----------
    effort : {"fast", "ratio"}
        "fast": differences of neighbouring bit patterns in the block layout of `Cuszp2`, at memory speed. "ratio":
        values as multiples of a common fraction where they are, differences along the axes that need the fewest bits,
        and an entropy coder; half the size or less, at a tenth of the speed. Chunks of 64 KB or more gain most. Encoded
        and decoded on the CPU.
    block_dims : {1, 2, 3}
        With effort "fast": blocks of 32 values in a row, of 8 x 8, or of 4 x 4 x 4 values of the last dimensions of a
        chunk. With "ratio" it stays 1.

    Raises
    ------
    ValueError
        If an argument is another value, or ``block_dims`` is not 1 with effort "ratio".

    Examples
    --------
    >>> Lossless()
    Lossless()
    >>> Lossless(effort="ratio")
    Lossless(effort='ratio')
    """

    codec_name: ClassVar[str] = "lossless"

    effort: str = "fast"
    block_dims: int = 1

    def __post_init__(self) -> None:
        """Check every field."""
        self._validate()
        if self.effort == "ratio" and self.block_dims != 1:
            message = f'block_dims={self.block_dims} goes with effort="fast" only: effort="ratio" has no blocks'
            raise InvalidArgument(message)
