# SPDX-License-Identifier: BSD-3-Clause
"""Threads and memory for chunks that zarr-python has in flight, ten at a time by default.

zarr-python keeps each decoded chunk until it has copied it. Fresh memory for every chunk costs four times as much as
decoding it (1 MiB chunks of Cuszp2), since the kernel hands out cleared pages. So memory of chunks that are done is
used for the next ones, and given back a moment after the last call.
"""

from __future__ import annotations

import asyncio
import math
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from pyfilter import settings
from pyfilter._lib import abi, host, library

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from numpy.typing import NDArray

Result = TypeVar("Result")

#: smaller arrays get memory from NumPy, whose allocator keeps it at hand
_MIN_BYTES = 128 << 10
_lock = threading.RLock()  # a block may be given back, by the garbage collector, while this thread holds it
_this_thread = threading.local()
_free: list[NDArray[np.uint8]] = []
_calls = 0
_executor: tuple[int, ThreadPoolExecutor] | None = None
_release_waits = False
#: seconds without a call until memory is given back
_IDLE_SECONDS = 0.25


class _Block:
    """Memory of an array, given back when the array and all views of it are gone."""

    def __init__(self, size: int) -> None:
        with _lock:
            fitting = [index for index, memory in enumerate(_free) if size <= memory.nbytes <= 2 * size]
            self._memory = _free.pop(fitting[-1]) if fitting else np.empty(size, dtype=np.uint8)
        self.__array_interface__ = {**self._memory.__array_interface__, "shape": (size,)}

    def __del__(self) -> None:
        """Give the memory back."""
        with _lock:
            if _calls or _release_waits:
                _free.append(self._memory)


def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return an array as `numpy.empty` does, in memory that a chunk had before."""
    size = math.prod(shape) * dtype.itemsize
    if size < _MIN_BYTES:
        return np.empty(shape, dtype=dtype)
    memory: NDArray[np.uint8] = np.asarray(_Block(size))
    return memory.view(dtype).reshape(shape)


def encode(request: abi.Request, values: NDArray[Any], over: NDArray[np.uint8] | None = None) -> NDArray[np.uint8]:
    """Return the frame of C-contiguous native values, as a view of memory of the largest frame: copy it.

    Parameters
    ----------
    request
        How.
    values
        The chunk.
    over
        The frame that the chunk was decoded from before a part of it was changed, as for `pyfilter.encode`.
    """
    frame = empty((host.max_frame_bytes(request),), np.dtype(np.uint8))
    return frame[: host.encode(request, values, frame, over)]


async def in_thread(function: Callable[..., Result], *arguments: Any) -> Result:
    """Call a function in a thread of the event loop's, under `counted`."""
    with _counted():
        share = _share()  # here, since threads wait for the GIL after each call of the library
        try:
            return await asyncio.to_thread(_with_share, share, function, arguments)
        finally:
            _release_later(asyncio.get_running_loop())


@asynccontextmanager
async def pool() -> AsyncIterator[Pool]:
    """Give threads for calls that wait for no others, as many as the library may use.

    All reads and writes of a process share them.
    """
    with _counted():
        try:
            yield Pool(settings.config().threads)
        finally:
            _release_later(asyncio.get_running_loop())


class Pool(NamedTuple):
    """Threads of the process, as `pool` gives them."""

    threads: int

    async def call(self, share: int, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call a function in a thread; its calls of the library use ``share`` threads."""
        global _executor
        with _lock:
            if _executor is None or _executor[0] != self.threads:
                if _executor is not None:
                    _executor[1].shutdown(wait=False)  # it finishes what it has
                made = ThreadPoolExecutor(self.threads, thread_name_prefix="pyfilter-zarr")
                _executor = self.threads, made
            future = _executor[1].submit(_with_share, share, function, arguments)
        return await asyncio.wrap_future(future)


def _forget_threads() -> None:
    """In the child of a fork: it has none of its parent's threads."""
    global _executor
    _executor = None


@contextmanager
def counted() -> Iterator[None]:
    """Have the library use one thread for a call of this thread's, with as many calls at work as it may use threads.

    The parallelism is then between chunks.
    """
    try:
        with _counted():
            _use_threads(_share())
            yield
    finally:
        _use_threads(0)  # the thread may be anyone's
        with _lock:
            if not _calls and not _release_waits:
                _free.clear()


@contextmanager
def _counted() -> Iterator[None]:
    global _calls
    with _lock:
        _calls += 1
    try:
        yield
    finally:
        with _lock:
            _calls -= 1


def _share() -> int:
    """Return the number of threads that one call may use: 0 is the library's setting."""
    return 0 if _calls < settings.config().threads else 1


def _with_share(share: int, function: Callable[..., Result], arguments: tuple[Any, ...]) -> Result:
    _use_threads(share)
    return function(*arguments)


def _use_threads(count: int) -> None:
    if getattr(_this_thread, "count", None) != count:
        library.configure("local_threads", str(count))
        _this_thread.count = count


def _release_later(loop: asyncio.AbstractEventLoop) -> None:
    """Give memory back some time after the last call, if none is at work but the caller's."""
    global _release_waits
    with _lock:
        if _calls == 1 and not _release_waits:
            _release_waits = True
            loop.call_later(_IDLE_SECONDS, _release)


def _release() -> None:
    """Give all memory back that no array uses."""
    global _release_waits
    with _lock:
        _release_waits = False
        _free.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)
