# SPDX-License-Identifier: BSD-3-Clause
"""Lorenzo: the small-file codec. In the library it is kernels/lorenzo/.

Its payload is section 8 of docs/format.md. Prediction and dual quantisation follow cuSZ; residuals go to interleaved
rANS coders whose tables depend on neighbouring residuals, or to a Huffman coder.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pyfilter.codecs.base import Codec
from pyfilter.errors import InvalidArgument


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Lorenzo(Codec):
    """Smaller files: predictions as of `HierarchicalDelta`, residuals by an entropy coder, rANS or Huffman (cuSZ).

    Takes float32 and float64. Every finite value comes back within the bound; NaN, infinities and the dataset's
    fill value come back bit for bit, however many there are. Exactly one of ``absolute``, ``relative``,
    ``pointwise_relative`` and ``psnr`` is given. Chunks should hold 50 000 values or more, because each has its
    own tables. A chunk that would gain nothing is stored as `HierarchicalDelta` stores it.

    Parameters
    ----------
    absolute : float, optional
        Largest error of a value, in the unit of the data; finite and > 0.
    relative : float, optional
        Largest error as a fraction of the range (highest minus lowest finite value, the fill value left out);
        finite and > 0. The HDF5 filter sees one chunk at a time and takes that chunk's range, so the error is
        never larger than the whole array's range would allow. `pyfilter.create_dataset` takes the whole array's.
    pointwise_relative : float, optional
        Largest error of a value as a fraction of that value; > 0 and < 1. Zeros and signs are kept as they are.
    psnr : float, optional
        Lowest peak signal-to-noise ratio in dB, 20 log10(range / root mean square error); > 0 and at most 6000. No
        error is larger than 10^(-psnr / 20) of the range, which is a little stricter; the range is as for ``relative``.
    predictor : {"auto", "chain", "lorenzo2d", "lorenzo3d", "columns"}
        What a value is predicted from. "auto" chooses for each chunk by a sample of it. "chain": the value before
        it. "lorenzo2d", "lorenzo3d": its neighbours along the last two or three dimensions, in tiles of 64 x 64 or
        8 x 16 x 32; these need chunks of at least that rank. "columns": the value above it along the second-last
        dimension, for arrays like (N, 3); needs chunks of rank 2 or more.
    coder : {"rans", "huffman"}
        "rans" makes the smaller files, and is the faster one.
    gap_array : bool
        Whether a Huffman stream says where decoders can start, which GPUs read faster; False only with "huffman".

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Examples
    --------
    >>> Lorenzo(absolute=1e-3)
    Lorenzo(absolute=0.001)
    >>> dict(Lorenzo(relative=1e-4, predictor="chain"))["compression"]
    52907
    """

    codec_name: ClassVar[str] = "lorenzo"

    absolute: float | None = None
    relative: float | None = None
    pointwise_relative: float | None = None
    psnr: float | None = None
    predictor: str = "auto"
    coder: str = "rans"
    gap_array: bool = True

    def __post_init__(self) -> None:
        """Check every field."""
        self._validate()
        if self.coder == "rans" and not self.gap_array:
            message = "gap_array=False goes with coder='huffman' only: other streams have no gap array"
            raise InvalidArgument(message)

    @property
    def edges(self) -> tuple[int, ...]:
        """Extents of a tile; of "auto" those that fit the tiles of a plane and of a volume."""
        return {
            "auto": (8, 64, 64), "chain": (32,), "lorenzo2d": (64, 64), "lorenzo3d": (8, 16, 32), "columns": (1024, 4)
        }[self.predictor]  # fmt: skip
