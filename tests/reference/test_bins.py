# SPDX-License-Identifier: BSD-3-Clause
"""Lossless frames with bins: the reference decoder agrees with the reference writer and with the library's encoder.

The library is the one of test_library.py; the tests of decoder and writer need none.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from . import bins, bins_writer, hostile_bins
from .bins import GRID, LIST, MULTIPLE, PATTERN
from .decoder import decode, parse_header
from .library import Library, LibraryError, Request
from .located import needs_library

Array = NDArray[Any]
LEVELS = ("baseline", "avx2", "avx512")
DTYPES = {"f4": 1, "f8": 2, "i1": 3, "u1": 4, "i2": 5, "u2": 6, "i4": 7, "u4": 8, "i8": 9, "u8": 10}


@pytest.mark.parametrize("seed", range(60))
def test_random_frames(seed: int) -> None:
    spec, frame, wanted = bins_writer.random_frame(random.Random(seed))
    array = decode(frame)
    assert array.shape == spec.dims
    assert array.dtype == np.dtype(spec.dtype)
    assert array.reshape(-1).view(f"u{spec.value_bytes}").tolist() == wanted


def test_the_writer_draws_everything() -> None:
    """Kinds of numbers of every dtype, strides, contexts, many tables, uniform streams, escapes, empty streams."""
    found: Counter[Any] = Counter()
    for seed in range(400):
        spec, frame, _ = bins_writer.random_frame(random.Random(seed))
        header = parse_header(frame)
        model = bins.parse_model(frame[header.header_bytes :], header)
        found[spec.dtype, model.kind] += 1
        found["strides", len(model.strides)] += 1
        found["contexts", bool(model.distances)] += 1
        found["remainders", model.remainders] += 1
        found["base", model.base != 0] += model.kind == GRID
        found["changes", model.changes] += 1
        found["units", -(-header.value_count // model.unit_values) > 1] += 1
        for stream in model.streams:
            found["tables", len(stream.tables)] += 1
            found["zigzag", stream.zigzag] += 1
            found["no escape", any(table.frequencies[255] == 0 for table in stream.tables)] += 1
    wanted = {(dtype, kind) for dtype in DTYPES for kind in bins_writer.kinds_of(dtype)}
    wanted |= {("strides", count) for count in range(5)} | {("tables", count) for count in (1, 2, 5, 12)}
    wanted |= {
        (what, there)
        for what in ("contexts", "remainders", "base", "changes", "units", "zigzag", "no escape")
        for there in (False, True)
    }  # fmt: skip
    assert wanted - set(found) == set()


def test_frames_that_hostile_ones_come_from() -> None:
    for name, frame in hostile_bins.small_frames():
        assert decode(frame) is not None, name


def frame_of(library: Library, values: Array) -> bytes:
    """The frame; the same at all levels, decoded alike at all levels and by the reference."""
    request = Request(codec=2, dtype=DTYPES[values.dtype.str[1:]], bound_mode=0, rank=values.ndim)
    request.parameters[0] = 1
    request.dims[: values.ndim] = values.shape
    frames, levels = set(), []
    for level in LEVELS:
        try:
            library.configure("cpu_level", level)
        except LibraryError:
            continue
        levels.append(level)
        frames.add(library.encode(request, values))
    assert len(frames) == 1
    (frame,) = frames
    decoded = decode(frame)
    assert decoded.shape == values.shape
    assert decoded.tobytes() == values.tobytes()
    for level in levels:
        library.configure("cpu_level", level)
        assert library.decode(frame, values.nbytes) == values.tobytes(), level
    return frame


def from_integers(whole: Array, dtype: str) -> Array:
    """As values of the dtype, modulo its width."""
    return whole.astype(dtype) if dtype[0] == "f" else whole.astype(np.int64).astype(dtype)


def patterns(n: int, dtype: str) -> Iterator[tuple[str, Array]]:
    rng = np.random.default_rng(n)
    size = int(dtype[1])
    walk = np.cumsum(rng.integers(-9, 10, n)) + 40
    yield "walk", from_integers(walk, dtype)
    yield "noise", rng.integers(0, 256, n * size, dtype=np.uint8).view(dtype)
    yield "constant", np.full(n, 77, dtype)
    yield "ramp", from_integers(np.arange(n) * 3, dtype)
    yield "few different", rng.integers(0, 256, 5 * size, dtype=np.uint8).view(dtype)[rng.integers(0, 5, n)]
    yield "common divisor", from_integers(rng.integers(0, 40, n) * 6 + 1, dtype)
    yield "periodic", from_integers(np.tile(rng.integers(0, 100, 17), -(-n // 17))[:n] + walk // 8, dtype)
    if dtype[0] != "f":
        limits = np.iinfo(dtype)
        yield "extremes", np.where(np.arange(n) % 3 == 0, limits.min, limits.max).astype(dtype)
        return
    smooth = np.sin(np.arange(n) / 40) * 20
    noisy = (smooth + rng.normal(size=n)).astype(dtype)
    yield "smooth", smooth.astype(dtype)
    yield "decimals", np.round(noisy.astype("f8"), 2).astype(dtype)
    yield "quarters", (np.round(noisy * 4) / 4).astype(dtype)
    yield "few bits", noisy.astype("f2").astype(dtype)
    yield "as f4", noisy.astype("f4").astype(dtype)
    yield "thousandths of a product", (walk * 0.001).astype(dtype)
    unpacked = (np.round(smooth * 400) + walk % 7) * 0.0017351236 + 273.4178
    yield "unpacked", unpacked.astype(dtype)
    yield "unpacked, missing", np.where(walk % 13 < 2, -9999, unpacked).astype(dtype)
    references = np.where(np.arange(n) < n // 3, 271.3071, 255.9137)
    yield "messages", ((np.round(smooth * 400) + walk % 7) / 512 + references).astype(dtype)
    special = np.round(noisy.astype("f8"), 1).astype(dtype)
    infinity = int(np.array(np.inf, dtype).view(f"u{size}"))
    top = 1 << 8 * size - 1
    bits = (infinity + 1, infinity + 0x1234, top | infinity | 7, infinity, top | infinity, top, 1, top | 1)
    some = rng.random(n) < 0.1
    words = np.array([bits[i % len(bits)] for i in range(n)], f"u{size}")
    special.view(f"u{size}")[some] = words[some]
    yield "special", special
    yield "all special", words.view(dtype)
    yield "huge", (noisy * np.dtype(dtype).type(1e37)).astype(dtype)


@needs_library
@pytest.mark.parametrize("n", [0, 1, 2, 31, 32, 33, 2048, 5000])
@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays(library: Library, dtype: str, n: int) -> None:
    for name, values in patterns(n, dtype):
        header = parse_header(frame_of(library, values))
        assert (header.codec, header.parameters[:2]) == (2, b"\1\0"), name


@needs_library
@pytest.mark.parametrize("dtype", ["f4", "f8", "u1", "i2", "i8"])
def test_shapes(library: Library, dtype: str) -> None:
    for shape in ((), (1, 1), (40, 50), (700, 3), (3, 0, 2), (9, 10, 11), (2, 3, 4, 5, 6)):
        n = int(np.prod(shape))
        for _, values in list(patterns(n, dtype))[:3]:
            frame_of(library, values.reshape(shape))


@needs_library
@pytest.mark.parametrize("dtype", ["f4", "i2"])
def test_many_values(library: Library, dtype: str) -> None:
    """More than one unit."""
    for name, values in patterns(200_000, dtype):
        if name in ("walk", "decimals", "smooth", "periodic"):
            frame_of(library, values)


@needs_library
def test_kinds_of_numbers_that_are_found(library: Library) -> None:
    """These arrays are of all four kinds: else the arrays above would not test what they are for."""
    kinds = set()
    for dtype in ("f4", "f8", "i4"):
        for _, values in patterns(5000, dtype):
            frame = frame_of(library, values)
            header = parse_header(frame)
            if not header.raw:
                kinds.add(bins.parse_model(frame[header.header_bytes :], header).kind)
    assert kinds == {PATTERN, MULTIPLE, GRID, LIST}


def unpacked_arrays(dtype: str) -> Iterator[tuple[str, Array, Array]]:
    """What programs write who unpack integers, or decode GRIB; and these integers."""
    rng = np.random.default_rng(11)
    y, x = np.mgrid[0:130, 0:220] / 30.0
    whole = np.round(9000 * (np.sin(x) + np.cos(y)) + rng.normal(0, 20, x.shape)).astype("i4")
    for scale, offset in ((0.0017351236, 273.4178), (1 / 733.1, -np.pi), (2.0**-9, 271.3071), (3.1e-7, 0.0)):
        yield f"scale {scale}, offset {offset}", (whole * scale + offset).astype(dtype), whole
    rounded = whole.astype(dtype) * np.dtype(dtype).type(0.0017351236) + np.dtype(dtype).type(273.4178)
    yield "products rounded to the dtype", rounded, whole
    for name, fill in (("NaN", np.nan), ("netCDF's fill value", 9.96921e36), ("-9999", -9999.0)):
        missing = np.where((x - 3) ** 2 + (y - 2) ** 2 < 1, fill, whole * 0.0017351236 + 273.4178)
        yield f"missing values: {name}", missing.astype(dtype), whole
    references = np.repeat([271.3071, 255.9137, 249.0019, 300.25, 288.017], 26)[:, None]
    yield "five GRIB messages", (whole / 512 + references).astype(dtype), whole


@needs_library
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_unpacked_integers_are_as_small_as_the_integers(library: Library, dtype: str) -> None:
    for name, values, whole in unpacked_arrays(dtype):
        # two roundings to the dtype leave remainders of a place
        limit = 1.3 if dtype == "f8" or "rounded" in name else 1.02
        frame = frame_of(library, values)
        header = parse_header(frame)
        assert bins.parse_model(frame[header.header_bytes :], header).kind == GRID, name
        assert len(frame) < limit * len(frame_of(library, whole)), name


@needs_library
@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", "i8"])
def test_lags_of_lines_are_found(library: Library, dtype: str) -> None:
    """Rows of a plane, records and periods that are stored as a line: nearly as small as they are with their axes."""
    rng = np.random.default_rng(17)
    y, x = np.mgrid[0:90, 0:173] / 9.0
    plane = 300 * np.sin(x + np.cos(y)) + rng.normal(size=x.shape)
    records = rng.integers(0, 90, (3000, 11)) + np.arange(11) * 2000
    tile = np.tile(rng.integers(-9999, 9999, 613), 70).reshape(70, 613)
    for name, values, factor in (("plane", plane, 1.05), ("records", records, 1.15), ("tile", tile, 2.0)):
        array = values.astype(dtype)
        assert len(frame_of(library, array.reshape(-1))) < factor * len(frame_of(library, array)), name


@needs_library
@pytest.mark.parametrize("dtype", ["f4", "f8", "u4", "i8", "u8"])
def test_bins_follow_each_other(library: Library, dtype: str) -> None:
    """Bins up to the largest number are found by a search in ascending order; one behind it would take all others."""
    rng = np.random.default_rng(5)
    if dtype[0] == "f":
        values = [np.cumsum(rng.normal(size=(20, 3000)), axis=1).astype(dtype), rng.normal(size=60_000).astype(dtype)]
    else:
        ends = np.iinfo(dtype)
        near = rng.integers(0, 900, 60_000).astype(dtype)
        values = [np.where(rng.random(60_000) < share, near, ends.max - near) for share in (0.1, 0.5, 0.97)]
    for array in values:
        frame = frame_of(library, array)
        header = parse_header(frame)
        assert not header.raw
        for stream in bins.parse_model(frame[header.header_bytes :], header).streams:
            lowest = [low for low, *_ in stream.each]
            assert lowest == sorted(set(lowest))
