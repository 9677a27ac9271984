# SPDX-License-Identifier: BSD-3-Clause
"""A variable in pieces: a sample to search on, and all of it, compressed and decoded chunk by chunk, to verify."""

from __future__ import annotations

import functools
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from pyfilter import dtypes, frames, settings
from pyfilter._chunks import layout, transfer
from pyfilter._lib import library
from pyfilter.codecs import HierarchicalDelta
from pyfilter.errors import InvalidArgument, Unsupported
from pyfilter.frames import make_request
from pyfilter.rewrite import alternatives
from pyfilter.rewrite.plan import chunk_of, missing_values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from pyfilter._chunks.layout import Region
    from pyfilter.codecs.base import Codec
    from pyfilter.recommendation.metrics import Metric

SAMPLE_BYTES = 8 << 20
_PIECE_BYTES = 2 << 20
_WIDEST = 1024  # values of a plane's row or column in a sample
_SLAB_BYTES = 8 << 20  # that a thread works on; measures need some ten arrays of float64 of it
_EDGES = (8, 64, 64)
_MANY, _FAR = 0.001, 1000.0  # a value this frequent and this far outside the others stands for "missing"
_TYPE_ONLY = HierarchicalDelta(absolute=1.0)  # a request for the range says the type only


@dataclass(frozen=True)
class Variable:
    """Values, and the facts about them.

    Attributes
    ----------
    name : str
        What to call it.
    source : h5py.Dataset or numpy.ndarray
        float32 or float64, of one dimension or more.
    chunk : tuple of int
        The chunk shape in which `pyfilter compress` would store it.
    fill : scalar or None
        What becomes the fill value.
    specials : tuple
        All values that stand for "missing".
    """

    name: str
    source: Any
    chunk: tuple[int, ...]
    fill: np.generic | None
    specials: tuple[np.generic, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return tuple(self.source.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Its type in the machine's byte order."""
        return dtypes.native(self.source.dtype)

    @property
    def nbytes(self) -> int:
        """Size of its values."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    def read(self, region: Region) -> NDArray[Any]:
        """Return a part of it."""
        return np.ascontiguousarray(self.source[region], dtype=self.dtype)

    def plain(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values with NaN in place of missing ones; the same array where there are none."""
        found = values
        for special in self.specials:
            hits = values == special
            if hits.any():
                found = np.where(hits, self.dtype.type(np.nan), found)
        return found

    def limits(self) -> tuple[float, float] | None:
        """Return the lowest and the highest finite value of all of it; None where there are none."""
        low, high = np.inf, -np.inf
        request = make_request(_TYPE_ONLY, self.dtype, ())
        for region in layout.slabs(self.shape, self.chunk, self.dtype.itemsize, _SLAB_BYTES):
            values = self.plain(self.read(region))
            found = transfer.value_range(values, request, values.shape)
            if found is not None:
                low, high = min(low, found[0]), max(high, found[1])
        return (low, high) if low <= high else None

    def sample(self) -> list[NDArray[Any]]:
        """Return evenly spread parts of it, planes as whole as they may be."""
        rank = len(self.shape)
        block = [min(extent, _WIDEST) if axis >= rank - 2 else 1 for axis, extent in enumerate(self.shape)]
        if rank == 1:
            block = [min(self.shape[0], _PIECE_BYTES // self.dtype.itemsize)]
        for axis in reversed(range(max(rank - 2, 0))):
            room = _PIECE_BYTES // (int(np.prod(block)) * self.dtype.itemsize)
            block[axis] = max(min(room, self.shape[axis]), 1)
        regions = alternatives.sample_regions(self.shape, tuple(block), self.dtype.itemsize, SAMPLE_BYTES)
        return [self.read(region) for region in regions]


def variable_of(source: Any, name: str, fill_value: object = None) -> Variable:
    """Return a dataset or array, and the facts about it.

    Raises
    ------
    Unsupported
        If it has no values, no dimensions, or is not of float32 or float64.
    """
    shape = tuple(source.shape or ())
    if not shape or 0 in shape or source.dtype.kind != "f" or not dtypes.is_base(source.dtype):
        message = f"{name}: a bound is recommended for arrays of float32 or float64; got {source.dtype}, shape {shape}"
        raise Unsupported(message)
    dtype = dtypes.native(source.dtype)
    edges = _EDGES[-len(shape) :]
    if isinstance(source, h5py.Dataset):
        fill, _, others = missing_values(source)
        chunk = chunk_of(source, edges)
    else:
        fill, others = None, ()
        chunk = layout.choose(shape, dtype.itemsize, None, edges)
    if fill_value is not None:
        fill = dtypes.value_of(dtypes.pattern(fill_value, dtype), dtype)
    specials = tuple(value for value in (fill, *others) if value is not None)
    chunk = tuple(min(edge, extent) for edge, extent in zip(chunk, shape, strict=True))
    return Variable(name, source, chunk, fill, specials)


def require_declared(variable: Variable, blocks: Sequence[NDArray[Any]], limits: tuple[float, float] | None) -> None:
    """Refuse a variable with one value for "missing", far outside all others, that nobody has declared.

    Raises
    ------
    InvalidArgument
        With that value.
    """
    values = np.concatenate([block.reshape(-1) for block in (variable.plain(item) for item in blocks)])
    for limit in limits or ():
        hits = values == limit
        rest = values[~hits & np.isfinite(values)]
        count = int(np.count_nonzero(hits))
        if rest.size and count > _MANY * values.size and abs(limit) > _FAR * float(np.abs(rest).max()):
            message = (
                f"{variable.name}: {count / values.size:.0%} of its values are {limit:.6g}, far outside all others: "
                "declare it as _FillValue, or give it as fill_value"
            )
            raise InvalidArgument(message)


@dataclass(frozen=True)
class Measured:
    """The outcome of a codec on values: bytes, the largest error, and the sums of each measure."""

    stored_bytes: int
    max_error: float
    sums: tuple[NDArray[np.float64], ...]


def measure_blocks(
    variable: Variable, blocks: Sequence[NDArray[Any]], codec: Codec, metrics: Sequence[Metric]
) -> Measured:
    """Compress and decode blocks, each as one chunk, and measure what comes back."""
    with _pool() as pool:
        jobs = [functools.partial(_measured, variable, block, [(..., block)], codec, metrics) for block in blocks]
        return _together(metrics, (item.result() for item in [pool.submit(job) for job in jobs]))


def measure_all(
    variable: Variable, codec: Codec, metrics: Sequence[Metric], progress: Callable[[int], None] | None = None
) -> Measured:
    """Compress and decode all chunks of a variable, and measure what comes back, in pieces of whole chunks."""

    def results() -> Iterator[Measured]:
        waiting: deque[Future[Measured]] = deque()
        count = settings.config().threads
        with _pool() as pool:
            for region in layout.slabs(variable.shape, variable.chunk, variable.dtype.itemsize, _SLAB_BYTES):
                block = variable.read(region)
                first = [part.start for part in region]
                chunks = []
                for origin in layout.origins(variable.shape, variable.chunk, region):
                    place = layout.shifted(layout.box(origin, variable.chunk, variable.shape), first)
                    chunks.append((place, block[place]))
                waiting.append(pool.submit(_measured, variable, block, chunks, codec, metrics))
                if len(waiting) > count:
                    yield waiting.popleft().result()
                if progress is not None:
                    progress(block.size)
            while waiting:
                yield waiting.popleft().result()

    return _together(metrics, results())


def _pool() -> ThreadPoolExecutor:
    alone = functools.partial(library.configure, "local_threads", "1")
    return ThreadPoolExecutor(settings.config().threads, thread_name_prefix="pyfilter", initializer=alone)


def _measured(
    variable: Variable,
    block: NDArray[Any],
    chunks: Sequence[tuple[Any, NDArray[Any]]],
    codec: Codec,
    metrics: Sequence[Metric],
) -> Measured:
    decoded = np.empty_like(block)
    stored = 0
    for place, values in chunks:
        frame = frames.encode(values, codec, variable.fill)
        stored += len(frame)
        decoded[place] = frames.decode(frame)
    original = variable.plain(block)
    there = np.isfinite(original)
    after = np.where(there, decoded, variable.dtype.type(np.nan))
    error = float(np.max(np.abs(after[there].astype(np.float64) - original[there]), initial=0.0))
    return Measured(stored, error, tuple(metric.measure(original, after) for metric in metrics))


def _together(metrics: Sequence[Metric], parts: Iterator[Measured]) -> Measured:
    total = next(parts)
    for part in parts:
        sums = tuple(
            metric.merged(before, more) for metric, before, more in zip(metrics, total.sums, part.sums, strict=True)
        )
        total = Measured(total.stored_bytes + part.stored_bytes, max(total.max_error, part.max_error), sums)
    return total
