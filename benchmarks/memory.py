# SPDX-License-Identifier: BSD-3-Clause
"""Speed of a codec in memory through the C ABI, against memcpy of the same bytes. METHOD says how.

All arguments of the timed part are made before it: buffers (their pages touched), addresses, requests.
"""

from __future__ import annotations

import ctypes
import statistics
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

import pyfilter
from benchmarks.compare import Outcome, compare
from benchmarks.fields import MIB
from benchmarks.report import cache_bytes
from pyfilter._lib import host, library
from pyfilter.frames import make_request

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from benchmarks.fields import Field

ROTATION_BYTES = 256 * MIB
PART_BYTES = 64 * MIB
METHOD = (
    f"In memory: the field is copied side by side until the copies fill {ROTATION_BYTES // MIB} MiB; frames, outputs "
    "and the targets of memcpy have a place for each copy, 64-byte aligned, all pages touched before. One round times "
    f"memcpy, compress and decompress one after another, each on another part of {PART_BYTES // MIB} MiB (one copy, if "
    "that is larger), so that more than 128 MiB of other memory is read and written before the same bytes come again, "
    "and codec and memcpy both stream from memory. Calls go through ctypes with ready arguments, one call for each "
    "copy, for memcpy (libc's) too. Figures are medians over the rounds; GB/s are 1e9 bytes of original values. Frames "
    "and outputs are overwritten with 0xA5 before; after the last round one output is compared with the original value "
    "by value, the others with that one (memcmp)."
)

_memcpy = ctypes.CDLL(None).memcpy
_memcpy.restype = None  # the address would become a Python integer
_memcpy.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_memcmp = ctypes.CDLL(None).memcmp
_memcmp.restype = ctypes.c_int
_memcmp.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)

Calls = list[tuple[Any, ...]]


class Arena:
    """A buffer that is reused from field to field, so that its pages are there. ``offset`` keeps buffers apart modulo
    4096: the same place in two of them would slow down loads behind stores, for codec and memcpy alike.
    """

    def __init__(self, offset: int) -> None:
        self._offset = offset
        self._bytes: NDArray[np.uint8] = np.empty(0, dtype=np.uint8)

    def places(self, count: int, size: int) -> tuple[list[int], NDArray[np.uint8]]:
        """Return the addresses of ``count`` places of ``size`` bytes, and the bytes that hold them all."""
        stride = (size + 63) // 64 * 64 + 64
        needed = count * stride + self._offset + 64
        if self._bytes.nbytes < needed:
            self._bytes = np.empty(0, dtype=np.uint8)
            self._bytes = np.zeros(needed, dtype=np.uint8)
            self._bytes.fill(1)
        start = -self._bytes.ctypes.data % 64 + self._offset
        base = self._bytes.ctypes.data + start
        return [base + index * stride for index in range(count)], self._bytes[start : start + count * stride]


@dataclass
class Samples:
    """Seconds for each byte, one value for each round.

    Attributes
    ----------
    wall : list of float
        By the clock.
    cpu : list of float
        Of this thread's CPU time.
    """

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def speed(self, cpu_time: bool = False) -> float:
        """Return the median speed in GB/s, NaN if nothing was measured."""
        chosen = self.cpu if cpu_time else self.wall
        return 1e-9 / statistics.median(chosen) if chosen else float("nan")


@dataclass(frozen=True)
class Measured:
    """Figures of one field, codec and bound; speeds in GB/s, NaN where not measured.

    Attributes
    ----------
    ratio : float
        Original bytes by frame bytes.
    bound : float
        The requested absolute bound, 0 for none.
    stored_as : str
        The codec that the frame names; it differs from the requested one if the bound gains nothing.
    outcome : Outcome
        The decoded values' errors.
    memcpy, encode, decode : float
        One thread.
    encode_gain, decode_gain : float
        Speed with two threads by that with one, both by the clock.
    cached : tuple of float
        memcpy, encode and decode of one copy again and again.
    busy : float
        CPU time by wall time of the single-thread rounds; below 1 another program used the core.
    """

    ratio: float
    bound: float
    stored_as: str
    outcome: Outcome
    memcpy: float
    encode: float
    decode: float
    encode_gain: float
    decode_gain: float
    cached: tuple[float, float, float]
    busy: float

    @property
    def ok(self) -> bool:
        """Whether the codec kept its promises."""
        return self.outcome.bound_kept and self.outcome.specials_kept

    @property
    def slowest(self) -> float:
        """The slower direction as a multiple of memcpy."""
        return min(self.encode, self.decode) / self.memcpy


