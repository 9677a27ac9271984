# SPDX-License-Identifier: BSD-3-Clause
"""Promises beyond the bound: valid ranges, signs, zeros, and regions (regions.py). rewrite/ and h5.py hold them.

A decoded value may leave a range by up to the bound. So each chunk is decoded once it is encoded. If a decoded value
leaves its range, the chunk is encoded again with about half the bound. Its values are first moved away from the limits
by as much. The decoded values are then within the bound of the original ones, and within the limits. Where that does
not do either, the chunk is stored bit for bit. A chunk that meets a region is encoded to the bound of the region. Any
reader reads them all: each frame says its own bound. HDF5's filter knows none of this, so attributes say what holds.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from pyfilter import dtypes, frames
from pyfilter._chunks import transfer
from pyfilter._lib import abi, host
from pyfilter.codecs import Lossless
from pyfilter.errors import InvalidArgument, Unsupported
from pyfilter.regions import Region, parse_region
from pyfilter.registry import registry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pyfilter._chunks.layout import Region as Slices
    from pyfilter._chunks.pipeline import ChunkCodec

# of the bound: the two moves together stay below it, whatever is rounded
_INNER = 0.499
_RANGE, _SIGN, _REGIONS = (f"lossy_compression_{name}" for name in ("valid_range", "keep_sign", "regions"))


@dataclass(frozen=True)
class Guarantee:
    """Properties that every value keeps besides the bound.

    Attributes
    ----------
    low, high : float
        Values that are in this range stay in it; infinite where there is no limit.
    sign : bool
        Zeros stay zeros, and no value changes to the other sign.
    specials : tuple
        Values that stand for "missing", for which none of it holds.
    regions : tuple of Region
        Parts with a tighter bound. Where they overlap, the tightest counts.

    Raises
    ------
    ValueError
        If the lowest value is above the highest, or a value is no number.
    """

    low: float = -math.inf
    high: float = math.inf
    sign: bool = False
    specials: tuple[np.generic, ...] = ()
    regions: tuple[Region, ...] = ()

    def __post_init__(self) -> None:
        """Check the fields."""
        if not self.low <= self.high:
            message = f"the valid range must be low <= high, got {self.low!r} and {self.high!r}"
            raise InvalidArgument(message)

    @property
    def limits(self) -> bool:
        """Whether values have limits that they must not cross."""
        return self.sign or math.isfinite(self.low) or math.isfinite(self.high)

    @property
    def words(self) -> str:
        """The guarantee in a few words."""
        ranges = [f"valid range {self.low:g} to {self.high:g}"] * (math.isfinite(self.low) or math.isfinite(self.high))
        parts = [f"{region.bound:g} in {str(region).partition('@')[2]}" for region in self.regions]
        return ", ".join([*ranges, *["signs and zeros"] * self.sign, *parts])

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

    def outside(self, before: NDArray[Any], after: NDArray[Any], part: Slices) -> int:
        """Return how many values of a part of the dataset break the bound of a region, in exact arithmetic."""
        from pyfilter.verification import Comparison

        count = 0
        for region in self.regions:
            inside = region.within(part)
            if inside is not None:
                comparison = Comparison(before.dtype, region.bound, self.specials)
                comparison.add(before[inside], after[inside])
                count += comparison.result().violations
        return count

    def violations(self, before: NDArray[Any], after: NDArray[Any], part: Slices) -> int:
        """Return how many values of a part of the dataset break what holds besides the bound."""
        return int(np.count_nonzero(self.broken(before, after))) + self.outside(before, after, part)

    def fitted(self, dataset: h5py.Dataset, masks: h5py.Group | None = None) -> Guarantee:
        """Return the guarantee for a dataset: regions cut to its shape, masks read from its or ``masks``' file."""
        if dataset.dtype.kind not in "fiu":
            message = f"{dataset.name} holds {dataset.dtype}: a bound alone can be held for it, no guarantee"
            raise Unsupported(message)
        found = tuple(region.fitted(dataset, dataset.file if masks is None else masks) for region in self.regions)
        specials = tuple({**_missing(dataset), **{item.tobytes(): item for item in self.specials}}.values())
        return replace(self, regions=found, specials=specials)

    def encode(self, how: ChunkCodec, values: NDArray[Any], origin: Sequence[int] = ()) -> bytes:
        """Return a frame for a chunk for which it holds; ``values`` may be smaller than the chunk at the edge.

        ``origin`` is the chunk's first coordinate, which regions need.
        """
        request = abi.Request.from_buffer_copy(how.request)
        absolute = request.bound_mode == registry().bounds["absolute"]
        bound = self._tightest(values.shape, origin) if self.regions else math.inf
        if how.dtype.kind in "iu" and math.isfinite(bound):
            bound = float(math.floor(bound))
        if math.isfinite(bound) and (bound == 0.0 or not absolute):
            return _lossless(request, transfer.padded(how, values).copy())
        if absolute and bound < request.bound:
            request.bound = bound
        block = transfer.padded(how, values).copy()
        frame = _encoded(request, block)
        if not self.limits or not self.broken(block, frames.decode(frame)).any():
            return frame
        if how.dtype.kind == "f" and absolute:
            bound = request.bound
            request.bound = _INNER * bound
            frame = _encoded(request, self.moved(block, request.bound))
            decoded = frames.decode(frame)
            if not self.broken(block, decoded).any() and _within(block, decoded, how, self, bound):
                return frame
        return _lossless(request, block)

    def _tightest(self, extents: Sequence[int], origin: Sequence[int]) -> float:
        part = tuple(slice(start, start + extent) for start, extent in zip(origin, extents, strict=True))
        return min((item.bound for item in self.regions if item.within(part) is not None), default=math.inf)


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


