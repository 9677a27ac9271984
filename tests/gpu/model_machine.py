# SPDX-License-Identifier: BSD-3-Clause
"""Two devices that are none: current devices and streams of threads, streams, events, memory and its limits.

What is put on a stream (but the null stream) is done as late as can be: when the stream, or an event behind it, is
waited for. So a buffer that is used before it is ready holds poison, and one that is used again too early spoils what
was put there before. Streams belong to devices, and so does memory; errors are CuPy's.
"""

from __future__ import annotations

import ctypes
import itertools
import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

DEVICES = 2
HOST, UNREGISTERED = 1, 0  # cudaMemoryType

_thread = threading.local()
_lock = threading.RLock()


class OutOfMemoryError(MemoryError):
    """As `cupy.cuda.memory.OutOfMemoryError`."""


# -- devices


def current_device() -> int:
    return int(getattr(_thread, "device", 0))


class Device:
    """A device; a context like CuPy's."""

    def __init__(self, number: int | None = None) -> None:
        self.id = current_device() if number is None else int(number)
        self._before: list[int] = []

    def __enter__(self) -> Device:
        assert 0 <= self.id < DEVICES, "cudaErrorInvalidDevice"
        self._before.append(current_device())
        _thread.device = self.id
        return self

    def __exit__(self, *_: object) -> None:
        _thread.device = self._before.pop()


# -- streams


class Event:
    """A place in what is put on a stream."""

    def __init__(self, block: bool = False, disable_timing: bool = False) -> None:
        self.device = current_device()
        self.place: tuple[Stream, int] | None = None

    def synchronize(self) -> None:
        if self.place is not None:
            self.place[0].run(self.place[1])


class Stream:
    """A stream of the device that is current where it is made; the null stream is every device's."""

    null: Stream
    _numbers = itertools.count(1)
    _all: ClassVar[weakref.WeakValueDictionary[int, Stream]] = weakref.WeakValueDictionary()

    def __init__(self, null: bool = False, non_blocking: bool = False) -> None:
        assert null or non_blocking
        self.ptr = 0 if null else next(self._numbers)
        self.device_id = -1 if null else current_device()
        self._lock = threading.RLock()
        self._waiting: deque[Callable[[], object]] = deque()
        self._done = 0
        with _lock:
            self._all[self.ptr] = self

    @classmethod
    def of(cls, ptr: int) -> Stream:
        """The stream that a pointer is, to be used on the current device."""
        with _lock:
            found = cls._all[ptr]
        found.check()
        return found

    def check(self) -> None:
        if self.device_id not in (-1, current_device()):
            raise RuntimeError(
                f"The device that the stream is created on ({self.device_id})"
                f" does not match with the current device ({current_device()})"
            )

    def put(self, work: Callable[[], object]) -> None:
        with self._lock:
            self._waiting.append(work)
            if self.ptr == 0:
                self.synchronize()

    def run(self, place: int) -> None:
        """Do what is waiting up to a place."""
        with self._lock:
            while self._done < place:
                self._done += 1
                self._waiting.popleft()()

    def synchronize(self) -> None:
        with self._lock:
            self.run(self._done + len(self._waiting))

    def record(self, event: Event | None = None) -> Event:
        event = Event() if event is None else event
        assert self.device_id in (-1, event.device), "cudaErrorInvalidResourceHandle"
        with self._lock:
            event.place = (self, self._done + len(self._waiting))
        return event

    def wait_event(self, event: Event) -> None:
        place = event.place
        if place is not None:
            self.put(lambda: place[0].run(place[1]))

    def __enter__(self) -> Stream:
        self.check()
        _streams().append((current_device(), self))
        return self

    def __exit__(self, *_: object) -> None:
        _streams().pop()


Stream.null = Stream(null=True)


def _streams() -> list[tuple[int, Stream]]:
    found: list[tuple[int, Stream]] | None = getattr(_thread, "streams", None)
    if found is None:
        found = _thread.streams = []
    return found


def current_stream() -> Stream:
    here = current_device()
    return next((stream for device, stream in reversed(_streams()) if device == here), Stream.null)


# -- memory


