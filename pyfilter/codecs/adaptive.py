# SPDX-License-Identifier: BSD-3-Clause
"""Adaptive: the codec with the smallest files. In the library it is kernels/adaptive/."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pyfilter.codecs.base import Codec


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Adaptive(Codec):
    """The smallest files: predictions trained for each chunk, and an entropy coder with trained contexts.

    Takes float32 and float64, in host memory. Every finite value comes back within the bound; NaN, infinities and the
    dataset's fill value come back bit for bit. Exactly one of ``absolute``, ``relative``, ``pointwise_relative`` and
    ``psnr`` is given. It writes at about a tenth of the speed of `Lorenzo`. Large chunks gain most, because each chunk
    has a model of its own (0.3 to 3 KB); each component of an array ``(N, 3)`` has one, too. A line that resembles
    itself at a lag is predicted like a plane or a volume: particles in the order of a lattice, tides. With
    ``predictor="auto"`` a chunk that `Lorenzo` makes smaller is stored as `Lorenzo` stores it; so is every chunk with
    ``pointwise_relative``.

    Parameters
    ----------
    absolute : float, optional
        Largest error of a value, in the unit of the data; finite and > 0.
    relative : float, optional
        Largest error as a fraction of the range (highest minus lowest finite value, the fill value left out);
        finite and > 0. The HDF5 filter sees one chunk at a time and takes that chunk's range, so the error is
        never larger than the whole array's range would allow. `pyfilter.create_dataset` takes the whole array's.
    pointwise_relative : float, optional
        Largest error of a value as a fraction of that value; > 0 and < 1.
    psnr : float, optional
        Lowest peak signal-to-noise ratio in dB; > 0 and at most 6000. The range is as for ``relative``.
    predictor : {"auto", "regression", "interpolation"}
        "regression": a value is predicted from up to 24 neighbours that are decoded before it, with weights by least
        squares. "interpolation": every second value along each axis first, then the values between them. "auto" tries
        both on a part of the chunk.
    effort : {"best", "fast"}
        "fast": fewer neighbours and fewer predictors to try; written about 1.4 times as fast.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Examples
    --------
    >>> Adaptive(absolute=1e-3)
    Adaptive(absolute=0.001)
    >>> dict(Adaptive(relative=1e-4, effort="fast"))["compression"]
    52907
    """

    codec_name: ClassVar[str] = "adaptive"

    absolute: float | None = None
    relative: float | None = None
    pointwise_relative: float | None = None
    psnr: float | None = None
    predictor: str = "auto"
    effort: str = "best"

    def __post_init__(self) -> None:
        """Check every field."""
        self._validate()

    @property
    def edges(self) -> tuple[int, ...]:
        """Extents of a tile of a volume; a row of tiles of a plane is as high."""
        return (32, 32, 64)
