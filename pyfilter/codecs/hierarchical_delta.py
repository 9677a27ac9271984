# SPDX-License-Identifier: BSD-3-Clause
"""HierarchicalDelta: the dense codec. In the library it is kernels/hierarchical_delta/.

Its payload is section 7 of docs/format.md. The scheme follows AATROX: differences run through whole tiles, and only a
tile's first value is stored whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pyfilter.codecs.base import Codec


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class HierarchicalDelta(Codec):
    """Small files, fast: values predicted from neighbours in a tile of 4096, residuals as bit planes (AATROX).

    Takes float32 and float64, and integers of 8 to 64 bits. Every finite value comes back within the bound; NaN,
    infinities and the dataset's fill value come back bit for bit. Exactly one of ``absolute``, ``relative``,
    ``pointwise_relative`` and ``psnr`` is given.

    The bound of integers is rounded down to an integer; 0 keeps every bit. It is at most 2^30 (2^62 for 64 bits). Its
    unit is the stored integers' own, even if netCDF's ``scale_factor`` turns them into other numbers.

    Parameters
    ----------
    absolute : float, optional
        Largest error of a value, in the unit of the data; finite and > 0, for integers also 0.
    relative : float, optional
        Largest error as a fraction of the range (highest minus lowest finite value, the fill value left out);
        finite and > 0. The HDF5 filter sees one chunk at a time and takes that chunk's range, so the error is
        never larger than the dataset's range would allow. `pyfilter.create_dataset` takes the whole array's.
    pointwise_relative : float, optional
        Largest error of a value as a fraction of that value; > 0 and < 1. Zeros and signs are kept as they are. Not
        for integers.
    psnr : float, optional
        Lowest peak signal-to-noise ratio in dB, 20 log10(range / root mean square error); > 0 and at most 6000. No
        error is larger than 10^(-psnr / 20) of the range, which is a little stricter; the range is as for ``relative``.
    predictor : {"auto", "fast", "chain", "lorenzo2d", "lorenzo3d", "columns"}
        What a value is predicted from. "auto" chooses for each chunk by a sample of it. "fast" does too, but takes the
        chain unless another needs less than three quarters of its bits. "chain": the value before
        it, in tiles of 4096 values in a row. "lorenzo2d", "lorenzo3d": its neighbours along the last two or three
        dimensions, in tiles of 64 x 64 or 8 x 16 x 32; these need chunks of at least that rank. "columns": the value
        above it along the second-last dimension, for arrays like (N, 3); needs chunks of rank 2 or more.
    outliers : {"auto", "on", "off"}
        Whether a block's widest difference may be stored apart, which makes frames smaller and takes longer. "auto"
        is off with the predictors "chain", which is then the fastest, and "fast", and on with all others.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Examples
    --------
    >>> HierarchicalDelta(absolute=1e-3)
    HierarchicalDelta(absolute=0.001)
    >>> HierarchicalDelta(absolute=2)  # of integers
    HierarchicalDelta(absolute=2.0)
    >>> dict(HierarchicalDelta(relative=1e-4, predictor="chain"))["compression"]
    52907
    """

    codec_name: ClassVar[str] = "hierarchical_delta"

    absolute: float | None = None
    relative: float | None = None
    pointwise_relative: float | None = None
    psnr: float | None = None
    predictor: str = "auto"
    outliers: str = "auto"

    def __post_init__(self) -> None:
        """Check every field."""
        self._validate()

    @property
    def edges(self) -> tuple[int, ...]:
        """Extents of a tile; of "auto" those that fit the tiles of a plane and of a volume."""
        open_ones = {"auto": (8, 64, 64), "fast": (8, 64, 64)}
        named = {"chain": (32,), "lorenzo2d": (64, 64), "lorenzo3d": (8, 16, 32), "columns": (1024, 4)}
        return {**open_ones, **named}[self.predictor]
