# SPDX-License-Identifier: BSD-3-Clause
"""The library by ctypes alone, not through the package: for tests that compare it with the reference decoder.

Run as a module (`python -m reference.library PATH FILE` from tests/) it decodes the frames of a file, each behind its
size in four bytes, and prints lines of JSON. In a process of its own a crash is a finding, not the end of the test run.
Frame and values lie right before a page that may not be touched, so that one byte too far is a crash too.
"""

from __future__ import annotations

import ctypes
import importlib.util
import itertools
import json
import mmap
import os
import sys
import zlib
from ctypes import byref, c_char, c_int, c_size_t, c_void_p
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from . import hostile

OK, INVALID_ARGUMENT, CORRUPT, TRUNCATED, TOO_NEW, NO_SPACE = 0, 10, 30, 31, 32, 40
FAMILIES = {CORRUPT: hostile.CORRUPT, TRUNCATED: hostile.TRUNCATED, TOO_NEW: hostile.TOO_NEW}

if TYPE_CHECKING:
    from pyfilter._lib import abi as abi
    from pyfilter._lib.abi import Info as Info
    from pyfilter._lib.abi import Request as Request
else:  # by its path: the import of pyfilter itself would register the filter with the libhdf5 that tests load
    spec = importlib.util.spec_from_file_location("abi", Path(__file__).parents[2] / "pyfilter" / "_lib" / "abi.py")
    abi = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(abi)
    Info, Request = abi.Info, abi.Request


class LibraryError(Exception):
    """A code other than 0, with the text of pyf_last_error."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code


class Library:
    """The functions of the C ABI that decode and encode."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.c = ctypes.CDLL(os.fspath(path))
        abi.declare(self.c)

    def check(self, code: int) -> None:
        if code != OK:
            raise LibraryError(code, self.c.pyf_last_error().decode())

    def configure(self, key: str, value: str) -> None:
        self.check(self.c.pyf_configure(key.encode(), value.encode()))

    def info(self, frame: bytes) -> Info:
        info = Info()
        self.check(self.c.pyf_frame_info(frame, len(frame), byref(info)))
        return info

    def decode(self, frame: bytes, value_bytes: int) -> bytes:
        values = ctypes.create_string_buffer(b"\xa5" * value_bytes, value_bytes + 1)
        self.check(self.c.pyf_decode(frame, len(frame), values, value_bytes))
        return values.raw[:value_bytes]

    def decode_range(self, frame: bytes, start: int, stop: int, value_bytes: int) -> bytes:
        values = ctypes.create_string_buffer(b"\xa5" * value_bytes, value_bytes + 1)
        self.check(self.c.pyf_decode_range(frame, len(frame), start, stop, values, value_bytes))
        return values.raw[:value_bytes]

    def encode(self, request: Request, values: NDArray[Any], old: bytes | None = None) -> bytes:
        """`old`: the frame that these values were decoded from before some were changed."""
        capacity, used = self.c.pyf_max_frame_bytes(byref(request)), c_size_t()
        frame = ctypes.create_string_buffer(capacity)
        values = np.ascontiguousarray(values)
        given, made = (byref(request), values.ctypes.data, values.nbytes), (frame, capacity, byref(used))
        if old is None:
            self.check(self.c.pyf_encode(*given, *made))
        else:
            self.check(self.c.pyf_encode_updated(*given, old, len(old), *made))
        return frame.raw[: used.value]


class GuardedMemory:
    """Bytes that end where a page begins that may not be read or written."""

    def __init__(self, size: int) -> None:
        page = mmap.PAGESIZE
        self.size = -(-size // page) * page
        self.memory = mmap.mmap(-1, self.size + page)
        self.start = ctypes.addressof(c_char.from_buffer(self.memory))
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mprotect.argtypes = [c_void_p, c_size_t, c_int]
        if libc.mprotect(self.start + self.size, page, 0) != 0:
            raise OSError(ctypes.get_errno(), "mprotect")

    def last(self, size: int) -> int:
        """Address of the last `size` bytes."""
        return self.start + self.size - size

    def put(self, data: bytes) -> int:
        self.memory[self.size - len(data) : self.size] = data
        return self.last(len(data))


def codes_of_frame(
    library: Library, source: GuardedMemory, target: GuardedMemory, data: bytes
) -> tuple[list[int], int]:
    """Codes of pyf_frame_info, pyf_decode and pyf_decode_range of the whole; the address of the values."""
    frame, size = source.put(data), len(data)
    info = Info()
    codes = [library.c.pyf_frame_info(frame, size, byref(info))]
    # What a caller would give. A size beyond our memory is a lie of the header: to be found before any value.
    count, value_bytes = (info.value_count, info.value_bytes) if codes[0] == OK else (40, 160)
    values = target.last(min(value_bytes, target.size))
    codes.append(library.c.pyf_decode_range(frame, size, 0, count, values, value_bytes))
    codes.insert(1, library.c.pyf_decode(frame, size, values, value_bytes))
    return codes, values


def checksum(values: bytes, dtype: int) -> int:
    """Of decoded values; all NaNs count as one."""
    if dtype not in (1, 2):
        return zlib.crc32(values)
    array = np.frombuffer(values, f"f{4 * dtype}").copy()
    array[np.isnan(array)] = np.nan
    return zlib.crc32(array.tobytes())


def main(path: str, frames: str) -> None:
    """A line before each frame (its number) and one after it (codes; checksum of the values, if any)."""
    library = Library(path)
    source, target = GuardedMemory(1 << 20), GuardedMemory(1 << 20)
    with Path(frames).open("rb") as file:
        for number in itertools.count():
            front = file.read(4)
            if not front:
                break
            frame = file.read(int.from_bytes(front, "little"))
            print(number, flush=True)
            codes, values = codes_of_frame(library, source, target, frame)
            size = library.info(frame).value_bytes if codes[1] == OK else 0
            crc = checksum(ctypes.string_at(values, size), frame[9]) if codes[1] == OK else None
            print(json.dumps([codes, crc]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