class Memory:
    """What is allocated on a device."""

    def __init__(self) -> None:
        self.limit = 0
        self.used = 0
        self.unused: list[int] = []  # sizes of blocks that the pool keeps

    def total(self) -> int:
        return self.used + sum(self.unused)

    def take(self, size: int) -> None:
        """As CuPy's pool: a block that is kept, or part of it; a limit is not a reason to give such blocks back."""
        fitting = min((block for block in self.unused if block >= size), default=None)
        if fitting is not None:
            self.unused.remove(fitting)
            self.unused += [fitting - size] if fitting > size else []
        elif self.limit and self.total() + size > self.limit:
            raise OutOfMemoryError(f"Out of memory allocating {size} bytes (limit set to: {self.limit} bytes).")
        self.used += size

    def give(self, size: int) -> None:
        self.used -= size
        self.unused += [size] if size else []


memory = [Memory() for _ in range(DEVICES)]
_allocations: dict[int, tuple[int, int]] = {}  # address: size, device
_pinned: dict[int, int] = {}  # address: size
_freed: deque[tuple[int | None, int, int]] = deque()  # device, address, size: finalizers may run at any time


def _settle() -> None:
    """Take note of what was freed; to be called with the lock."""
    while _freed:
        device, address, size = _freed.popleft()
        if device is None:
            _pinned.pop(address, None)
        else:
            memory[device].give(size)
            _allocations.pop(address, None)


def allocate(shape: Any, dtype: Any) -> np.ndarray[Any, Any]:
    """Memory of the current device with poison in it."""
    device = current_device()
    values = np.empty(shape, dtype=dtype)
    with _lock:
        _settle()
        memory[device].take(values.nbytes)
        if values.nbytes:
            _allocations[values.ctypes.data] = (values.nbytes, device)
    weakref.finalize(values, _freed.append, (device, values.ctypes.data, values.nbytes)).atexit = False
    values.reshape(-1).view(np.uint8)[:] = 0xA5
    return values


class Allocation:
    """Bytes of the current device, as cupy.cuda.MemoryPointer."""

    def __init__(self, size: int) -> None:
        self.values = allocate(size, np.uint8)
        self.ptr = int(self.values.ctypes.data)


def check_here(address: int, size: int = 1) -> None:
    """Fail unless this is memory of the current device."""
    with _lock:
        _settle()
        found = [
            device
            for first, (most, device) in _allocations.items()
            if first <= address and address + size <= first + most
        ]
    assert found == [current_device()], f"cudaErrorIllegalAddress: memory of devices {found} on {current_device()}"


class Pool:
    """As CuPy's memory pool, of all devices; sizes are those of the current one."""

    def set_limit(self, size: int | None = None) -> None:
        memory[current_device()].limit = size or 0

    def free_all_blocks(self) -> None:
        with _lock:
            _settle()
            memory[current_device()].unused.clear()

    def total_bytes(self) -> int:
        with _lock:
            _settle()
            return memory[current_device()].total()


class PinnedMemory(bytearray):
    """Memory that may be the source or the target of copies that do not wait."""


def alloc_pinned_memory(size: int) -> PinnedMemory:
    found = PinnedMemory(b"\xa5" * size)
    address = ctypes.addressof((ctypes.c_char * len(found)).from_buffer(found)) if size else 0
    with _lock:
        _settle()
        _pinned[address] = size
    weakref.finalize(found, _freed.append, (None, address, size)).atexit = False
    return found


def memory_type(address: int) -> int:
    with _lock:
        _settle()
        return HOST if any(first <= address < first + size for first, size in _pinned.items()) else UNREGISTERED


def memcpy_async(target: int, source: int, size: int, kind: int, stream: int) -> None:
    """Copies from and to pinned memory are put on the stream; those from and to other memory wait."""
    assert kind in (1, 2, 3)
    on = Stream.of(stream)
    if kind == 3:
        check_here(target, size)
        check_here(source, size)
        on.put(lambda: ctypes.memmove(target, source, size))
        return
    check_here(target if kind == 1 else source, size)
    host = source if kind == 1 else target
    if memory_type(host) == HOST and memory_type(host + size - 1) == HOST:
        on.put(lambda: ctypes.memmove(target, source, size))
    elif kind == 1:
        taken = ctypes.string_at(source, size)
        on.put(lambda: ctypes.memmove(target, taken, size))
    else:
        on.synchronize()
        ctypes.memmove(target, source, size)
