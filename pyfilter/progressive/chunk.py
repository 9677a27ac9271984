# SPDX-License-Identifier: BSD-3-Clause
"""A chunk of a progressive dataset: its segments in memory, the segments that a tolerance needs, and its values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from pyfilter._lib import abi, cuda, host
from pyfilter.errors import CorruptFrame
from pyfilter.frames import checked_info
from pyfilter.gpu import arrays, frames
from pyfilter.headers import FrameInfo

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyfilter.progressive.source import Range

#: size of the first fetch of a frame: most heads are shorter
HEAD_BYTES = 2048
_FIRST_BYTES = max(HEAD_BYTES, 8 * (7 + abi.MAX_RANK) + 132)
_NOTHING = np.zeros(0, np.uint8)


class Chunk:
    """A chunk of a file, whose bytes are fetched as they are needed.

    Parameters
    ----------
    start, size
        Offset and size of its frame in the file.
    origin
        Index of its first value in the dataset.
    shape, dtype
        Of its values.
    """

    # the state before the first request, kept in the class: a dataset may have very many chunks
    levels = 0
    error = math.inf  # of the values last asked for
    _count = 0  # segments of the values last asked for
    _level = 0
    _info: FrameInfo | None = None
    _frame = _NOTHING
    _available = 0  # bytes of the frame that are in memory, from its start on
    _parts: dict[int, NDArray[Any]] | None = None
    _segments = 0
    _fetched_segments: NDArray[np.bool_] | None = None

    def __init__(
        self, start: int, size: int, origin: tuple[int, ...], shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> None:
        self.start, self.size, self.origin = start, size, origin
        self.shape, self.dtype = shape, dtype
        self.prefix = min(size, _FIRST_BYTES)  # bytes needed from the frame's start

    def forget(self) -> None:
        """Drop the fetched bytes of the frame."""
        self._info, self._frame, self._available, self._parts = None, _NOTHING, 0, None
        self._segments, self._fetched_segments = 0, None
        self.prefix = min(self.size, _FIRST_BYTES)

    @property
    def info(self) -> FrameInfo | None:
        """The parsed header, or None before it is in memory."""
        if self._info is None and self._available:
            self._info = checked_info(self._frame, self.size)
        return self._info

    @property
    def _fetched(self) -> NDArray[np.bool_]:
        """A flag for each segment: whether it is in memory."""
        if self._fetched_segments is None or self._fetched_segments.size != self._segments:
            self._fetched_segments = np.zeros(self._segments, np.bool_)
            if self._segments:
                parts = self._parts_of(0)
                self._fetched_segments[:] = (
                    parts["offset"] + parts["size"] <= self._available
                )  # fetched together with the head
        return self._fetched_segments

    @property
    def untouched(self) -> bool:
        """Whether no byte of its frame has been fetched."""
        return self._available == 0

    def adopt(self, frame: NDArray[np.uint8], choice: Any) -> None:
        """Store the first bytes of the frame, fetched by `channels.decode` for a choice of level 0."""
        _, self.error, self._count, self._segments, self.levels, _ = choice
        self._frame, self._available, self._level = frame, len(frame), 0
        self.prefix = min(self.prefix, self._available)

    def head_ranges(self) -> list[Range]:
        """Return the file ranges of the missing part of the head; none once the head is in memory."""
        return [(self.start + self._available, self.start + self.prefix)] if self._available < self.prefix else []

    def put_head(self, data: bytes) -> None:
        """Store the bytes of `head_ranges`, which may then ask for more. A damaged head is dropped."""
        try:
            self._put_head(data)
        except BaseException:
            self.forget()
            raise

    def _put_head(self, data: bytes) -> None:
        self._frame = np.concatenate((self._frame, np.frombuffer(data, np.uint8)))
        self._available += len(data)
        self._info = info = checked_info(self._frame, self.size)
        if info.frame_bytes != self.size:
            message = f"the frame has {info.frame_bytes} bytes, its chunk {self.size}"
            raise CorruptFrame(message)
        if info.shape != self.shape or info.dtype != self.dtype:
            message = f"a frame of {info.dtype} {info.shape} in a chunk of {self.dtype} {self.shape}"
            raise CorruptFrame(message)
        if not self.progressive:
            self.prefix = self.size
            return
        summary = host.progressive_summary(self._frame)
        self.prefix = max(self._available, summary.prefix_bytes)
        self.levels = summary.levels
        if self._available >= self.prefix:
            self._segments = summary.segments

    @property
    def progressive(self) -> bool:
        """Whether the chunk has segments; chunks that progressive would not shrink have another codec or raw values."""
        assert self.info is not None
        return self.info.codec == "progressive" and not self.info.stored_raw

    def _parts_of(self, level: int) -> NDArray[Any]:
        if self._parts is None:
            self._parts = {}
        if level not in self._parts:
            self._parts[level] = host.progressive_parts(self._frame, level, self._segments)
        return self._parts[level]

    def ask(self, tolerance: float, level: int) -> list[Range]:
        """Choose the segments for a tolerance, and return the file ranges of segments not yet fetched."""
        assert self.info is not None
        if not self.progressive:
            self.error = self.info.error_bound
            return []
        parts = self._parts_of(level)
        good = np.flatnonzero(parts["error"] <= tolerance)
        self._count, self._level = int(good[0]) + 1 if good.size else parts.size, level
        self.error = float(parts["error"][self._count - 1]) if self._count else self.info.error_bound
        ranges: list[Range] = []
        for i in self._missing():
            begin = int(parts["offset"][i])
            stop = self.start + begin + int(parts["size"][i])
            start = self.start + max(begin, self._available)  # the head's fetch may have brought its first bytes
            if ranges and ranges[-1][1] == start:
                ranges[-1] = (ranges[-1][0], stop)
            elif stop > start:
                ranges.append((start, stop))
        return ranges

    def _missing(self) -> NDArray[np.intp]:
        parts = self._parts_of(self._level)
        wanted = np.arange(parts.size) < self._count
        return np.flatnonzero(wanted & (parts["level"] >= self._level) & ~self._fetched)

    def put(self, ranges: list[Range], data: list[bytes]) -> None:
        """Store the bytes of the ranges that `ask` returned."""
        if not ranges:
            return
        end = max(stop for _, stop in ranges) - self.start
        if end > self._frame.size:
            grown = np.zeros(end, np.uint8)
            grown[: self._frame.size] = self._frame
            self._frame = grown
        for (start, stop), piece in zip(ranges, data, strict=True):
            self._frame[start - self.start : stop - self.start] = np.frombuffer(piece, np.uint8)
        self._fetched[self._missing()] = True

    def next_error(self, below: float, level: int = 0) -> float:
        """Return the largest error of the table below a number, or the smallest one if none is below."""
        if not self.progressive:
            return self.error
        errors = self._parts_of(level)["error"]
        smaller = errors[errors < below]
        return float(smaller.max()) if smaller.size else float(errors.min(initial=self.error))

    def first_error(self) -> float:
        """Return the largest error in the chunk's table."""
        if not self.progressive:
            return self.error if self.info is None else self.info.error_bound
        errors = self._parts_of(0)["error"]
        named = errors[np.isfinite(errors)]
        return float(named.max()) if named.size else 0.0

    def values(self) -> NDArray[Any]:
        """Decode the segments of the last `ask`."""
        assert self.info is not None
        step = 1 << self._level
        out = np.empty(self.grid(), self.dtype)
        if not self.progressive:
            whole = np.empty(self.shape, self.dtype) if step > 1 else out
            host.decode(self._frame, whole)
            return whole[tuple(slice(None, None, step) for _ in self.shape)] if step > 1 else out
        host.progressive_decode(self._frame, self._count, self._level, out)
        return out

    def device_values(self) -> Any:
        """Decode the segments of the last `ask` to a cupy.ndarray on the current device."""
        assert self.info is not None
        cupy = arrays.import_cupy()
        if not self.progressive:
            step = 1 << self._level
            whole = frames.decode(self._frame, None, None, None, f"cuda:{cupy.cuda.Device().id}")
            return whole[tuple(slice(None, None, step) for _ in self.shape)] if step > 1 else whole
        out = cupy.empty(self.grid(), self.dtype)
        self.decode_to(out)
        return out

    def decode_to(self, out: Any) -> None:
        """Decode the segments of the last `ask` of a progressive chunk to a cupy.ndarray on the device; waits."""
        stream = arrays.import_cupy().cuda.get_current_stream().ptr
        cuda.progressive_decode(self._frame, self._count, self._level, out.data.ptr, out.nbytes, stream)

    def grid(self) -> tuple[int, ...]:
        """Return the shape of the requested grid."""
        return tuple(-(-extent // (1 << self._level)) for extent in self.shape)

    def grid_bytes(self) -> int:
        """Return the bytes of the requested grid's values."""
        return math.prod(self.grid()) * self.dtype.itemsize

    def set_level(self, level: int) -> None:
        """Set the requested grid of a chunk that is not progressive."""
        self._level = level
