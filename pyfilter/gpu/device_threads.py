# SPDX-License-Identifier: BSD-3-Clause
"""A pool of worker threads for several devices: each thread has a channel, and takes jobs from one queue.

A thread does one job from its first copy to its last, and waits for each. Copies and kernels overlap because a device
has several threads. The calling thread makes the jobs and takes the results as they come; only it uses files. The jobs
under way are at most one for each thread and one more for each device. An error in any thread ends all threads; the
calling thread raises it.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Generic, TypeVar

from pyfilter.gpu import arrays, staging

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from typing_extensions import Self

    from pyfilter.gpu.staging import Channel

#: threads, and so jobs under way, for each device: one copies in, one computes, one copies out, one waits for the file
THREADS = 4

Job = TypeVar("Job")
Result = TypeVar("Result")


class DeviceThreads(Generic[Job, Result]):
    """Threads with a channel each, for the length of a ``with`` block.

    Parameters
    ----------
    devices
        Numbers of devices.
    work
        What a thread does with a job; the channel's device is the thread's current device. All work that it puts on the
        channel's stream must be done when it returns.
    held
        Whether a result is in buffers of the channel, so that a thread takes no job until its result has been used.
    """

    def __init__(self, devices: Sequence[int], work: Callable[[Channel, Job], Result], *, held: bool = False) -> None:
        self._work = work
        self._held = held
        self._changed = threading.Condition()  # guards the attributes below
        self._jobs: deque[Job] = deque()
        self._results: deque[_Result[Result]] = deque()
        self._under_way = 0  # jobs whose results have not been used
        self._ended = False
        self._error: BaseException | None = None
        self._threads = [
            threading.Thread(target=self._serve, args=(device,), name=f"pyfilter-cuda:{device}-{number}")
            for number in range(THREADS)
            for device in devices
        ]
        #: jobs under way at most
        self.most = len(self._threads) + len(devices)

    def __enter__(self) -> Self:
        started = 0
        try:
            for thread in self._threads:
                thread.start()
                started += 1
        except BaseException:
            del self._threads[started:]
            self._end()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self._end()

    def run(self, jobs: Iterable[Job]) -> Iterator[Result]:
        """Yield the results of jobs in the order of completion; a result may be used until the next one is requested.

        Takes the next item of ``jobs`` if no result is ready and fewer than ``most`` jobs are under way.
        """
        source = iter(jobs)
        more = True
        while True:
            result = self._next(wait=not more or self._under_way >= self.most)
            if result is not None:
                yield result.value
                self._mark_used(result)
            elif not more:
                return
            else:
                try:
                    job = next(source)
                except StopIteration:
                    more = False
                    continue
                with self._changed:
                    self._jobs.append(job)
                    self._under_way += 1
                    self._changed.notify_all()

    # -- the calling thread

    def _next(self, *, wait: bool) -> _Result[Result] | None:
        """Return a result. None if there is none yet or, with ``wait``, if no job is under way."""
        with self._changed:
            while True:
                if self._error is not None:
                    raise self._error
                if self._results:
                    return self._results.popleft()
                if not wait or self._under_way == 0:
                    return None
                self._changed.wait()

    def _mark_used(self, result: _Result[Result]) -> None:
        with self._changed:
            result.used = True
            self._under_way -= 1
            self._changed.notify_all()

    def _end(self) -> None:
        """Let the threads finish their jobs, and wait for them."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    # -- the other threads

    def _serve(self, device: int) -> None:
        try:
            cupy = arrays.import_cupy()
            with arrays.device_errors(), cupy.cuda.Device(device), staging.open_channels(1) as (channel,):
                while self._take_and_work(channel):
                    pass
        except BaseException as error:  # raised by the calling thread
            with self._changed:
                self._error = self._error or error
                self._ended = True
                self._changed.notify_all()

    def _take_and_work(self, channel: Channel) -> bool:
        with self._changed:
            while not self._jobs and not self._ended:
                self._changed.wait()
            if self._ended:
                return False
            job = self._jobs.popleft()
        result = _Result(self._work(channel, job))
        del job
        with self._changed:
            self._results.append(result)
            self._changed.notify_all()
            while self._held and not result.used and not self._ended:
                self._changed.wait()
        return True


class _Result(Generic[Result]):
    """A result, and whether it has been used."""

    def __init__(self, value: Result) -> None:
        self.value = value
        self.used = False
