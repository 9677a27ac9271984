# SPDX-License-Identifier: BSD-3-Clause
"""Copies between arrays in host memory and pinned buffers, by several threads; none if the array is pinned."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from pyfilter import settings
from pyfilter.gpu import arrays

if TYPE_CHECKING:
    from types import TracebackType

    from numpy.typing import NDArray
    from typing_extensions import Self

#: threads that copy, for each device: one moves about 10 GB/s, a PCIe link 55
COPIERS = 6
#: bytes that a thread copies at a time, at least
PART_BYTES = 4 << 20


class Copier:
    """Threads that copy between arrays; a context manager. `copy` may be called from several threads.

    `pyfilter.config` limits their number.
    """

    def __init__(self, devices: int) -> None:
        self._count = min(settings.config().threads, COPIERS * devices)
        self._pool = ThreadPoolExecutor(self._count, thread_name_prefix="pyfilter-copy") if self._count > 1 else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def copy(self, target: NDArray[Any], source: NDArray[Any]) -> None:
        """Copy values to an array of the same shape, converted to its type; returns when all are copied."""
        parts = min(self._count, COPIERS, target.nbytes // PART_BYTES)
        if self._pool is None or parts < 2:
            _copy(target, source)
            return
        # the first axis of sufficient extent: its parts are the longest runs of memory
        axis = next((i for i, n in enumerate(target.shape) if n >= parts), int(np.argmax(target.shape)))
        extent = target.shape[axis]
        edges = [extent * i // parts for i in range(parts + 1)]
        pieces = [(slice(None),) * axis + (slice(a, b),) for a, b in pairwise(edges) if b > a]
        futures = [self._pool.submit(_copy, target[piece], source[piece]) for piece in pieces[1:]]
        _copy(target[pieces[0]], source[pieces[0]])
        for future in futures:
            future.result()


def _copy(target: NDArray[Any], source: NDArray[Any]) -> None:
    with np.errstate(invalid="ignore"):  # signalling NaNs of another type
        np.copyto(target, source, casting="same_kind")


def is_pinned(values: object) -> bool:
    """Return whether an array is in pinned host memory (`cupyx.empty_pinned`), which devices access directly."""
    if not isinstance(values, np.ndarray) or not values.flags.c_contiguous or values.size == 0:
        return False
    runtime = arrays.import_cupy().cuda.runtime
    first = values.ctypes.data
    ends = (first, first + values.nbytes - 1)
    return all(runtime.pointerGetAttributes(end).type == runtime.memoryTypeHost for end in ends)
