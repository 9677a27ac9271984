# SPDX-License-Identifier: BSD-3-Clause
"""Progressive: data that are read as precisely as the question needs. In the library it is kernels/progressive/.

Its payload is section 13 of docs/format.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pyfilter.codecs.base import Codec


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Progressive(Codec):
    """From coarse to fine, so that a reader fetches only what its tolerance needs (HP-MDR, PMGARD).

    Takes float32 and float64. Any HDF5 reader gets the full precision; `pyfilter.progressive` reads to a tolerance.

    Parameters
    ----------
    absolute, relative, psnr : float, optional
        The bound at full precision; at most one of them: in the unit of the data, as a fraction of the value range, or
        in decibels. Without one the values are kept nearly as they are: within 2**-28 (float32) or 2**-57 (float64) of
        the power of two above the chunk's largest magnitude.
    errors : {"measured", "bounds"}
        "measured": errors reported to readers are measured if that pays. Writing takes longer, and reads at loose
        tolerances need fewer bytes. "bounds": all errors are proven bounds.

    Raises
    ------
    ValueError
        If there is more than one bound, or one is not a finite number above 0 (`pyfilter.errors.InvalidArgument`).

    Examples
    --------
    >>> Progressive()
    Progressive()
    >>> Progressive(absolute=1e-6, errors="bounds")
    Progressive(absolute=1e-06, errors='bounds')

    Notes
    -----
    Source: Li et al., *HP-MDR: High-performance and portable data refactoring and progressive retrieval with advanced
    GPUs* (2025); Liang et al., *Error-controlled, progressive, and adaptable retrieval of scientific data with
    multilevel decomposition* (SC'21). kernels/progressive/FORMAT.md lists the differences.
    """

    codec_name: ClassVar[str] = "progressive"

    absolute: float | None = None
    relative: float | None = None
    psnr: float | None = None
    errors: str = "measured"

    def __post_init__(self) -> None:
        self._validate()

    @property
    def is_lossless(self) -> bool:
        """False: also without a bound values are rounded, if to many more bits than most data have."""
        return False
