# SPDX-License-Identifier: BSD-3-Clause
"""Particles: the codec of positions. In the library it is kernels/particles/.

Its payload is section 12 of docs/format.md. Segments, sorting inside blocks and the coding of sorted segments follow
GPZ; gaps between sorted keys are Rice codes. `pyfilter.particles` writes groups of fields with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pyfilter.codecs.base import Codec


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Particles(Codec):
    """Positions of particles, arrays (N, 2) or (N, 3), sorted by boxes of space (GPZ).

    Takes float32 and float64. Every finite coordinate comes back within the bound; NaN, infinities and the dataset's
    fill value come back bit for bit. Exactly one of ``absolute``, ``relative`` and ``psnr`` is given. A chunk
    that gains nothing (another shape, or rows in no order of space that must be kept) is stored as `Lorenzo` stores it.

    Parameters
    ----------
    absolute : float, optional
        Largest error of a coordinate, in the unit of the data; finite and > 0.
    relative : float, optional
        Largest error as a fraction of the range (highest minus lowest finite value of all coordinates, the fill value
        left out); finite and > 0. The HDF5 filter takes each chunk's range, `pyfilter.create_dataset` the whole
        array's.
    psnr : float, optional
        Lowest peak signal-to-noise ratio in dB, as for the other codecs; > 0 and at most 6000.
    order : {"kept", "tile", "chunk"}
        What may happen to the order of rows. "kept": nothing. "tile", "chunk": **rows come back in another order**,
        sorted in tiles of 4096 particles or through the whole chunk, which makes files smaller. Use it only where
        nothing else belongs to the rows, and write chunks whole; `pyfilter.particles.write` sorts all fields of the
        particles alike. Needs chunks whose last dimension is 2 or 3.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Examples
    --------
    >>> Particles(absolute=1e-3)
    Particles(absolute=0.001)
    >>> dict(Particles(relative=1e-4, order="chunk"))["compression"]
    52907
    """

    codec_name: ClassVar[str] = "particles"

    absolute: float | None = None
    relative: float | None = None
    psnr: float | None = None
    order: str = "kept"

    def __post_init__(self) -> None:
        """Check every field."""
        self._validate()

    @property
    def edges(self) -> tuple[int, ...]:
        """Extents of a tile."""
        return (4096, 3)
