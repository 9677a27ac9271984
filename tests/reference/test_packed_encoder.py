# SPDX-License-Identifier: BSD-3-Clause
"""The library's packed tiles against packed_encoder.py: from a frame's header and values the same bytes.

So docs/format.md says all there is to know about missing values, the codes below them, signs and exceptions.
"""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from . import packed, packed_encoder
from .decoder import HAS_SENTINEL, decode, parse_header
from .encoder import DTYPE_CODES, Spec
from .library import Library, Request
from .located import PATH, needs_library
from .packed_writer import write_frame

Array = NDArray[Any]
pytestmark = needs_library
DTYPES = pytest.mark.parametrize("dtype", ["f4", "f8"])
#: by tile shape: of a few tiles, ragged at all sides; 0 is the encoder's own choice
DIMS = {0: (9000,), 1: (9000,), 2: (2, 70, 67), 3: (11, 19, 35), 4: (1100, 5)}
SHAPES = pytest.mark.parametrize("shape", list(DIMS))
ABSOLUTE, POINTWISE = 1, 3
FILL = -999.0


def library_frame(values: Array, shape: int, bound: float, mode: int = ABSOLUTE, outliers: int = 1) -> bytes:
    """What the library makes of an array whose fill value is FILL."""
    assert PATH is not None
    dtype = values.dtype
    request = Request(codec=3, bound_mode=mode, bound=bound, has_fill=1)
    request.dtype, request.rank = DTYPE_CODES[dtype.str[1:]], values.ndim
    request.fill = int(np.array([FILL if dtype.kind == "f" else 5], dtype).view(f"u{dtype.itemsize}")[0])
    request.parameters[0], request.parameters[1] = shape, outliers
    for axis, size in enumerate(values.shape):
        request.dims[axis] = size
    return Library(PATH).encode(request, values)


def reference_frame(values: Array, frame: bytes) -> bytes:
    """What the reference encoder makes of it, with the header of the library's frame."""
    header = parse_header(frame)
    assert header.packed
    assert not header.raw
    spec = Spec(
        codec="hierarchical_delta",
        dtype=values.dtype.str[1:],
        dims=values.shape,
        tile_shape=header.tile_shape,
        outliers=header.parameters[1],
        order=header.order,
        bound=header.bound,
        step=header.step,
        sentinel=header.sentinel if header.flags & HAS_SENTINEL else None,
        pointwise=header.pointwise,
    )
    return write_frame(spec, list(packed_encoder.tiles_of_values(spec, values)))


def check(values: Array, frame: bytes) -> packed.Tile:
    """Both frames are the same; gives its tiles."""
    made = reference_frame(values, frame)
    header = parse_header(frame)
    count = len(packed.present_blocks(header))
    starts, wanted = (struct.unpack_from(f"<{count + 1}I", f, header.header_bytes) for f in (made, frame))
    assert starts == wanted, "tiles of other sizes"
    assert made == frame
    tiles = packed.parse_tiles(frame, header)
    assert tiles is not None
    return tiles


def smooth(dims: tuple[int, ...], dtype: str, rng: np.random.Generator) -> Array:
    """Waves along each axis and a little noise, on a lattice of eighths: no two codes are equally near."""
    index = np.indices(dims)
    waves = sum(40 * np.sin(axis / (9 + 4 * i)) for i, axis in enumerate(index)) + rng.normal(size=dims)
    values: Array = (np.round(8 * waves) / 8).astype(dtype)
    return values


