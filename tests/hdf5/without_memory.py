# SPDX-License-Identifier: BSD-3-Clause
"""A process that test_no_memory.py starts: `python -m hdf5.without_memory LIBRARY`, with no_memory.c preloaded.

For each codec it encodes, decodes and uses the filter as often as they allocate memory, and each time another
allocation is refused, or all from that one on.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from ctypes import addressof, byref, c_long, c_size_t, c_uint, c_void_p
from typing import Any

import numpy as np
from reference.library import Library, Request

from .support import Array, field, stored, words

NO_MEMORY = 50
#: Allocations that are refused: the first ones, then every so many.
PLACES = (*range(24), *range(24, 400, 12))
ALL = 1 << 40
ROWS = np.random.default_rng(1).normal(size=(5000, 3)).astype("f4")
WAVES = field((6, 21, 34))
#: dtype, codec, bound mode, bound, parameters, values
CASES: dict[str, tuple[int, int, int, float, tuple[int, ...], Array]] = {
    "cuszp2": (1, 1, 1, 1e-2, (), WAVES),
    "lossless": (1, 2, 0, 0, (), WAVES),
    "lossless with bins": (5, 2, 0, 0, (1,), (WAVES * 50).astype("i2")),
    "hierarchical_delta": (1, 3, 1, 1e-2, (), WAVES),
    "lorenzo": (1, 4, 1, 1e-2, (), WAVES),
    "lorenzo of doubles": (2, 4, 2, 1e-3, (), WAVES.astype("f8")),
    "particles": (1, 5, 1, 1e-2, (1,), ROWS),
    "particles of a chunk": (1, 5, 1, 1e-2, (2,), ROWS),
    "progressive": (1, 6, 1, 1e-2, (), WAVES),
    "adaptive": (1, 7, 1, 1e-2, (), WAVES[:2]),
    "halves": (14, 3, 1, 1e-2, (), WAVES.astype("f2")),
    "complex numbers": (11, 3, 1, 1e-2, (), WAVES.astype("c8")),
}
PARTICLES = 5


class Refusing:
    """The library's functions, whose allocations are refused."""

    def __init__(self, library: Library) -> None:
        self.shim = ctypes.CDLL(None)
        self.shim.call_without_memory.restype = c_long
        self.first = ctypes.cast(library.c.pyf_last_error, c_void_p)

    def call(self, function: Any, arguments: tuple[Any, ...], before: int, count: int) -> tuple[int, int]:
        """How many allocations were refused, and what the function returned."""
        result, numbers = c_long(), (c_long * 8)(*arguments)
        address = ctypes.cast(function, c_void_p)
        refused = self.shim.call_without_memory(
            address, self.first, numbers, c_long(before), c_long(count), byref(result)
        )
        assert refused >= 0
        return refused, result.value

    def calls(self, function: Any, *arguments: Any, good: Callable[[int], None]) -> int:
        """How many calls had an allocation refused; `good` judges a call that succeeds all the same."""
        tried = 0
        for count in (1, ALL):
            for before in PLACES:
                refused, code = self.call(function, arguments, before, count)
                if refused == 0:
                    break
                tried += 1
                if code & 0xFFFFFFFF != NO_MEMORY:
                    good(code)
        return tried


def try_codec(library: Library, refusing: Refusing, name: str) -> int:
    dtype, codec, mode, bound, parameters, values = CASES[name]
    request = Request(codec=codec, dtype=dtype, bound_mode=mode, bound=bound, rank=values.ndim)
    request.dims[: values.ndim] = values.shape
    request.parameters[: len(parameters)] = parameters
    frame = library.encode(request, values)
    whole = library.decode(frame, values.nbytes)
    room = ctypes.create_string_buffer(library.c.pyf_max_frame_bytes(byref(request)))
    back, used = ctypes.create_string_buffer(values.nbytes), c_size_t()
    held = ctypes.create_string_buffer(frame, len(frame))
    limit = bound * (np.ptp(values) if mode == 2 else 1)

    def judge(decoded: bytes) -> None:
        """Particles may come in another order."""
        got = np.frombuffer(decoded, values.dtype).reshape(values.shape)
        if codec == PARTICLES:
            got, given = np.sort(got, axis=0), np.sort(values, axis=0)
            assert np.max(np.abs(got - given)) <= limit, name
        else:
            assert np.max(np.abs(got - values)) <= limit, name

    def encoded(code: int) -> None:
        assert code & 0xFFFFFFFF == 0, (name, code)
        judge(library.decode(room.raw[: used.value], values.nbytes))

    def decoded(code: int) -> None:
        assert code & 0xFFFFFFFF == 0, (name, code)
        size = part if back.raw[:8] != whole[:8] else values.nbytes
        assert back.raw[:size] in (whole, whole[2 * values.itemsize :][:part]), name

    part = values.itemsize * (values.size - 3)
    out = (addressof(room), len(room), addressof(used))
    source = (addressof(held), len(frame))
    tried = refusing.calls(
        library.c.pyf_encode, addressof(request), values.ctypes.data, values.nbytes, *out, good=encoded
    )
    changed = values.copy()
    changed.flat[0] = values.flat[1]
    update = (addressof(request), values.ctypes.data, values.nbytes, *source, *out)
    tried += refusing.calls(library.c.pyf_encode_updated, *update, good=encoded)
    tried += refusing.calls(library.c.pyf_decode, *source, addressof(back), values.nbytes, good=decoded)
    span = (2, values.size - 1, addressof(back), part)
    tried += refusing.calls(library.c.pyf_decode_range, *source, *span, good=decoded)
    return tried


def try_filter(library: Library, refusing: Refusing, big_endian: bool) -> int:
    """Without a libhdf5 the filter has memory of malloc. A chunk is decoded, then encoded beside its frame."""
    from .filter_calls import FilterClass

    library.c.H5PLget_plugin_info.restype = c_void_p
    of = FilterClass.from_address(library.c.H5PLget_plugin_info())
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = c_void_p, [c_size_t], [c_void_p]
    settings = stored(words(1e-3, 2, 3 if big_endian else 7), "f4", WAVES.shape, big_endian=big_endian)
    array = (c_uint * len(settings))(*settings)
    tried, content = 0, WAVES.astype(">f4" if big_endian else "<f4").tobytes()
    for flags in (0, 0x100, 0):
        held = content
        for count in (1, ALL):
            for before in PLACES:
                pointer, size = c_void_p(libc.malloc(len(content))), c_size_t(len(content))
                ctypes.memmove(pointer, content, len(content))
                chunk = (len(content), addressof(size), addressof(pointer))
                refused, used = refusing.call(
                    of.filter, (flags, len(settings), addressof(array), *chunk), before, count
                )
                held = ctypes.string_at(pointer, used or len(content))
                libc.free(pointer)
                assert used or held == content, "a failure changed the chunk"
                if refused == 0:
                    break
                tried += 1
        content = held
    return tried


def main() -> None:
    library = Library(sys.argv[1])
    library.configure("threads", "1")
    refusing = Refusing(library)
    for name in CASES:
        print(name, try_codec(library, refusing, name), flush=True)
    for big_endian in (False, True):
        print("filter", "big-endian" if big_endian else "little-endian", try_filter(library, refusing, big_endian))


if __name__ == "__main__":
    main()
