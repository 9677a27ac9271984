# SPDX-License-Identifier: BSD-3-Clause
"""Calls of the filter function itself, with buffers as HDF5 would give them."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint, c_void_p
from typing import Any, ClassVar

DECODE = 0x100  # H5Z_FLAG_REVERSE
FilterCallback = ctypes.CFUNCTYPE(
    c_size_t, c_uint, c_size_t, POINTER(c_uint), c_size_t, POINTER(c_size_t), POINTER(c_void_p)
)


class FilterClass(ctypes.Structure):
    """H5Z_class2_t."""

    _fields_: ClassVar[Any] = (
        ("version", c_int),
        ("id", c_int),
        ("encoder_present", c_uint),
        ("decoder_present", c_uint),
        ("name", c_char_p),
        ("can_apply", c_void_p),
        ("set_local", c_void_p),
        ("filter", FilterCallback),
    )


class Chunk:
    """A buffer as HDF5 would give it: from malloc, which the filter falls back to as no libhdf5 calls it here."""

    def __init__(self, content: bytes) -> None:
        self.c = ctypes.CDLL(None)
        self.c.malloc.restype = c_void_p
        self.c.malloc.argtypes = [c_size_t]
        self.c.free.argtypes = [c_void_p]
        self.pointer = c_void_p(self.c.malloc(len(content)))
        self.capacity = c_size_t(len(content))
        self.used = len(content)
        ctypes.memmove(self.pointer, content, len(content))

    def call(self, filter_class: FilterClass, flags: int, values: tuple[int, ...], used: int | None = None) -> int:
        array = (c_uint * len(values))(*values)
        used = self.used if used is None else used
        done: int = filter_class.filter(flags, len(values), array, used, byref(self.capacity), byref(self.pointer))
        if done:
            self.used = done
        return done

    @property
    def content(self) -> bytes:
        assert self.used <= self.capacity.value
        return ctypes.string_at(self.pointer, self.used)

    def __del__(self) -> None:
        self.c.free(self.pointer)