class Bench:
    """Buffers, and one field in them.

    Parameters
    ----------
    cpu_time
        Whether the speeds of one thread are by its CPU time instead of the clock.
    """

    def __init__(self, cpu_time: bool = False) -> None:
        self._cpu_time = cpu_time
        self._input, self._frame, self._output, self._copy = Arena(0), Arena(1024), Arena(2048), Arena(2048)
        self._field: Field | None = None
        self._sources: list[int] = []

    def load(self, chosen: Field) -> None:
        """Fill the input with copies of a field."""
        size = chosen.values.nbytes
        self._field = chosen
        self._sources, _ = self._input.places(max(1, -(-ROTATION_BYTES // size)), size)
        for address in self._sources:
            _memcpy(address, chosen.values.ctypes.data, size)

    def measure(
        self, codec: pyfilter.Codec, *, rounds: int = 5, two_threads: bool = False, cached: bool = False
    ) -> Measured:
        """Measure one codec, whose bound is absolute, on the field that is loaded."""
        loaded = self._field
        if loaded is None:
            message = "no field is loaded"
            raise ValueError(message)
        values, size, count = loaded.values, loaded.values.nbytes, len(self._sources)
        request = make_request(codec, values.dtype, values.shape, loaded.fill)
        reference = ctypes.byref(request)
        capacity = host.max_frame_bytes(request)
        frames, frame_bytes = self._frame.places(count, capacity)
        frame_bytes.fill(0xA5)
        outputs, output_bytes = self._output.places(count, size)
        copies, _ = self._copy.places(count, size)
        native = library.load()
        sizes = [ctypes.c_size_t(0) for _ in frames]
        pairs = zip(self._sources, frames, sizes, strict=True)
        encode = [(reference, source, size, frame, capacity, ctypes.byref(out)) for source, frame, out in pairs]
        copy = [(target, source, size) for target, source in zip(copies, self._sources, strict=True)]
        with pyfilter.config(threads=1):
            _timed(native.pyf_encode, encode)
            frame_size = sizes[0].value
            decode = [(frame, frame_size, out, size) for frame, out in zip(frames, outputs, strict=True)]
            output_bytes.fill(0xA5)
            works: list[tuple[Callable[..., Any], Calls, int]] = [
                (_memcpy, copy, 1), (native.pyf_encode, encode, 1), (native.pyf_decode, decode, 1)
            ]  # fmt: skip
            if two_threads:
                works += [(native.pyf_encode, encode, 2), (native.pyf_decode, decode, 2)]
            samples = _rounds(works, size, rounds)
            if any(out.value != frame_size for out in sizes):
                message = f"{loaded.name}: frames of equal values differ in size"
                raise AssertionError(message)
            outcome = self._outcome(outputs, output_bytes, codec)
            small = cached and 3 * size <= cache_bytes()
            in_cache = self._cached([(work, calls[0]) for work, calls, _ in works[:3]], size, rounds) if small else None
        info = pyfilter.frame_info((ctypes.c_uint8 * frame_size).from_address(frames[0]))
        wall, cpu = (sum(sum(getattr(item, name)) for item in samples[:3]) for name in ("wall", "cpu"))
        nothing = float("nan")
        speeds = [item.speed(self._cpu_time) for item in samples[:3]]
        gains = [two.speed() / one.speed() for one, two in zip(samples[1:3], samples[3:], strict=False)]
        return Measured(
            ratio=size / frame_size,
            bound=codec.bound[1],
            stored_as="raw" if info.stored_raw else info.codec,
            outcome=outcome,
            memcpy=speeds[0],
            encode=speeds[1],
            decode=speeds[2],
            encode_gain=gains[0] if gains else nothing,
            decode_gain=gains[1] if gains else nothing,
            cached=in_cache or (nothing, nothing, nothing),
            busy=cpu / wall,
        )

    def _outcome(self, outputs: list[int], output_bytes: NDArray[np.uint8], codec: pyfilter.Codec) -> Outcome:
        assert self._field is not None
        values, start = self._field.values, outputs[0] - output_bytes.ctypes.data
        first = output_bytes[start : start + values.nbytes].view(values.dtype)
        outcome = compare(values.reshape(-1), first, codec.bound[1], self._field.fill)
        if all(_memcmp(outputs[0], other, values.nbytes) == 0 for other in outputs[1:]):
            return outcome
        return Outcome(float("inf"), bound_kept=False, specials_kept=False)

    def _cached(
        self, works: Sequence[tuple[Callable[..., Any], tuple[Any, ...]]], size: int, rounds: int
    ) -> tuple[float, float, float]:
        """Time one copy again and again."""
        repeats = max(1, 16 * MIB // size)
        samples = [Samples() for _ in works]
        for turn in range(rounds + 1):
            for sample, (function, call) in zip(samples, works, strict=True):
                wall, cpu = _timed(function, [call] * repeats)
                if turn:
                    sample.wall.append(wall / (repeats * size))
                    sample.cpu.append(cpu / (repeats * size))
        memcpy, encode, decode = (sample.speed(self._cpu_time) for sample in samples)
        return memcpy, encode, decode


def _timed(function: Callable[..., Any], calls: Calls) -> tuple[float, float]:
    """Make the calls; return wall and CPU seconds."""
    bad = 0
    cpu = time.thread_time_ns()
    start = time.perf_counter_ns()
    for arguments in calls:
        if function(*arguments):
            bad += 1
    stop = time.perf_counter_ns()
    if bad:
        message = f"{bad} calls failed: {library.load().pyf_last_error().decode()}"
        raise RuntimeError(message)
    return (stop - start) * 1e-9, (time.thread_time_ns() - cpu) * 1e-9


def _rounds(works: Sequence[tuple[Callable[..., Any], Calls, int]], size: int, rounds: int) -> list[Samples]:
    """Time the works by turns, each on its own part of the rotation; the part moves on with every round."""
    count = len(works[0][1])
    parts = 4 if count >= 4 else 1
    edges = [count * part // parts for part in range(parts + 1)]
    samples = [Samples() for _ in works]
    for turn in range(max(rounds, parts)):
        for index, (function, calls, threads) in enumerate(works):
            part = (turn + (0, 2, 3, 1, 0)[index]) % parts
            chosen = calls[edges[part] : edges[part + 1]]
            if threads > 1:
                library.configure("threads", str(threads))
                if turn == 0:  # starts the workers
                    _timed(function, chosen[:1])
            wall, cpu = _timed(function, chosen)
            if threads > 1:
                library.configure("threads", "1")
            samples[index].wall.append(wall / (len(chosen) * size))
            samples[index].cpu.append(cpu / (len(chosen) * size))
    return samples
