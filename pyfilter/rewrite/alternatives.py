# SPDX-License-Identifier: BSD-3-Clause
"""The alternatives for storing a variable, tried on a sample: our codecs, HDF5's own filters, or unchanged.

plan.py asks for the smallest before the copy is made. copy.py asks again when a variable is written: a sample may
mislead, the size of the whole does not.
"""

from __future__ import annotations

import math
import zlib
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from h5py import h5d

from pyfilter import dtypes, frames, settings
from pyfilter._chunks import layout, transfer
from pyfilter.codecs import Adaptive, HierarchicalDelta, Lorenzo, Lossless
from pyfilter.rewrite import values

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import h5py
    from numpy.typing import NDArray

    from pyfilter._chunks.layout import Region
    from pyfilter.codecs.base import Codec

#: HDF5's deflate at the level at which `nccopy -d5 -s` and most archives have it, or a little denser
DEFLATE_LEVEL = 6
#: bytes of a variable that each candidate compresses, and of one piece of them
SAMPLE_BYTES = 8 << 20
PIECE_BYTES = 4 << 20
_MOST_PIECES = 32
#: the denser and slower codec has to save this share of the other's bytes
WORTH = 0.02
#: HDF5's own filters are preferred for bit-exact data if they cost at most this share more bytes
_READABLE = 0.05
#: where shuffle + deflate came this close on the sample, its size is measured on the whole variable
_CLOSE = 1.25
_INDEX_ENTRIES = 48  # chunks in a node of HDF5's index (a B-tree of version 1), which has room for 64


@dataclass(frozen=True)
class ShuffleDeflate:
    """HDF5's own filters, which every program has: bytes of one place of all values together, then deflate (zlib)."""

    level: int = DEFLATE_LEVEL

    @property
    def bound(self) -> tuple[str, float]:
        """As a codec has it: every bit comes back."""
        return "none", 0.0

    @property
    def is_lossless(self) -> bool:
        """As a codec has it."""
        return True

    def __repr__(self) -> str:
        return f"shuffle + deflate(level={self.level})"

    def size(self, block: NDArray[Any]) -> int:
        """Return the bytes that HDF5 stores for a chunk of these values."""
        planes = np.ascontiguousarray(block).view(np.uint8).reshape(-1, block.dtype.itemsize).T
        return len(zlib.compress(planes.tobytes(), self.level))


@dataclass(frozen=True)
class Choice:
    """The result on a sample.

    Attributes
    ----------
    codec : Codec, ShuffleDeflate or None
        The smallest; None: the variable as it is stored.
    kept_bytes : int or None
        What the variable has in the input; None where it has nothing there (external, virtual).
    deflated_bytes : int
        What shuffle + deflate is expected to need.
    expected_bytes : int
        What ``codec`` is expected to need.
    """

    codec: Codec | ShuffleDeflate | None
    kept_bytes: int | None
    deflated_bytes: int
    expected_bytes: int


def candidates(codec: Codec, dtype: np.dtype[Any], number: bool, *, fast: bool) -> list[Codec | ShuffleDeflate]:
    """Return what may take the place of a codec, the fastest first.

    Parameters
    ----------
    codec
        The requested codec: its bound holds for all candidates, and none is lossy if it is lossless.
    dtype
        The element type.
    number
        Whether our codecs take it.
    fast
        Without the slow ones.
    """
    found: list[Codec | ShuffleDeflate] = []
    if number and codec.is_lossless:
        found = [Lossless()] if dtype.kind in "fc" else [HierarchicalDelta(absolute=0), Lossless()]
        if not fast:
            found.append(Lossless(effort="ratio"))
    elif number:
        mode, bound = codec.bound
        limits: dict[str, Any] = {mode: bound}
        found = [HierarchicalDelta(**limits)]
        if dtype.kind in "fc":
            found.append(Lorenzo(**limits))
            if not fast and mode != "pointwise_relative":  # that is Lorenzo's frame
                found.append(Adaptive(**limits))
    return [*found, ShuffleDeflate()]


def choose(
    dataset: h5py.Dataset,
    codec: Codec,
    chunk: tuple[int, ...],
    fill: np.generic | None,
    *,
    number: bool,
    fast: bool = False,
) -> Choice:
    """Return the smallest way to store a dataset, by a sample of it.

    Parameters
    ----------
    dataset
        Of a type of fixed size without references.
    codec
        The requested codec, with an absolute bound, a pointwise relative one, or none.
    chunk
        The chunk shape of the copy.
    fill
        The copy's fill value; None for zero.
    number
        Whether our codecs take its type.
    fast
        Without codecs that write less than a few hundred MB a second on a core.
    """
    blocks = list(_sample(dataset, chunk, number))
    share = sum(block.size for block in blocks) / max(dataset.size, 1)
    index = index_bytes(dataset.shape, chunk)
    sizes: list[tuple[int, Codec | ShuffleDeflate]] = []
    deflated = 0
    for candidate in candidates(codec, dataset.dtype, number, fast=fast):
        if isinstance(candidate, ShuffleDeflate):
            stored = deflated = int(_deflated(candidate, blocks) / share)
        else:
            stored = int(sum(len(frames.encode(block, candidate, fill)) for block in blocks) / share)
        sizes.append((stored + index, candidate))
    best, chosen = min(sizes, key=lambda item: item[0])
    if codec.is_lossless:  # HDF5's own filters are readable without ours
        own, filters = next(item for item in sizes if isinstance(item[1], ShuffleDeflate))
        if own * (1 - _READABLE) <= best:
            best, chosen = own, filters
    elif isinstance(chosen, Adaptive):  # the others are faster to write and to read
        second, other = min((item for item in sizes if item[1] is not chosen), key=lambda item: item[0])
        if second * (1 - WORTH) <= best:
            best, chosen = second, other
    kept = kept_bytes(dataset)
    if kept is not None and kept + _own_index(dataset) <= best:
        return Choice(None, kept, deflated, kept)
    return Choice(chosen, kept, deflated, best - index)


