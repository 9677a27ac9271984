# SPDX-License-Identifier: BSD-3-Clause
"""nvCOMP's Bitcomp as a peer: lossy quantisation to a bound (pip install nvidia-libnvcomp-cu13), by its C interface."""

from __future__ import annotations

import ctypes
import importlib.util
from pathlib import Path
from typing import Any

import cupy

_FLOATS = {
    "f4": (9, ctypes.c_float, "bitcompCompressLossy_fp32"),
    "f8": (10, ctypes.c_double, "bitcompCompressLossy_fp64"),
}
_LOSSY_TO_SIGNED = 1
ALGORITHMS = {"Bitcomp": 0, "Bitcomp sparse": 1}


def library() -> ctypes.CDLL | None:
    """Return libnvcomp, None where it is not installed."""
    spec = importlib.util.find_spec("nvidia.libnvcomp") if importlib.util.find_spec("nvidia") else None
    if spec is None or spec.origin is None:
        return None
    found = sorted((Path(spec.origin).parent / "lib64").glob("libnvcomp.so.*"))
    return ctypes.CDLL(str(found[0])) if found else None


class Bitcomp:
    """A plan: an element type, a size, an algorithm. Its quantum is a power of two, twice the bound at most."""

    def __init__(self, library: ctypes.CDLL, dtype: str, size: int, algorithm: str, bound: float) -> None:
        kind, scalar, compress = _FLOATS[dtype]
        self.library, self.handle = library, ctypes.c_void_p()
        self._check(
            library.bitcompCreatePlan(
                ctypes.byref(self.handle), ctypes.c_size_t(size), kind, _LOSSY_TO_SIGNED, ALGORITHMS[algorithm]
            )
        )
        self._check(library.bitcompSetStream(self.handle, ctypes.c_void_p(cupy.cuda.get_current_stream().ptr)))
        self.compress, self.delta = getattr(library, compress), scalar(2 * bound)
        library.bitcompMaxBuflen.restype = ctypes.c_size_t
        self.packed = cupy.empty(library.bitcompMaxBuflen(ctypes.c_size_t(size)), dtype=cupy.uint8)

    @staticmethod
    def _check(status: int) -> None:
        if status != 0:
            message = f"Bitcomp: status {status}"
            raise RuntimeError(message)

    def encode(self, values: Any) -> None:
        """Compress ``values`` into the plan's buffer."""
        place = ctypes.c_void_p(self.packed.data.ptr)
        self._check(self.compress(self.handle, ctypes.c_void_p(values.data.ptr), place, self.delta))

    def decode(self, out: Any) -> None:
        """Decompress the buffer."""
        place = ctypes.c_void_p(self.packed.data.ptr)
        self._check(self.library.bitcompUncompress(self.handle, place, ctypes.c_void_p(out.data.ptr)))

    def size(self) -> int:
        """Return the compressed size in bytes."""
        size = ctypes.c_size_t()
        self._check(self.library.bitcompGetCompressedSize(ctypes.c_void_p(self.packed.data.ptr), ctypes.byref(size)))
        return size.value

    def close(self) -> None:
        """Free the plan."""
        self.library.bitcompDestroyPlan(self.handle)