def holes(dims: tuple[int, ...], how: str, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Where values are missing."""
    index = np.indices(dims)
    if how == "random":
        return np.asarray(rng.random(dims) < 0.3)
    if how == "few":
        return np.asarray(rng.random(dims) < 0.002)
    if how == "coast":
        edge = sum(np.sin(axis / (7 + 3 * i)) for i, axis in enumerate(index))
        return np.asarray(edge > np.quantile(edge, 0.6))
    if how == "lines":  # rows, blocks of a chain, parts of columns
        return np.asarray((index[-2] // 5 if len(dims) > 1 else index[-1] // 37) % 3 == 1)
    if how == "slabs":
        return np.asarray((index[0] % 8 < 3) | (index[-1] > 33) & (index[0] < 7))
    return np.asarray(np.arange(math.prod(dims)).reshape(dims) < math.prod(dims) * 0.93)  # most of it


@SHAPES
@DTYPES
@pytest.mark.parametrize("how", ["random", "few", "coast", "lines", "slabs", "most"])
def test_missing_values(dtype: str, shape: int, how: str) -> None:
    """Predicted and plain masks, and the codes of missing values."""
    rng = np.random.default_rng(shape)
    values = smooth(DIMS[shape], dtype, rng)
    values[holes(values.shape, how, rng)] = FILL
    frame = library_frame(values, shape, 0.25)
    tiles = check(values, frame)
    assert (tiles.flags & (packed.MISSING | packed.ALL_MISSING)).any()


@SHAPES
@DTYPES
@pytest.mark.parametrize("outliers", [1, 2])
def test_special_values(dtype: str, shape: int, outliers: int) -> None:
    """NaNs, infinities and values out of reach besides, alone and in runs; exceptions."""
    rng = np.random.default_rng(shape)
    values = smooth(DIMS[shape], dtype, rng)
    values[holes(values.shape, "coast", rng)] = FILL
    for number, share in ((np.nan, 0.02), (np.inf, 0.001), (1e30, 0.001), (500.0, 0.003)):
        values[rng.random(values.shape) < share] = number
    values.reshape(-1)[700:900] = np.nan
    values.reshape(-1)[900] = -np.inf
    tiles = check(values, library_frame(values, shape, 0.25, outliers=outliers))
    assert tiles.masks.any()
    assert (tiles.exceptions >= 0).any() == (outliers == 1)


@SHAPES
@DTYPES
@pytest.mark.parametrize("signs", ["mixed", "negative", "mostly negative", "a tile of each"])
def test_signs(dtype: str, shape: int, signs: str) -> None:
    """Bounds relative to each value: zeros, signs, and tiles of negative values."""
    rng = np.random.default_rng(shape)
    values = np.exp(smooth(DIMS[shape], "f8", rng) / 9).astype(dtype)
    share = {"mixed": 0.5, "negative": 1.1, "mostly negative": 0.97, "a tile of each": 0.0}[signs]
    values[rng.random(values.shape) < share] *= -1
    if signs == "a tile of each":
        values.reshape(-1)[: values.size // 2] *= -1
    values[rng.random(values.shape) < 0.01] = 0
    values[rng.random(values.shape) < 0.01] *= 0  # -0.0 where it was negative
    values[holes(values.shape, "coast", rng)] = FILL
    values.reshape(-1)[[50, 60]] = np.nan, -np.inf
    values = decode(library_frame(values, shape, 1e-2, POINTWISE))  # magnitudes right in the middle of a code
    tiles = check(values, library_frame(values, shape, 1e-2, POINTWISE))
    negative = (tiles.flags & packed.NEGATIVE != 0).any(axis=1)
    assert negative.any() or signs == "mixed"
    assert not negative.all() or signs in ("negative", "mostly negative")


@DTYPES
def test_noise_needs_no_differences(dtype: str) -> None:
    """White noise, with missing values: a chain of order 0."""
    rng = np.random.default_rng(1)
    values = np.round(rng.normal(size=9000) * 300).astype(dtype)
    values[holes(values.shape, "coast", rng)] = FILL
    frame = library_frame(values, 0, 0.5)
    assert (parse_header(frame).tile_shape, parse_header(frame).order) == (1, 0)
    check(values, frame)


@SHAPES
@DTYPES
def test_edges_of_tiles(dtype: str, shape: int) -> None:
    """All values missing, none, one; tiles that are empty or verbatim; bit-exact ones."""
    values = np.full(DIMS[shape], FILL, dtype)
    assert (check(values, library_frame(values, shape, 0.25)).flags == packed.ALL_MISSING).all()
    values.reshape(-1)[-1] = 7
    check(values, library_frame(values, shape, 0.25))
    values[...] = 0
    values.reshape(-1)[: values.size // 2] = np.arange(values.size // 2) // 40
    check(values, library_frame(values, shape, 0.25))
    check(values, library_frame(values, shape, 5e-324))
    bits = np.random.default_rng(2).integers(0, 1 << 62, values.size // 3).astype(f"u{values.itemsize}")
    values.reshape(-1)[: values.size // 3] = bits.view(dtype)
    check(values, library_frame(values, shape, 0.25))


@SHAPES
@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u4", "i8"])
def test_integers(dtype: str, shape: int) -> None:
    """Missing values and what lies near them, exceptions, bit-exact frames, the ends of the type."""
    rng, info = np.random.default_rng(shape), np.iinfo(dtype)
    values = np.round(smooth(DIMS[shape], "f8", rng) / 4).astype("i8")
    values = (values - values.min() + 10).astype(dtype)
    values[rng.random(values.shape) < 0.003] += 60
    check(values, library_frame(values, shape, 0.0))
    values[holes(values.shape, "coast", rng)] = 5
    values[rng.random(values.shape) < 0.002] = 6  # becomes 5, or would
    for bound in (2.0, 7.0):
        tiles = check(values, library_frame(values, shape, bound))
        assert (tiles.flags & (packed.MISSING | packed.ALL_MISSING)).any()
        assert tiles.masks.any() == (bound == 2)  # 5 is a multiple of 5, not of 15
    values.reshape(-1)[::50] = info.max
    values.reshape(-1)[7::90] = info.min
    check(values, library_frame(values, shape, 3.0))
