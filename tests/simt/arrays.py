# SPDX-License-Identifier: BSD-3-Clause
"""The part of CuPy that tests/gpu/device.py uses, in host memory, for kernels that run on a CPU.

Arrays end at a page boundary: the byte behind the last one cannot be accessed.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
import types
from typing import Any

import numpy as np

PAGE = mmap.PAGESIZE
_libc = ctypes.CDLL(None, use_errno=True)


class Array:
    """An array of "device memory"."""

    def __init__(self, values: Any, owner: Any = None) -> None:
        self.values = values
        self.owner = owner
        self.nbytes = values.nbytes
        self.size = values.size

    @property
    def data(self) -> Any:
        return types.SimpleNamespace(ptr=self.values.ctypes.data)

    def __getitem__(self, key: Any) -> Array:
        return Array(self.values[key], self.owner)

    def __setitem__(self, key: Any, value: Array) -> None:
        self.values[key] = value.values

    def get(self) -> Any:
        return self.values.copy()


def empty(count: int, dtype: Any) -> Array:
    size = -(-count * np.dtype(dtype).itemsize // 16) * 16
    pages = -(-max(size, 1) // PAGE) * PAGE
    memory = mmap.mmap(-1, pages + PAGE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    if _libc.mprotect(ctypes.c_void_p(start + pages), ctypes.c_size_t(PAGE), 0) != 0:
        raise OSError(ctypes.get_errno(), "mprotect")
    found = np.frombuffer(memory, np.uint8, size, pages - size)[: count * np.dtype(dtype).itemsize]
    return Array(found.view(dtype), memory)


def full(count: int, value: int, dtype: Any = np.uint8) -> Array:
    found = empty(count, dtype)
    found.values[:] = value
    return found


def asarray(values: Any) -> Array:
    found = empty(values.nbytes, np.uint8)
    found.values[:] = np.frombuffer(values.tobytes(), np.uint8)
    return Array(found.values.view(values.dtype).reshape(values.shape), found.owner)


def install() -> None:
    """Put this in the place of CuPy."""
    cupy: Any = types.ModuleType("cupy")
    cupy.full, cupy.asarray = full, asarray
    cupy.uint8, cupy.uint32, cupy.uint64 = np.uint8, np.uint32, np.uint64
    stream = types.SimpleNamespace(ptr=0, synchronize=lambda: None)
    cupy.cuda = types.SimpleNamespace(get_current_stream=lambda: stream)
    sys.modules["cupy"] = cupy
