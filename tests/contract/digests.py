# SPDX-License-Identifier: BSD-3-Clause
"""Digests of many frames and of what they decode to, one case a line, for machines to compare (scripts/aarch64).

Run on each machine: ``python -m contract.digests >FILE`` in tests/; the files are the same. Values come from integers,
bit patterns and single IEEE operations, which are the same everywhere; their digest is in the line, too.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pyfilter
from pyfilter.registry import registry

from .fields import BASE_DTYPES, LOSSY, family, lossy_codecs, sprinkle

Array = NDArray[Any]
SHAPES: tuple[tuple[int, ...], ...] = ((20011,), (130, 151), (9, 33, 70), (2, 9, 17, 67), (6007, 3))
BOUNDS = (1e-1, 1e-3, 1e-6)
KINDS = ("walk", "noise", "bits", "huge range", "lattice", "half-way", "subnormal", "sparse")


def values_of(kind: str, shape: tuple[int, ...], dtype: np.dtype[Any], seed: int) -> Array:
    rng = np.random.default_rng(seed)
    n = int(np.prod(shape))
    if dtype.kind != "f" or kind in ("walk", "noise"):
        whole = rng.integers(-1000, 1001, n)
        whole = np.cumsum(whole) // 40 if kind == "walk" else whole
        return (whole if dtype.kind != "f" else whole / 700).astype(dtype).reshape(shape)
    return family(kind, n, dtype, rng, 1.0, 1e-3).reshape(shape)


def float_codecs(rank: int, bound: float) -> Iterator[pyfilter.Codec]:
    for lossy, mode in itertools.product(LOSSY, ("absolute", "relative", "pointwise_relative")):
        if mode != "pointwise_relative" or lossy is not pyfilter.Cuszp2:
            yield from lossy_codecs(lossy, rank, **{mode: bound})
    for errors in ("measured", "bounds"):
        yield pyfilter.Progressive(absolute=bound, errors=errors)


def cases() -> Iterator[tuple[Array, pyfilter.Codec, Any]]:
    """Every codec with every choice that a shape allows, in turn with kinds of values, bounds and special values."""
    turns = itertools.count()
    for shape, name in itertools.product(SHAPES, BASE_DTYPES):
        dtype = np.dtype(registry().dtypes[name].numpy)
        lossless = [pyfilter.Lossless(block_dims=dims) for dims in range(1, min(3, len(shape)) + 1)]
        lossless.append(pyfilter.Lossless(effort="ratio"))
        for codec in (*lossless, pyfilter.HierarchicalDelta(absolute=2)):
            if dtype.kind != "f" or isinstance(codec, pyfilter.Lossless):
                yield values_of("walk", shape, dtype, next(turns)), codec, None
    for shape, code, bound in itertools.product(SHAPES, ("f4", "f8"), BOUNDS):
        dtype = np.dtype(code)
        for codec in float_codecs(len(shape), bound):
            turn = next(turns)
            values = values_of(KINDS[turn % len(KINDS)], shape, dtype, turn)
            fill = (None, dtype.type(-999), dtype.type(np.nan))[turn // 3 % 3]
            how = ("none", "few", "none", "runs", "most")[turn % 5]
            yield sprinkle(values, fill, how, np.random.default_rng(turn)), codec, fill
        if len(shape) == 2 and shape[1] <= 3:
            for order in ("kept", "tile", "chunk"):
                turn = next(turns)
                positions = values_of(KINDS[turn % 2], shape, dtype, turn)
                yield positions, pyfilter.Particles(absolute=bound, order=order), None


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def main() -> None:
    for values, codec, fill in cases():
        frame = pyfilter.encode(values, codec, fill)
        decoded = pyfilter.decode(frame)
        print(digest(values.tobytes()), digest(frame), digest(decoded.tobytes()), len(frame), end=" ")
        print(values.dtype, *values.shape, codec, fill)


if __name__ == "__main__":
    main()
