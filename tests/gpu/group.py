# SPDX-License-Identifier: BSD-3-Clause
"""A group of cases of same_bytes.py: encodes and decodes each on both sides and keeps what differed."""

from __future__ import annotations

import itertools
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pyfilter
from gpu import device
from pyfilter import frames
from pyfilter._lib import host

Array = NDArray[Any]


class Group:
    """Counts the cases of a group and what differed."""

    def __init__(self, name: str) -> None:
        self.name, self.cases, self.bytes = name, 0, 0
        self.bad: list[str] = []
        self.since = time.monotonic()

    def check(self, values: Array, codec: pyfilter.Codec, fill: Any = None, copies: int = 1, ranges: int = 2) -> None:
        """Encode on both sides, decode what came out on the device, whole and in parts."""
        self.cases += 1
        self.bytes += values.nbytes * copies
        what = f"{values.dtype} {values.shape} {codec!r} fill={fill!r}"
        try:
            expected = pyfilter.encode(values, codec, fill_value=fill)
            request = frames.make_request(codec, values.dtype, values.shape, fill)
            got = device.encode(request, [values] * copies)
            for frame in set(got):
                if frame != expected:
                    self.bad.append(f"{what}: {first_difference(frame, expected)}")
                    return
            decoded = pyfilter.decode(expected)
            flat = decoded.reshape(-1)
            for back in device.decode(got, values.dtype, values.size)[:: max(1, copies - 1)]:
                if back.tobytes() != flat.tobytes():
                    self.bad.append(f"{what}: decoded values differ")
                    return
            rng = np.random.default_rng(values.size)
            for _ in range(ranges if values.size else 0):
                start, stop = sorted(rng.integers(0, values.size + 1, 2).tolist())
                part = device.decode(got[:1], values.dtype, values.size, start, stop)[0]
                if part.tobytes() != flat[start:stop].tobytes():
                    self.bad.append(f"{what}: values {start} to {stop} differ")
                    return
        except pyfilter.PyfilterError as error:
            self.bad.append(f"{what}: {error}")

    def check_frames(self, encoded: list[bytes]) -> None:
        """Decode frames of one shape and element type in one call, whole and in part."""
        info = pyfilter.frame_info(encoded[0])
        size = info.value_count
        self.cases += 1
        self.bytes += size * info.dtype.itemsize * len(encoded)
        try:
            for start, stop in ((0, size), (size // 3, size - size // 5)):
                for i, back in enumerate(device.decode(encoded, info.dtype, size, start, stop)):
                    if back.tobytes() != pyfilter.decode(encoded[i]).reshape(-1)[start:stop].tobytes():
                        self.bad.append(f"{info.codec} {info.dtype} {info.shape}: frame {i}, {start} to {stop} differ")
                        return
        except pyfilter.PyfilterError as error:
            self.bad.append(f"{info.codec} {info.dtype} {info.shape}: {error}")

    def report(self) -> bool:
        seconds = time.monotonic() - self.since
        state = "identical" if not self.bad else f"{len(self.bad)} DIFFER"
        print(f"{self.name:44} {self.cases:7} cases {self.bytes / 1e6:10.1f} MB  {state}  {seconds:.1f} s", flush=True)
        for text in self.bad[:6]:
            print("   ", text[:400])
        return not self.bad


def first_difference(a: bytes, b: bytes) -> str:
    if len(a) != len(b):
        return f"{len(a)} bytes, the CPU's frame has {len(b)}; stored as {describe(a)} and {describe(b)}"
    at = int(np.flatnonzero(np.frombuffer(a, np.uint8) != np.frombuffer(b, np.uint8))[0])
    header = 8 * b[7]
    return f"byte {at} of {len(b)} (header {header}): {a[at]:#x}, the CPU has {b[at]:#x}"


def describe(frame: bytes) -> str:
    try:
        info = pyfilter.frame_info(frame)
    except pyfilter.PyfilterError as error:
        return str(error)
    return f"{info.codec} raw={info.stored_raw} bound={info.bound} sentinel={info.sentinel}"


def check_batch(group: Group, chunks: list[Array], codec: pyfilter.Codec) -> None:
    """Different chunks in one call."""
    dtype = chunks[0].dtype
    got = device.encode(frames.make_request(codec, dtype, chunks[0].shape), chunks)
    back = device.decode(got, dtype, chunks[0].size)
    group.cases += 1
    group.bytes += sum(chunk.nbytes for chunk in chunks)
    for chunk, frame, values in zip(chunks, got, back, strict=True):
        expected = pyfilter.encode(chunk, codec)
        if frame != expected:
            group.bad.append(f"{codec!r}: {first_difference(frame, expected)}")
        elif values.tobytes() != pyfilter.decode(expected).tobytes():
            group.bad.append(f"{codec!r}: decoded values differ")


def compare_parts(group: Group, frame: bytes) -> None:
    """The first segments of a frame, on several levels."""
    info = pyfilter.frame_info(frame)
    if info.codec != "progressive" or info.stored_raw:
        return
    data = np.frombuffer(frame, np.uint8)
    summary = host.progressive_summary(data)
    for level, part in itertools.product({0, min(1, summary.levels)}, (0, 1, 2, 3)):
        if level and len(info.shape) > 3:
            continue
        group.cases += 1
        count = summary.segments * part // 3
        expected = np.empty(tuple(-(-extent >> level) for extent in info.shape), info.dtype)
        host.progressive_decode(data, count, level, expected)
        if device.decode_part(data, count, level, expected).tobytes() != expected.tobytes():
            group.bad.append(f"{info.dtype} {info.shape}: {count} segments, level {level}: decoded values differ")
