# SPDX-License-Identifier: BSD-3-Clause
"""The model's calls for many chunks (_lib/device_chunks.py), batch after batch on the model's streams."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from pyfilter import errors
from pyfilter._lib import abi, cuda, host, library

from . import model_machine as machine


def write_chunks(request: Any, chunks: Any, channels: Any, frame_stride: int, writer: Any) -> None:
    """Batches by channels in turn; as in the library, what is unusual is left to the caller."""
    state = _states(chunks)
    for channel, first, count in _batches(chunks, channels):
        size = count * chunks.chunk_bytes
        with machine.Device(int(channel["device"])):
            _move(channel, chunks, first, size, 1)
            cuda.encode(
                request, count, int(channel["values"]), chunks.chunk_bytes, int(channel["frames"]), frame_stride,
                int(channel["notes"]), int(channel["stream"]),
            )  # fmt: skip
            _copy(channel, int(channel["host_notes"]), int(channel["notes"]), 8 * count, 2)
            machine.Stream.of(int(channel["stream"])).synchronize()
            sizes = np.ctypeslib.as_array((ctypes.c_uint64 * count).from_address(int(channel["host_notes"]))).tolist()
            assert max(sizes) <= int(channel["host_frame_bytes"])
            if chunks.chunk_bytes in sizes:
                state[first : first + count] = abi.CHUNK_LEFT
                continue
            for number, bytes_of in enumerate(sizes):
                _copy(channel, int(channel["host_frames"]), int(channel["frames"]) + number * frame_stride, bytes_of, 2)
                machine.Stream.of(int(channel["stream"])).synchronize()
                origin = writer.origins + (first + number) * writer.rank * 8
                if writer.write(writer.dataset, 0, 0, origin, bytes_of, int(channel["host_frames"])) < 0:
                    state[state == abi.CHUNK_WAITING] = abi.CHUNK_LEFT
                    return
                state[first + number] = abi.CHUNK_DONE


def read_chunks(dtype: int, chunks: Any, channels: Any, descriptor: int, ranges: Any, segments: Any) -> None:
    """As `write_chunks`."""
    state = _states(chunks)
    for channel, first, count in _batches(chunks, channels):
        state[first : first + count] = abi.CHUNK_LEFT
        part = ranges[first : first + count]
        offsets = np.cumsum([0, *(-(-part["bytes"].astype(np.int64) // 16) * 16)])
        assert offsets[-1] <= int(channel["host_frame_bytes"])
        for entry, offset in zip(part, offsets[:-1].tolist(), strict=True):
            data = os.pread(descriptor, int(entry["bytes"]), int(entry["offset"]))
            entry["done"] = len(data)
            ctypes.memmove(int(channel["host_frames"]) + offset, data, len(data))
            if entry["to"]:
                ctypes.memmove(int(entry["to"]), data, len(data))
        if (part["done"] < part["bytes"]).any():
            continue
        with machine.Device(int(channel["device"])):
            if _decoded(dtype, chunks, channel, part, offsets, None if segments is None else segments[first:]):
                size = count * chunks.chunk_bytes
                _move(channel, chunks, first, size, 2)
                machine.Stream.of(int(channel["stream"])).synchronize()
                state[first : first + count] = abi.CHUNK_DONE


def _decoded(dtype: int, chunks: Any, channel: Any, part: Any, offsets: Any, segments: Any) -> bool:
    _copy(channel, int(channel["frames"]), int(channel["host_frames"]), int(offsets[-1]), 1)
    machine.Stream.of(int(channel["stream"])).synchronize()
    for number, (entry, offset) in enumerate(zip(part, offsets.tolist(), strict=False)):
        memory: Any = (ctypes.c_ubyte * int(entry["bytes"])).from_address(int(channel["host_frames"]) + offset)
        frame, values = np.frombuffer(memory, np.uint8), int(channel["values"]) + number * chunks.chunk_bytes
        machine.check_here(values, chunks.chunk_bytes)
        try:
            info = host.frame_info(frame)
            if (info.dtype, info.value_bytes) != (dtype, chunks.chunk_bytes):
                return False
            if segments is None:
                library.check(library.load().pyf_decode(frame.ctypes.data, frame.nbytes, values, chunks.chunk_bytes))
            else:
                cuda.progressive_decode(
                    frame, int(segments[number]), 0, values, chunks.chunk_bytes, int(channel["stream"])
                )
        except errors.PyfilterError:
            return False
    return True


def _states(chunks: Any) -> Any:
    found = np.ctypeslib.as_array((ctypes.c_uint8 * chunks.count).from_address(chunks.state))
    found[:] = abi.CHUNK_WAITING
    return found


def _batches(chunks: Any, channels: Any) -> Iterator[tuple[Any, int, int]]:
    """Some batches only, as where time is up."""
    for number, first in enumerate(range(0, chunks.count, chunks.batch)):
        if number == 7:
            return
        yield channels[number % len(channels)], first, min(chunks.batch, chunks.count - first)


def _move(channel: Any, chunks: Any, first: int, size: int, kind: int) -> None:
    """Values between host memory and the device, piece by piece where they pass through memory of the channel."""
    passing, there = int(channel["host_values"]), int(channel["values"])
    address = None if chunks.grid else chunks.values + first * chunks.chunk_bytes
    if not passing:
        assert address is not None
        target, source = (there, address) if kind == 1 else (address, there)
        _copy(channel, target, source, size, kind)
        return
    most = int(channel["host_value_bytes"]) // 2
    most = most if address is not None else most // chunks.chunk_bytes * chunks.chunk_bytes
    assert most > 0
    for at in range(0, size, most):
        here = min(most, size - at)

        def pass_on(at: int = at, here: int = here) -> None:
            if address is not None:
                to, by = (passing, address + at) if kind == 1 else (address + at, passing)
                ctypes.memmove(to, by, here)
                return
            for number in range(here // chunks.chunk_bytes):
                staged = passing + number * chunks.chunk_bytes
                _pass_chunk(chunks, first + at // chunks.chunk_bytes + number, staged, kind)

        if kind == 1:
            pass_on()
        target, source = (there + at, passing) if kind == 1 else (passing, there + at)
        _copy(channel, target, source, here, kind)
        machine.Stream.of(int(channel["stream"])).synchronize()
        if kind == 2:
            pass_on()


def _pass_chunk(chunks: Any, number: int, staged: int, kind: int) -> None:
    """A chunk of a grid between its array and memory in which it is whole."""
    grid = chunks.grid.contents
    strides, extents, begin, chunk = (
        (ctypes.c_int64 * grid.rank).from_address(address)[:]
        for address in (grid.strides, grid.extents, grid.begin, grid.chunk)
    )
    counts = [-(-(b + e) // c) for b, e, c in zip(begin, extents, chunk, strict=True)]
    at = np.unravel_index(chunks.grid_first + number, counts)
    low = [max(int(i) * c - b, 0) for i, c, b in zip(at, chunk, begin, strict=True)]
    high = [min((int(i) + 1) * c - b, e) for i, c, b, e in zip(at, chunk, begin, extents, strict=True)]
    inside = tuple(
        slice(a + b - int(i) * c, z + b - int(i) * c) for a, z, b, i, c in zip(low, high, begin, at, chunk, strict=True)
    )
    kind_of = np.dtype(("V", grid.item_bytes))
    memory: Any = (ctypes.c_ubyte * chunks.chunk_bytes).from_address(staged)
    block = np.frombuffer(memory, kind_of).reshape(chunk)
    first = grid.values + sum(a * s for a, s in zip(low, strides, strict=True))
    one: Any = (ctypes.c_ubyte * grid.item_bytes).from_address(first)
    part = np.lib.stride_tricks.as_strided(
        np.frombuffer(one, kind_of), [z - a for a, z in zip(low, high, strict=True)], strides
    )
    if kind == 1:
        padding: Any = (ctypes.c_ubyte * grid.item_bytes).from_address(chunks.padding)
        block[...] = np.frombuffer(padding, kind_of)[0]
        block[inside] = part
    else:
        part[...] = block[inside]


def _copy(channel: Any, target: int, source: int, size: int, kind: int) -> None:
    assert machine.memory_type(source if kind == 1 else target) == machine.HOST
    machine.memcpy_async(target, source, size, kind, int(channel["stream"]))
