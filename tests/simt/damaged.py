# SPDX-License-Identifier: BSD-3-Clause
"""Frames damaged in many places at once, so that several threads detect damage concurrently.

``python tests/simt/damaged.py COUNT [CODEC ...]``: kernels refuse the same frames as the CPU, decode the others to the
same values, and access no memory out of bounds.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import pyfilter
from simt import arrays

CODECS = [
    "Cuszp2",
    "Lossless",
    "HierarchicalDelta",
    "Lorenzo",
    "Huffman",
    "Particles",
    "Progressive",
    "Adaptive",
    "Refined",
    "LosslessRatio",
]


def frame_of(name: str, dtype: str, rng: np.random.Generator) -> bytes:
    """A frame of many tiles."""
    shape = (70, 90, 80) if name == "Progressive" else (40, 60, 50)
    values = np.cumsum(rng.standard_normal(shape), axis=2).astype(dtype)
    if name == "Particles":
        values = rng.standard_normal((40_000, 3)).astype(dtype)
        return pyfilter.encode(values, pyfilter.Particles(absolute=1e-3, order="tile"))
    if name == "Lossless":
        return pyfilter.encode(values, pyfilter.Lossless())
    if name == "LosslessRatio":  # remainders
        values = np.round(values, 1)
        values.reshape(-1)[rng.integers(0, values.size, 1000)] *= 1.1
        if dtype == "f4":  # changes of remainders
            values = (np.round(values * 200) / 512 + np.linspace(250, 300, 40)[:, None, None]).astype(dtype)
        return pyfilter.encode(values, pyfilter.Lossless(effort="ratio"))
    if name == "Huffman":
        return pyfilter.encode(values, pyfilter.Lorenzo(absolute=0.01, coder="huffman"))
    if name in ("Adaptive", "Refined"):  # masks and verbatim values
        values[:, 20:30] = np.nan
        values.reshape(-1)[rng.integers(0, values.size, 100)] *= -1
        predictor = "regression" if name == "Adaptive" else "interpolation"
        frame = pyfilter.encode(values, pyfilter.Adaptive(absolute=0.01, predictor=predictor), fill_value=np.nan)
        assert pyfilter.frame_info(frame).codec == "adaptive"
        return frame
    codec: Any = getattr(pyfilter, name)
    return pyfilter.encode(values, codec(absolute=0.01))


def broken(frame: bytes, rng: np.random.Generator) -> bytes:
    """Flip some bits, often in the first part, which describes the whole frame."""
    data = bytearray(frame)
    header = 8 * data[7]
    end = len(data) if rng.integers(0, 4) else min(len(data), header + 4000)
    for at in rng.integers(header, end, 4 ** rng.integers(0, 6)):
        data[at] ^= 1 << rng.integers(0, 8)
    return bytes(data)


def main(count: int, names: list[str]) -> int:
    from gpu.damaged_frames import compare_frame
    from gpu.group import Group

    good = True
    for name in names:
        rng = np.random.default_rng(len(name))
        group, refused = Group(name), 0
        for dtype in ("f4", "f8"):
            frame = frame_of(name, dtype, rng)
            for i in range(count):
                refused += compare_frame(group, broken(frame, rng), f"{dtype}, number {i}", any_nan=True)
        print(f"{name:20} {2 * count} frames, {refused} refused, {len(group.bad)} differ", flush=True)
        good = good and not group.bad
    return 0 if good else 1


if __name__ == "__main__":
    arrays.install()
    sys.exit(main(int(sys.argv[1]), sys.argv[2:] or CODECS))
