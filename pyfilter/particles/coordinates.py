# SPDX-License-Identifier: BSD-3-Clause
"""Whether positions that keep their order take fewer bytes coordinate by coordinate (`pyfilter.particles.write`).

An unsorted array (N, 3) is stored as by `Lorenzo`, in chunks of (rows, 3), where neighbours along a row are different
coordinates. In chunks of (rows, 1) each coordinate is stored alone. That is smaller if a coordinate has an order of its
own, as in a crystal or a scan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyfilter import dtypes
from pyfilter.codecs import Cuszp2, HierarchicalDelta, Lorenzo
from pyfilter.frames import encode

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from pyfilter.codecs import Codec

#: the number of sampled chunks, spread over the array, and the most rows encoded of each
SAMPLED_CHUNKS, SAMPLED_ROWS = 3, 1 << 18


def codec_apart(positions: Any, codec: Codec, rows: int, on_host: Callable[[Any], NDArray[Any]]) -> Codec | None:
    """Return the codec that stores each coordinate by itself in fewer bytes than ``codec`` stores them together.

    Up to `SAMPLED_CHUNKS` chunks are encoded both ways, by `Lorenzo`, `HierarchicalDelta` and `Cuszp2` with the same
    bound.

    Parameters
    ----------
    positions : ndarray or cupy.ndarray (N, 2) or (N, 3)
        Coordinates, float32 or float64.
    codec : Codec
        The codec for the particles, such as ``Particles(absolute=0.01)``. Where its bound is not an absolute one,
        coordinates stay together: by itself each would have another range.
    rows : int
        Particles in a chunk, at least 1.
    on_host : callable
        Returns rows of the positions as a NumPy array.

    Returns
    -------
    Codec or None
        None if no such codec is smaller.
    """
    mode, bound = codec.bound
    if mode != "absolute" or len(positions) == 0:
        return None
    chunks = -(-len(positions) // rows)
    sampled = {i * (chunks - 1) // max(1, SAMPLED_CHUNKS - 1) for i in range(SAMPLED_CHUNKS)}
    starts = [chunk * rows for chunk in sorted(sampled)]
    parts = [on_host(positions[start : start + min(rows, SAMPLED_ROWS)]) for start in starts]
    native = [np.ascontiguousarray(part, dtypes.native(part.dtype)) for part in parts]
    least, best = sum(_bytes(part, codec) for part in native), None
    # chains: sampling arrays (rows, 1) sometimes chooses a worse predictor
    others: tuple[Codec, ...] = (
        Lorenzo(absolute=bound, predictor="chain"),
        HierarchicalDelta(absolute=bound, predictor="chain"),
        Cuszp2(absolute=bound),
    )
    for other in others:
        size = sum(_bytes(np.ascontiguousarray(part[:, [i]]), other) for part in native for i in range(part.shape[1]))
        if size < least:
            least, best = size, other
    return best


def _bytes(values: NDArray[Any], codec: Codec) -> int:
    return len(encode(values, codec))