def better(choice: Choice, stored_bytes: int, dataset: h5py.Dataset, chunk: tuple[int, ...]) -> Choice | None:
    """Return a choice smaller than the written dataset; None where nothing is.

    Parameters
    ----------
    choice
        The choice made on the sample.
    stored_bytes
        What the copy of the dataset has.
    dataset
        The original.
    chunk
        The chunk shape of the copy.
    """
    best: Choice | None = None
    size = stored_bytes
    if not isinstance(choice.codec, ShuffleDeflate) and choice.deflated_bytes < _CLOSE * size:
        deflated = deflated_bytes(dataset, chunk)
        if deflated < size:
            size, best = deflated, Choice(ShuffleDeflate(), choice.kept_bytes, deflated, deflated)
    kept = choice.kept_bytes
    if kept is not None and kept + _own_index(dataset) < size + index_bytes(dataset.shape, chunk):
        best = Choice(None, kept, choice.deflated_bytes, kept)
    return best


def kept_bytes(dataset: h5py.Dataset) -> int | None:
    """Return the bytes that a dataset has in its file; None where its values are elsewhere."""
    plist = dataset.id.get_create_plist()
    if plist.get_layout() == h5d.VIRTUAL or plist.get_external_count():
        return None
    return int(dataset.id.get_storage_size())


def index_bytes(shape: Sequence[int], chunk: Sequence[int]) -> int:
    """Return what HDF5's index of the chunks takes about, in the form that every release of HDF5 reads."""
    node = 24 + 65 * (8 + 8 * (len(shape) + 1)) + 64 * 8
    return -(-layout.count(shape, chunk) // _INDEX_ENTRIES) * node


def _own_index(dataset: h5py.Dataset) -> int:
    return 0 if dataset.chunks is None else index_bytes(dataset.shape, dataset.chunks)


def deflated_bytes(dataset: h5py.Dataset, chunk: tuple[int, ...]) -> int:
    """Return what shuffle + deflate needs for all chunks, computed by as many threads as are configured."""
    count = settings.config().threads
    total = 0
    with ThreadPoolExecutor(count, thread_name_prefix="pyfilter") as pool:
        waiting: deque[Future[int]] = deque()
        for slab in layout.slabs(dataset.shape, chunk, dataset.dtype.itemsize, transfer.SLAB_BYTES // 4):
            block = values.read_raw(dataset, slab)
            first = [part.start for part in slab]
            for origin in layout.origins(dataset.shape, chunk, slab):
                part = layout.box(origin, chunk, dataset.shape)
                waiting.append(pool.submit(ShuffleDeflate().size, block[layout.shifted(part, first)]))
            while len(waiting) > 2 * count:
                total += waiting.popleft().result()
        total += sum(item.result() for item in waiting)
    return total


def _deflated(filters: ShuffleDeflate, blocks: Sequence[NDArray[Any]]) -> int:
    with ThreadPoolExecutor(settings.config().threads) as pool:  # zlib needs no GIL
        return sum(pool.map(filters.size, blocks))


def sample_regions(shape: tuple[int, ...], chunk: tuple[int, ...], itemsize: int, limit: int) -> Iterator[Region]:
    """Yield whole chunks (of large ones a part), evenly spread, of about ``limit`` bytes in all."""
    counts = [-(-extent // edge) for extent, edge in zip(shape, chunk, strict=True)]
    total = math.prod(counts)
    size = min(math.prod(chunk) * itemsize, PIECE_BYTES)
    whole = math.prod(shape) * itemsize <= limit
    wanted = total if whole else min(max(limit // max(size, 1), 1), total, _MOST_PIECES)
    for step in range(wanted):
        place = np.unravel_index((2 * step + 1) * total // (2 * wanted), counts)
        origin = tuple(int(at) * edge for at, edge in zip(place, chunk, strict=True))
        region = layout.box(origin, chunk, shape)
        extents = [part.stop - part.start for part in region]
        if math.prod(extents) * itemsize > PIECE_BYTES and not whole:
            inner = next(iter(layout.slabs(extents, (1,) * len(extents), itemsize, PIECE_BYTES)))
            region = tuple(
                slice(part.start + cut.start, part.start + cut.stop) for part, cut in zip(region, inner, strict=True)
            )
        yield region


def _sample(dataset: h5py.Dataset, chunk: tuple[int, ...], number: bool) -> Iterator[NDArray[Any]]:
    dtype = dtypes.native(dataset.dtype) if number else None
    for region in sample_regions(dataset.shape, chunk, dataset.dtype.itemsize, SAMPLE_BYTES):
        if dtype is None:
            yield values.read_raw(dataset, region)
        else:
            yield np.ascontiguousarray(dataset[region], dtype=dtype)
