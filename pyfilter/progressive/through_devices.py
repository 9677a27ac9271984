# SPDX-License-Identifier: BSD-3-Clause
"""Fetches and decodes chunks of a progressive read by several devices, with values in host memory.

Threads of the library (gpu/channels.py) take the chunks that they can. Each other chunk is taken by a thread of a
device (gpu/device_threads.py), from its bytes in the file to its position in the result. So fetching, copies and
kernels overlap, and a device holds one chunk for each of its threads at most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pyfilter import settings
from pyfilter._lib import abi, host
from pyfilter.errors import NoMemory, Unsupported
from pyfilter.gpu import arrays, channels, host_memory, staging
from pyfilter.gpu.device_threads import DeviceThreads
from pyfilter.gpu.fallback import Fallbacks
from pyfilter.progressive.chunk import HEAD_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from pyfilter._chunks.layout import Region
    from pyfilter.gpu.staging import Channel
    from pyfilter.progressive.chunk import Chunk
    from pyfilter.progressive.source import LocalSource, Range


class Wanted(NamedTuple):
    """A chunk to read to a tolerance: its missing ranges, and the overlapping slices of result and chunk."""

    chunk: Chunk
    ranges: list[Range]
    target: tuple[slice, ...]
    source: tuple[slice, ...]


class Target(NamedTuple):
    """A region of a dataset, and the array for its values."""

    shape: tuple[int, ...]
    region: Region
    out: NDArray[Any]


def decode(
    wanted: Sequence[Wanted],
    out: NDArray[Any],
    fetch: Callable[[Sequence[Range]], list[bytes]],
    devices: Sequence[int],
) -> None:
    """Fetch the missing ranges of chunks and store their values in ``out``, in the order of completion.

    ``fetch`` is called from several threads. A chunk that a device has no memory for is decoded by the CPU, with a
    RuntimeWarning; other errors stop all threads, and are raised.
    """
    fallbacks = Fallbacks("decoded")

    def work(channel: Channel, job: Wanted) -> None:
        if job.ranges:
            job.chunk.put(job.ranges, fetch(job.ranges))
        copier.copy(out[job.target], values_of(channel, job.chunk)[job.source])

    def values_of(channel: Channel, chunk: Chunk) -> NDArray[Any]:
        if not chunk.progressive:  # it gained nothing, and is nearly as large as its values
            return chunk.values()
        try:
            with arrays.device_errors():
                shape = chunk.grid()
                there = channel.device_bytes("values", chunk.grid_bytes()).view(chunk.dtype).reshape(shape)
                with channel.stream:
                    chunk.decode_to(there)
                here = channel.pinned_bytes("values", there.nbytes).view(chunk.dtype).reshape(shape)
                channel.to_host(here, there)
                channel.wait()
                return here
        except (NoMemory, Unsupported) as error:
            fallbacks.take_over(channel, error)
        return chunk.values()

    with arrays.device_errors(), host_memory.Copier(len(devices)) as copier, DeviceThreads(devices, work) as threads:
        for _ in threads.run(wanted):
            pass
    fallbacks.warn(len(wanted))


@arrays.device_errors()
def read(
    source: LocalSource,
    wanted: Sequence[Chunk],
    request: abi.Request,
    tolerance: float,
    target: Target,
    devices: Sequence[int],
    counted: Callable[[int], None],
) -> tuple[list[Chunk], list[Chunk]]:
    """Read a region of a dataset to a tolerance, limited to ordinary chunks without fetched segments.

    Parameters
    ----------
    source
        The file.
    wanted
        The region's chunks in C order of the grid; none is missing. They keep the fetched segments.
    request
        Their type and shape.
    tolerance
        The largest error that will do.
    target
        The region and the array of the result.
    devices
        Numbers of devices.
    counted
        Called with the number of bytes that were fetched, whether all goes well or not.

    Returns
    -------
    list of Chunk
        The chunks that were read.
    list of Chunk
        The remaining chunks.
    """
    like = wanted[0]
    run = channels.run_of(target.out, like.dtype, target.shape, target.region, like.shape, 0, len(devices))
    if run is None or not all(chunk.untouched for chunk in wanted):
        return [], list(wanted)
    first = wanted[: run.chunks]
    ranges = np.zeros(run.chunks, abi.RANGE)
    ranges["offset"] = [chunk.start for chunk in first]
    ranges["bytes"] = sizes = np.array([chunk.size for chunk in first])
    heads = np.empty((run.chunks, HEAD_BYTES), np.uint8)
    ranges["to"] = heads.ctypes.data + HEAD_BYTES * np.arange(run.chunks)
    choices = host.progressive_choose(
        source.descriptor, ranges, HEAD_BYTES, request, tolerance, settings.config().threads
    )
    known = (choices["known"] != 0) & (sizes <= host.max_frame_bytes(request))
    begins = np.maximum(choices["end"].astype(np.int64), np.minimum(sizes, HEAD_BYTES))
    starts = staging.starts(np.where(known, begins, 0))
    kept = np.empty(int(starts[-1]), np.uint8)
    ranges["bytes"], ranges["to"], ranges["done"] = np.where(known, begins, 0), kept.ctypes.data + starts[:-1], 0
    chosen = np.ascontiguousarray(choices["chosen"])
    try:
        read = channels.decode(source.descriptor, ranges, chosen, run, devices)
    finally:
        here = known & (ranges["done"] == ranges["bytes"])
        counted(int(begins[here].sum()))
        spans = zip(first, here.tolist(), starts.tolist(), begins.tolist(), choices.tolist(), strict=False)
        for chunk, good, start, size, choice in spans:
            if good:
                chunk.adopt(kept[start : start + size], choice)
    done = [chunk for chunk, good in zip(first, read.tolist(), strict=True) if good]
    left = [chunk for chunk, good in zip(first, read.tolist(), strict=True) if not good]
    return done, [*left, *wanted[run.chunks :]]
