# SPDX-License-Identifier: BSD-3-Clause
"""Cuszp2: the fast codec. In the library it is kernels/cuszp2/, its payload docs/format.md."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pyfilter.codecs.base import Codec


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Cuszp2(Codec):
    """The fastest: quantised differences in independent blocks, each as wide as its widest difference (cuSZp2).

    Takes float32 and float64. Every finite value comes back within the bound; NaN, infinities and the dataset's
    fill value come back bit for bit. Exactly one of ``absolute``, ``relative`` and ``psnr`` is given.

    Parameters
    ----------
    absolute : float, optional
        Largest error of a value, in the unit of the data; finite and > 0.
    relative : float, optional
        Largest error as a fraction of the range (highest minus lowest finite value, the fill value left out);
        finite and > 0. The HDF5 filter sees one chunk at a time and takes that chunk's range, so the error is
        never larger than the dataset's range would allow. `pyfilter.create_dataset` takes the whole array's.
    psnr : float, optional
        Lowest peak signal-to-noise ratio in dB, 20 log10(range / root mean square error); > 0 and at most 6000. No
        error is larger than 10^(-psnr / 20) of the range, which is a little stricter; the range is as for ``relative``.
    mode : {"outlier", "plain", "fixed"}
        "outlier" stores the first difference of a block apart where that is shorter, "plain" does not, "fixed"
        stores the values of a block without differences.
    block_dims : {1, 2, 3}
        Blocks of 32 values in a row, of 8 x 8, or of 4 x 4 x 4 values of the last dimensions of a chunk.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Examples
    --------
    >>> Cuszp2(absolute=1e-3)
    Cuszp2(absolute=0.001)
    >>> dict(Cuszp2(relative=1e-4))["compression"]
    52907
    """

    codec_name: ClassVar[str] = "cuszp2"

    absolute: float | None = None
    relative: float | None = None
    psnr: float | None = None
    mode: str = "outlier"
    block_dims: int = 1

    def __post_init__(self) -> None:
        """Check every field."""
        self._validate()
