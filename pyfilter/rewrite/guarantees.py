# SPDX-License-Identifier: BSD-3-Clause
"""Promises beyond the bound: values stay in their valid range, positive and negative ones keep their sign, zeros stay.

A decoded value may leave a range by up to the bound. So each chunk is decoded once it is encoded. Where a value has
left its range, the chunk is encoded again with about half the bound, from values that were moved away from the limits
by as much: what comes back is within the bound of the original, and cannot reach beyond the limit. Where that does not
do either, the chunk is stored bit for bit. Any reader reads all three.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pyfilter import dtypes, frames
from pyfilter._chunks import transfer
from pyfilter._lib import abi, host
from pyfilter.codecs import Lossless
from pyfilter.errors import InvalidArgument
from pyfilter.registry import registry

if TYPE_CHECKING:
    import h5py
    from numpy.typing import NDArray

    from pyfilter._chunks.pipeline import ChunkCodec

# of the bound: the two moves together stay below it, whatever is rounded
_INNER = 0.499


@dataclass(frozen=True)
class Guarantee:
    """What holds for every value besides the bound.

    Attributes
    ----------
    low, high : float
        Values that are in this range stay in it; infinite where there is no limit.
    sign : bool
        Zeros stay zeros, and no value changes to the other sign.
    specials : tuple
        Values that stand for "missing", for which none of it holds.
    """

    low: float = -math.inf
    high: float = math.inf
    sign: bool = False
    specials: tuple[np.generic, ...] = ()

    @property
    def words(self) -> str:
        """What holds, in a few words."""
        ranges = [f"valid range {self.low:g} to {self.high:g}"] * (math.isfinite(self.low) or math.isfinite(self.high))
        return ", ".join([*ranges, *["signs and zeros"] * self.sign])

    def broken(self, before: NDArray[Any], after: NDArray[Any]) -> NDArray[np.bool_]:
        """Return where it does not hold; both arrays of one shape and type."""
        inside = (before >= self.low) & (before <= self.high)
        wrong = inside & ~((after >= self.low) & (after <= self.high))
        if self.sign:
            wrong |= (np.sign(after) * np.sign(before) < 0) | ((before == 0) & (after != 0))
        for special in self.specials:
            wrong &= before != special
        if before.dtype.kind == "f":
            wrong &= np.isfinite(before)
        return np.asarray(wrong)

    def moved(self, values: NDArray[Any], distance: float) -> NDArray[Any]:
        """Return values that are at least ``distance`` away from the limits that they must not cross."""
        found: NDArray[Any] = values.copy()
        ordinary = np.isfinite(values)
        for special in self.specials:
            ordinary &= values != special
        dtype = values.dtype
        inside = ordinary & (values >= self.low) & (values <= self.high)
        if math.isfinite(self.low):
            np.maximum(found, _above(self.low + distance, dtype), out=found, where=inside)
        if math.isfinite(self.high):
            np.minimum(found, -_above(distance - self.high, dtype), out=found, where=inside)
        if self.sign:
            near = _above(distance, dtype)
            np.maximum(found, near, out=found, where=ordinary & (values > 0))
            np.minimum(found, -near, out=found, where=ordinary & (values < 0))
        return found

    def encode(self, how: ChunkCodec, values: NDArray[Any]) -> bytes:
        """Return a frame for a chunk for which it holds; ``values`` may be smaller than the chunk at the edge."""
        frame = transfer.encode_chunk(how, values)
        block = transfer.padded(how, values).copy()
        if not self.broken(block, frames.decode(frame)).any():
            return frame
        request = abi.Request.from_buffer_copy(how.request)
        if how.dtype.kind == "f" and request.bound_mode == registry().bounds["absolute"]:
            request.bound = _INNER * how.request.bound
            frame = _encoded(request, self.moved(block, request.bound))
            if not self.broken(block, decoded := frames.decode(frame)).any() and _within(block, decoded, how, self):
                return frame
        request.codec, request.bound_mode, request.bound = Lossless.spec().id, registry().bounds["none"], 0.0
        request.parameters[:] = Lossless().parameter_bytes
        return _encoded(request, block)


def of_attributes(dataset: h5py.Dataset) -> tuple[float, float]:
    """Return the valid range that a dataset's attributes state, as CF has them; infinite where they state none."""
    low, high = -math.inf, math.inf
    for name, places in (("valid_range", (0, 1)), ("valid_min", (0, None)), ("valid_max", (None, 0))):
        with contextlib.suppress(OSError, TypeError, KeyError, ValueError):
            stated = np.asarray(dataset.attrs[name]).reshape(-1)
            if stated.dtype.kind not in "fiu" or stated.size != sum(place is not None for place in places):
                continue
            if places[0] is not None:
                low = float(stated[places[0]])
            if places[1] is not None:
                high = float(stated[places[1]])
    return (low, high) if low <= high else (-math.inf, math.inf)


def parse_range(text: str) -> tuple[str, tuple[float, float]]:
    """Return the variable and the limits in NAME=LOW:HIGH; either limit may be left out.

    Raises
    ------
    InvalidArgument
        If it is another text, or the limits are none.
    """
    name, equals, limits = text.rpartition("=")
    first, colon, second = limits.partition(":")
    with contextlib.suppress(ValueError):
        low, high = float(first or "-inf"), float(second or "inf")
        if name and equals and colon and low <= high:
            return name, (low, high)
    message = f"--range must be NAME=LOW:HIGH with LOW <= HIGH, one of them may be left out; got {text!r}"
    raise InvalidArgument(message)


def _above(value: float, dtype: np.dtype[Any]) -> Any:
    """Return the value in the type, not below it."""
    rounded = dtype.type(value)
    return rounded if float(rounded) >= value else np.nextafter(rounded, dtype.type(math.inf))


def _encoded(request: abi.Request, block: NDArray[Any]) -> bytes:
    buffer = np.empty(host.max_frame_bytes(request), dtype=np.uint8)
    return buffer[: host.encode(request, np.ascontiguousarray(block), buffer)].tobytes()


def _within(before: NDArray[Any], after: NDArray[Any], how: ChunkCodec, guarantee: Guarantee) -> bool:
    """Whether every value keeps the bound that the dataset has, and special ones their bits."""
    from pyfilter.verification import Comparison

    fill = how.request.fill if how.request.has_fill else None
    sentinel = None if fill is None else dtypes.value_of(int(fill), how.dtype)
    comparison = Comparison(how.dtype, how.request.bound, guarantee.specials, sentinel)
    comparison.add(before, after)
    return comparison.result().ok
