# SPDX-License-Identifier: BSD-3-Clause
"""Frames that are damaged in many places at once, so that threads find it out beside each other.

``python tests/simt/damaged.py COUNT [CODEC ...]``: what the CPU refuses is refused, what it decodes is the same, and
nothing outside of memory is touched.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import pyfilter
from pyfilter import _native
from simt import arrays

Array = NDArray[Any]
CODECS = ["Cuszp2", "Lossless", "HierarchicalDelta", "Lorenzo", "Huffman", "Particles", "Progressive"]


def frame_of(name: str, dtype: str, rng: np.random.Generator) -> tuple[Array, bytes]:
    """Values, and a frame of many tiles of them."""
    shape = (70, 90, 80) if name == "Progressive" else (40, 60, 50)
    values = np.cumsum(rng.standard_normal(shape), axis=2).astype(dtype)
    if name == "Particles":
        values = rng.standard_normal((40_000, 3)).astype(dtype)
        return values, pyfilter.encode(values, pyfilter.Particles(absolute=1e-3, order="tile"))
    if name == "Lossless":
        return values, pyfilter.encode(values, pyfilter.Lossless())
    if name == "Huffman":
        return values, pyfilter.encode(values, pyfilter.Lorenzo(absolute=0.01, coder="huffman"))
    codec: Any = getattr(pyfilter, name)
    return values, pyfilter.encode(values, codec(absolute=0.01))


def broken(frame: bytes, rng: np.random.Generator) -> bytes:
    """Some bits of it, often of its first part, where what belongs to the whole frame is."""
    data = bytearray(frame)
    header = 8 * data[7]
    end = len(data) if rng.integers(0, 4) else min(len(data), header + 4000)
    for at in rng.integers(header, end, 4 ** rng.integers(0, 6)):
        data[at] ^= 1 << rng.integers(0, 8)
    return bytes(data)


def decoded(decode: Any, dtype: Any) -> Array | None:
    """The values, any NaN as one; None where the frame is refused."""
    try:
        values: Array = np.asarray(decode()).reshape(-1).view(dtype).copy()
    except pyfilter.PyfilterError:
        return None
    values[np.isnan(values)] = np.nan
    return values


def main(count: int, names: list[str]) -> int:
    from gpu import device

    worst = 0
    for name in names:
        rng = np.random.default_rng(len(name))
        refused = differ = 0
        for dtype in ("f4", "f8"):
            values, frame = frame_of(name, dtype, rng)
            for _ in range(count):
                bad = broken(frame, rng)
                out = np.empty_like(values)

                def on_cpu(bad: bytes = bad, out: Array = out) -> Array:
                    _native.decode(np.frombuffer(bad, np.uint8), out)
                    return out

                def on_device(bad: bytes = bad, values: Array = values) -> Array:
                    return device.decode([bad], values.dtype, values.size)[0]

                expected, found = decoded(on_cpu, dtype), decoded(on_device, dtype)
                refused += expected is None
                same = (expected is None) == (found is None)
                if same and expected is not None and found is not None:
                    same = expected.tobytes() == found.tobytes()
                differ += not same
        print(f"{name:20} {2 * count} frames, {refused} refused, {differ} differ", flush=True)
        worst = max(worst, differ)
    return 1 if worst else 0


if __name__ == "__main__":
    arrays.install()
    sys.exit(main(int(sys.argv[1]), sys.argv[2:] or CODECS))
