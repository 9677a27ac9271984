# SPDX-License-Identifier: BSD-3-Clause
"""Chunks of a progressive read, fetched and decoded by several devices, the values to be in host memory.

Each thread of a device (gpu/crew.py) takes a chunk from its bytes in the file to its place in the result, so that
fetching, copies and kernels overlap, and no more is on a device than the chunks that its threads are at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pyfilter.errors import NoMemory, Unsupported
from pyfilter.gpu import arrays, host_memory
from pyfilter.gpu.crew import Crew
from pyfilter.gpu.fallback import Fallbacks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from pyfilter.gpu.staging import Lane
    from pyfilter.progressive.chunk import Chunk
    from pyfilter.progressive.source import Range


class Wanted(NamedTuple):
    """A chunk that was asked for a tolerance: the ranges that it lacks, and where which of its values go."""

    chunk: Chunk
    ranges: list[Range]
    target: tuple[slice, ...]
    source: tuple[slice, ...]


def decode(
    wanted: Sequence[Wanted],
    out: NDArray[Any],
    fetch: Callable[[Sequence[Range]], list[bytes]],
    devices: Sequence[int],
) -> None:
    """Fetch what chunks lack and put their values to their places in ``out``, in the order of completion.

    ``fetch`` is called from several threads. A chunk that a device has no memory for is decoded by the CPU, with a
    RuntimeWarning; other errors end all, and are raised.
    """
    fallbacks = Fallbacks("decoded")

    def work(lane: Lane, job: Wanted) -> None:
        if job.ranges:
            job.chunk.put(job.ranges, fetch(job.ranges))
        copier.copy(out[job.target], values_of(lane, job.chunk)[job.source])

    def values_of(lane: Lane, chunk: Chunk) -> NDArray[Any]:
        if not chunk.progressive:  # it gained nothing, and is nearly as large as its values
            return chunk.values()
        try:
            with arrays.device_errors():
                shape = chunk.grid()
                there = lane.device_bytes("values", chunk.grid_bytes()).view(chunk.dtype).reshape(shape)
                with lane.stream:
                    chunk.decode_to(there)
                here = lane.pinned_bytes("values", there.nbytes).view(chunk.dtype).reshape(shape)
                lane.to_host(here, there)
                lane.wait()
                return here
        except (NoMemory, Unsupported) as error:
            fallbacks.take_over(lane, error)
        return chunk.values()

    with arrays.device_errors(), host_memory.Copier(len(devices)) as copier, Crew(devices, work) as crew:
        for _ in crew.run(wanted):
            pass
    fallbacks.tell(len(wanted))