def describe(dataset: h5py.Dataset, guarantee: Guarantee) -> None:
    """Write what holds as attributes of a dataset, for `of_dataset` and people."""
    texts = {_SIGN: "true"} if guarantee.sign else {}
    if guarantee.regions:
        texts[_REGIONS] = "; ".join(map(str, guarantee.regions))
    for name, text in {"lossy_compression_guarantees": guarantee.words, **texts}.items():
        dataset.attrs.create(name, np.bytes_(text.encode()), dtype=h5py.string_dtype("utf-8", len(text.encode())))
    if math.isfinite(guarantee.low) or math.isfinite(guarantee.high):
        dataset.attrs.create(_RANGE, np.array([guarantee.low, guarantee.high]))


def of_dataset(dataset: h5py.Dataset, masks: h5py.Group | None = None) -> Guarantee | None:
    """Return what the attributes of a dataset say that holds, None for nothing; masks from the file of ``masks``.

    Raises
    ------
    InvalidArgument
        If the attributes cannot be understood, or a mask is gone.
    """
    from pyfilter import checking

    if not any(name in dataset.attrs for name in (_RANGE, _SIGN, _REGIONS)):
        return None
    stated = np.asarray(dataset.attrs.get(_RANGE, (-math.inf, math.inf))).reshape(-1)
    if stated.size != 2 or stated.dtype.kind not in "fiu":
        message = f"{dataset.name}: the attribute {_RANGE} must be two numbers, got {stated!r}"
        raise InvalidArgument(message)
    texts = [text for text in checking.text_attribute(dataset, _REGIONS).split("; ") if text]
    sign = checking.text_attribute(dataset, _SIGN) == "true"
    regions = tuple(parse_region(text) for text in texts)
    return Guarantee(float(stated[0]), float(stated[1]), sign, regions=regions).fitted(dataset, masks)


def write(dataset: h5py.Dataset, how: ChunkCodec | None, source: Any, guarantee: Guarantee, devices: object) -> None:
    """Write a whole dataset so that it holds.

    Raises
    ------
    Unsupported
        If HDF5 itself has to make the chunks, or a device is to do it: neither knows what has to hold.
    """
    if how is None or devices or not isinstance(source, (np.ndarray, h5py.Dataset)):
        why = (
            "the values are on a device"
            if how is not None
            else ("HDF5 itself makes its chunks (another filter, a checksum, driver mpio, or no filter of pyfilter)")
        )
        message = (
            f"{dataset.name}: {guarantee.words} cannot be held, as {why}; write it from host memory, our filter alone"
        )
        raise Unsupported(message)
    if dtypes.native(source.dtype) != how.dtype:
        message = f"{dataset.name}: {guarantee.words} can be held only for values of {how.dtype}, got {source.dtype}"
        raise Unsupported(message)
    transfer.write_chunks(dataset, how, source, encoder=guarantee.encode)


def _missing(dataset: h5py.Dataset) -> dict[bytes, np.generic]:
    from pyfilter.rewrite import plan

    own, change, others = plan.missing_values(dataset)
    return {item.tobytes(): item for item in (own, change, *others) if item is not None}


def _lossless(request: abi.Request, block: NDArray[Any]) -> bytes:
    request.codec, request.bound_mode, request.bound = Lossless.spec().id, registry().bounds["none"], 0.0
    request.parameters[:] = Lossless().parameter_bytes
    return _encoded(request, block)


def _above(value: float, dtype: np.dtype[Any]) -> Any:
    """Return the value in the type, not below it."""
    rounded = dtype.type(value)
    return rounded if float(rounded) >= value else np.nextafter(rounded, dtype.type(math.inf))


def _encoded(request: abi.Request, block: NDArray[Any]) -> bytes:
    buffer = np.empty(host.max_frame_bytes(request), dtype=np.uint8)
    return buffer[: host.encode(request, np.ascontiguousarray(block), buffer)].tobytes()


def _within(before: NDArray[Any], after: NDArray[Any], how: ChunkCodec, guarantee: Guarantee, bound: float) -> bool:
    """Whether every value keeps the dataset's bound, and special values their bits."""
    from pyfilter.verification import Comparison

    fill = how.request.fill if how.request.has_fill else None
    sentinel = None if fill is None else dtypes.value_of(int(fill), how.dtype)
    comparison = Comparison(how.dtype, bound, guarantee.specials, sentinel)
    comparison.add(before, after)
    return comparison.result().ok
