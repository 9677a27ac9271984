# SPDX-License-Identifier: BSD-3-Clause
"""Many chunks of an array in one call of the library, by all its threads.

For a small chunk Python takes longer than the codecs, and threads of Python would wait for each other. Chunks that were
never written, are stored without the filter or are damaged are left to transfer.py: it fills, copies or raises the
error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyfilter import dtypes, settings
from pyfilter._chunks import layout
from pyfilter._lib import abi, hdf5, host

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import h5py
    from numpy.typing import NDArray

    from pyfilter._chunks.layout import Region
    from pyfilter._chunks.pipeline import ChunkCodec
    from pyfilter._chunks.stored import StoredChunks

#: bytes of values of one call that reads, at least
BATCH_BYTES = 32 << 20
#: a call that writes returns after this time: then signals and other users of HDF5 have their turn
SECONDS = 0.5


def read(
    how: ChunkCodec,
    region: Region,
    out: NDArray[Any],
    places: StoredChunks,
    read_others: Callable[[list[int], Region], None],
) -> None:
    """Decompress the part ``region`` of a dataset into ``out``, of its shape and element type.

    ``read_others`` is called for each box that has chunks left, with their numbers in C order and the box.
    """
    assert places.descriptor is not None
    code = dtypes.code_of(how.dtype)
    assert code is not None
    threads = settings.config().threads
    together = max(BATCH_BYTES, 16 * threads * how.chunk_bytes)
    for box in layout.batches(region, how.chunk, how.dtype.itemsize, together):
        stored = places.of_box(box)
        ranges = np.zeros(len(stored.sizes), abi.RANGE)
        usual = (stored.offsets >= 0) & (stored.masks == 0)
        ranges["offset"][usual] = stored.offsets[usual]
        ranges["bytes"][usual] = stored.sizes[usual]
        begin = [part.start % edge for part, edge in zip(box, how.chunk, strict=True)]
        grid = host.Grid(out[layout.shifted(box, [asked.start for asked in region])], begin, how.chunk)
        host.read_grid(grid, code, places.descriptor, ranges, threads)
        left = np.flatnonzero(ranges["done"] == 0)
        if left.size:
            read_others(left.tolist(), box)


def write(
    dataset: h5py.Dataset, how: ChunkCodec, values: NDArray[Any], places: NDArray[np.uint64]
) -> Iterator[tuple[int, int]]:
    """Compress an array of the dataset's element type into chunks of the dataset, in C order.

    Parameters
    ----------
    dataset, how
        Where to write, and how.
    values
        The values of whole chunks, or up to the end of the dataset.
    places
        The first coordinates of its chunks in the dataset, of shape (chunks, rank).

    Yields
    ------
    first, count
        Chunks that were written. Where ``count`` is 0 the library has left chunk ``first`` to the caller, who writes it
        before asking for more.
    """
    grid = host.Grid(values, [0] * values.ndim, how.chunk)
    padding = np.asarray(how.padding, dtype=how.dtype).reshape(1)
    done = 0
    while done < len(places):
        count = 0
        with hdf5.writer_of(dataset.id.id, places) as writer:
            if writer is not None:
                threads = settings.config().threads
                count = host.write_grid(how.request, grid, padding, writer, (done, len(places)), threads, SECONDS)
        yield done, count
        done += max(count, 1)
