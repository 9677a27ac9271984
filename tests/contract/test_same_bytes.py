# SPDX-License-Identifier: BSD-3-Clause
"""A request and its values always make the same frame, and a frame the same values. Instruction set, number of threads,
alignment, floating-point environment, repeated and concurrent calls change nothing.
"""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import platform
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from reference import decoder

import pyfilter
from pyfilter.registry import registry

from .fields import (
    BASE_DTYPES,
    LOSSY,
    MODES,
    Case,
    Lossy,
    drawn,
    family,
    float_cases,
    from_bits,
    hunt,
    levels_here,
    lossy_codecs,
    special_patterns,
    sprinkle,
)
from .judge import bits

Array = NDArray[Any]
THREADS = (1, 2, 3, 8)
#: more than eight segments of work (8 to 32 tiles of 4096 values), the last one neither whole nor a whole number of
#: blocks
MANY = (9 * 32 * 4096 - 4096 * 3 - 17,)
F32, F64 = np.dtype(np.float32), np.dtype(np.float64)


LEVELS = levels_here()
EVERY = tuple(itertools.product(LEVELS, THREADS))


def test_levels() -> None:
    """The baseline is everywhere; a name that is no level is refused."""
    assert "baseline" in LEVELS
    assert pyfilter.config().cpu_level in LEVELS
    with pytest.raises(ValueError, match="cpu_level"):
        pyfilter.config(cpu_level="mmx")


def codecs(rank: int) -> Iterator[tuple[pyfilter.Codec, str]]:
    """Every codec of the registry with all parameters that the rank allows, and the base types that it takes."""
    for name in BASE_DTYPES:
        yield pyfilter.Lossless(effort="ratio"), registry().dtypes[name].numpy
    for block_dims in range(1, min(3, max(1, rank)) + 1):
        for name in BASE_DTYPES:
            yield pyfilter.Lossless(block_dims=block_dims), registry().dtypes[name].numpy
        for mode, dtype in itertools.product(MODES, ("f4", "f8")):
            yield pyfilter.Cuszp2(absolute=1e-3, mode=mode, block_dims=block_dims), dtype
    for lossy in (pyfilter.HierarchicalDelta, pyfilter.Lorenzo):
        for codec in lossy_codecs(lossy, rank, absolute=1e-3):
            yield from ((codec, dtype) for dtype in ("f4", "f8"))
    yield from ((pyfilter.Particles(absolute=1e-3), dtype) for dtype in ("f4", "f8"))  # test_particles.py has positions
    yield from ((pyfilter.Progressive(absolute=1e-3), dtype) for dtype in ("f4", "f8"))
    yield pyfilter.Adaptive(absolute=1e-3), "f4"
    yield pyfilter.Adaptive(absolute=1e-3, predictor="interpolation", effort="fast"), "f8"
    for name in BASE_DTYPES[2:]:  # integers: test_integers.py has the other predictors
        yield pyfilter.HierarchicalDelta(absolute=2), registry().dtypes[name].numpy


def test_every_codec_is_here() -> None:
    assert {codec.codec_name for codec, _ in codecs(1)} == set(registry().codecs)


def field(shape: tuple[int, ...], dtype: np.dtype[Any], seed: int = 1) -> Array:
    """Smooth with noise, and for floats special values in places."""
    rng = np.random.default_rng(seed)
    n = int(np.prod(shape, dtype=np.int64))
    smooth = 40 * np.sin(np.arange(n) / 300) + 0.01 * rng.normal(size=n) + 60
    if dtype.kind != "f":
        return smooth.astype(dtype).reshape(shape)
    return sprinkle(smooth.astype(dtype), dtype.type(-999), "runs", rng).reshape(shape)


def frame_digests(case: Case) -> dict[tuple[str, int], str]:
    found = {}
    for level, threads in EVERY:
        with pyfilter.config(cpu_level=level, threads=threads):
            found[level, threads] = hashlib.sha256(pyfilter.encode(case.values, case.codec, case.fill)).hexdigest()
    return found


def value_digests(frame: bytes) -> dict[tuple[str, int], str]:
    found = {}
    for level, threads in EVERY:
        with pyfilter.config(cpu_level=level, threads=threads):
            found[level, threads] = hashlib.sha256(bits(pyfilter.decode(frame)).tobytes()).hexdigest()
    return found


@pytest.mark.parametrize(("codec", "dtype"), list(codecs(3)), ids=str)
def test_levels_and_threads(codec: pyfilter.Codec, dtype: str) -> None:
    """Arrays large enough that eight threads have work, of an odd shape."""
    shape = {1: MANY, 2: (3, 641, 643), 3: (67, 131, 141)}[len(codec.edges)]
    if getattr(codec, "predictor", "") == "columns":
        shape = (2, 190001, 3)
    if getattr(codec, "predictor", "") == "chain":
        shape = (1, 1, *MANY)
    values = field(shape, np.dtype(dtype))
    fill = np.dtype(dtype).type(-999) if dtype in ("f4", "f8") else None
    assert len(set(frame_digests(Case(values, codec, fill)).values())) == 1
    assert len(set(value_digests(pyfilter.encode(values, codec, fill)).values())) == 1


def test_long_segments() -> None:
    """Threads take more tiles at a time of large arrays (kernels/core/encode_job.hpp)."""
    values = np.cumsum(np.random.default_rng(5).normal(size=5_000_003)).astype("f4")
    for codec in (pyfilter.Cuszp2(absolute=1e-3), pyfilter.HierarchicalDelta(absolute=1e-3)):
        frames = set()
        for threads in (1, 2, 3):
            with pyfilter.config(threads=threads):
                frames.add(pyfilter.encode(values, codec))
        assert len(frames) == 1


@pytest.mark.parametrize("name", [name for name in registry().dtypes if name not in BASE_DTYPES])
def test_derived_types(name: str) -> None:
    """Complex numbers, bool and 16-bit floats (docs/format.md, section 16), with every codec that takes them."""
    if name == "bf16":
        dtype = np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    else:
        dtype = np.dtype(registry().dtypes[name].numpy)
    patterns = np.random.default_rng(3).integers(0, 256, 150001 * dtype.itemsize, np.uint8)
    values = (patterns % 2 if name == "b8" else patterns).view(dtype)
    if dtype.kind == "c":
        values = field((150001, 2), np.dtype(f"f{dtype.itemsize // 2}")).view(dtype).reshape(-1)
    takers: list[pyfilter.Codec] = [pyfilter.Lossless(), pyfilter.Lossless(effort="ratio")]
    for lossy in LOSSY:
        takers += [lossy(absolute=0.03)] if name in registry().codecs[lossy(absolute=1).codec_name].dtypes else []
    assert len(takers) == (2 if name == "b8" else 6)
    if name in ("f16", "bf16"):
        with np.errstate(invalid="ignore", over="ignore"):  # NaNs that signal, values beyond float16
            values = field((150001,), np.dtype("f4")).astype(dtype)
    for codec in takers:
        assert len(set(frame_digests(Case(values, codec, None)).values())) == 1, codec
        frame = pyfilter.encode(values, codec)
        found = set()
        for level, threads in EVERY:
            with pyfilter.config(cpu_level=level, threads=threads):
                found.add(pyfilter.decode(frame).tobytes())
        assert len(found) == 1, codec
        assert not codec.is_lossless or found == {values.tobytes()}, codec


@pytest.mark.parametrize("lossy", LOSSY)
@pytest.mark.parametrize("dtype", [F32, F64], ids=["f32", "f64"])
@given(data=st.data())
@hunt(150)
def test_any_values(dtype: np.dtype[Any], lossy: Lossy, data: st.DataObject) -> None:
    """The families of the other contract tests: subnormals, NaNs of all kinds, bounds at the limits."""
    kind = data.draw(st.sampled_from(("absolute", "relative")))
    case = data.draw(float_cases(dtype, kind, **drawn(lossy)))
    frames = {level: encode_at(level, case) for level in LEVELS}
    assert len(set(frames.values())) == 1
    values = set()
    for level in LEVELS:
        with pyfilter.config(cpu_level=level):
            values.add(bits(pyfilter.decode(frames[level])).tobytes())
    assert len(values) == 1


def sums_of_residuals(width: int, block_dims: int, code_bits: int) -> Array:
    """Blocks whose residuals have this many bits and add up as far as they can: one after the other, as codes."""
    size, edge = (32, 32) if block_dims == 1 else (64, {2: 8, 3: 4}[block_dims])
    top = (1 << width) - 1
    rng = np.random.default_rng(width)
    rows = [[top] * size, [-top - 1] * size, [top, *[-top - 1] * (size - 1)], [-top - 1] + [top] * (size - 1)]
    rows += [[int(top * sign) for sign in rng.choice((-1, 1), size)], [1 << code_bits - 1, *[top] * (size - 1)]]
    modulus = 1 << 64
    residuals = np.array([[v % modulus for v in row] for row in rows], np.uint64)
    codes = residuals.reshape(-1, *(edge,) * block_dims)
    for axis in range(1, block_dims + 1):
        codes = np.cumsum(codes, axis=axis, dtype=np.uint64)
    return codes


@pytest.mark.parametrize("block_dims", [1, 2, 3])
@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "u8", "f4", "f8"])
def test_largest_sums(dtype: str, block_dims: int) -> None:
    """Residuals of every width whose sums are as large as they get: where short sums would overflow, if any."""
    bits_here = 8 * int(dtype[1])
    codes = np.concatenate([sums_of_residuals(width, block_dims, max(bits_here, 32)) for width in range(bits_here)])
    values = from_bits(codes.astype(f"u{dtype[1]}"), np.dtype(dtype))
    requests: list[tuple[Array, pyfilter.Codec]] = [(values, pyfilter.Lossless(block_dims=block_dims))]
    if dtype[0] == "f":
        few = codes[: 6 * (12 if dtype == "f4" else 40)].astype(np.int64).astype(dtype) * np.dtype(dtype).type(1.25)
        requests += [(few, pyfilter.Cuszp2(absolute=0.6, block_dims=block_dims, mode=mode)) for mode in MODES]
        requests += [(few, codec) for codec in lossy_codecs(pyfilter.HierarchicalDelta, few.ndim, absolute=0.6)]
        requests += [(values, codec) for codec in lossy_codecs(pyfilter.HierarchicalDelta, few.ndim, absolute=1e-310)]
    for array, codec in requests:
        frame = pyfilter.encode(array, codec)
        expected = bits(decoder.decode(frame))
        assert pyfilter.frame_info(frame).bound > 0 or np.array_equal(expected, bits(array))
        for level in LEVELS:
            assert encode_at(level, Case(array, codec)) == frame
            with pyfilter.config(cpu_level=level):
                assert np.array_equal(bits(pyfilter.decode(frame)), expected)
                assert np.array_equal(bits(pyfilter.decode(frame, 33, 99)), expected[33:99])


def encode_at(level: str, case: Case) -> bytes:
    with pyfilter.config(cpu_level=level):
        return pyfilter.encode(case.values, case.codec, case.fill)


def shifted(values: Array, offset: int) -> Array:
    """The same values at an address that is `offset` bytes off any alignment."""
    room = np.zeros(values.nbytes + 64, np.uint8)
    start = -room.ctypes.data % 32 + offset
    view = room[start : start + values.nbytes].view(values.dtype).reshape(values.shape)
    view[...] = values
    assert values.size == 0 or view.ctypes.data % 32 == offset
    return view


@pytest.mark.parametrize("level", LEVELS)
def test_alignment(level: str) -> None:
    """Values, frame and decoded values at odd addresses."""
    with pyfilter.config(cpu_level=level):
        for codec, dtype in codecs(3):
            values = field((3, 40, 61), np.dtype(dtype))
            frame = pyfilter.encode(values, codec)
            expected = pyfilter.decode(frame)
            for offset in (1, 2, 3, 4, 7, 12, 31):
                assert pyfilter.encode(shifted(values, offset), codec) == frame
                out = shifted(np.zeros_like(values), offset)
                source = shifted(np.frombuffer(frame, np.uint8), offset)
                assert pyfilter.decode(source.data, out=out) is out
                assert np.array_equal(bits(out), bits(expected))


def test_memory_layout() -> None:
    """Strided, Fortran-ordered and big-endian arrays are the same values."""
    values = field((30, 40, 50), F32)
    delta = pyfilter.HierarchicalDelta(absolute=1e-3)
    for codec in (pyfilter.Cuszp2(absolute=1e-3, block_dims=3), delta, pyfilter.Lossless()):
        frame = pyfilter.encode(values, codec)
        wide = np.zeros((30, 40, 100), np.float32)
        wide[:, :, ::2] = values
        assert pyfilter.encode(wide[:, :, ::2], codec) == frame
        assert pyfilter.encode(np.asfortranarray(values), codec) == frame
        swapped = pyfilter.encode(values.astype(">f4"), codec)
        assert swapped[16:] == frame[16:]  # all but the flag and the header's checksum
        assert (swapped[:10], swapped[10], swapped[11:12]) == (frame[:10], frame[10] | 2, frame[11:12])


def test_again_and_again() -> None:
    """Scratch memory is kept between calls: what was in it before does not matter."""
    cases = [Case(field((2000,), np.dtype(dtype)), codec) for codec, dtype in codecs(1)]
    cases += [Case(family("bits", 5000, F32, np.random.default_rng(1), 1, 1), pyfilter.Cuszp2(absolute=1e-3))]
    first = [pyfilter.encode(case.values, case.codec) for case in cases]
    for order in (range(len(cases)), reversed(range(len(cases))), range(0, len(cases), 2)):
        for i in order:
            assert pyfilter.encode(cases[i].values, cases[i].codec) == first[i]


@pytest.mark.parametrize("level", LEVELS)
def test_ranges(level: str) -> None:
    """decode(frame, start, stop) is the slice, at the edges of blocks and tiles and anywhere."""
    shapes: tuple[tuple[int, ...], ...] = ((13000,), (5, 70, 93), (2, 3, 21, 19, 23), (9,), (0, 3, 3), (2100, 5))
    for shape in shapes:
        for codec, dtype in codecs(len(shape)):
            values = field(shape, np.dtype(dtype))
            n = values.size
            fill = np.dtype(dtype).type(-999) if dtype in ("f4", "f8") else None
            frame = pyfilter.encode(values, codec, fill)
            whole = bits(pyfilter.decode(frame))
            rng = np.random.default_rng(n)
            edges = [edge for edge in (0, 1, 31, 32, 33, 4095, 4096, 4097, 8192, n - 1, n) if 0 <= edge <= n]
            pairs = list(itertools.combinations_with_replacement(edges, 2))
            pairs += [tuple(map(int, np.sort(rng.integers(0, n + 1, 2)))) for _ in range(20)]  # type: ignore[misc]
            with pyfilter.config(cpu_level=level):
                for start, stop in pairs:
                    assert np.array_equal(bits(pyfilter.decode(frame, start, stop)), whole[start:stop]), (start, stop)


@pytest.mark.parametrize("lossy", LOSSY)
def test_ranges_with_threads(lossy: Lossy) -> None:
    values = field(MANY, F32)
    frame = pyfilter.encode(values, lossy(absolute=1e-3))
    whole = bits(pyfilter.decode(frame))
    for threads in THREADS:
        with pyfilter.config(threads=threads):
            for start, stop in ((0, MANY[0]), (1, MANY[0] - 1), (4095, 700001), (131072, 131073), (131071, 262145)):
                assert np.array_equal(bits(pyfilter.decode(frame, start, stop)), whole[start:stop])


@pytest.mark.parametrize("predictor", ["lorenzo2d", "lorenzo3d"])
def test_ranges_of_rows_of_tiles(predictor: str) -> None:
    """Threads decode whole rows of tiles where there are enough of them."""
    values = field((40, 130, 333), F32)
    frame = pyfilter.encode(values, pyfilter.HierarchicalDelta(absolute=1e-3, predictor=predictor))
    whole = bits(pyfilter.decode(frame)).reshape(-1)
    for threads in THREADS:
        with pyfilter.config(threads=threads):
            for start, stop in ((0, values.size), (1, values.size - 1), (333 * 140, 333 * 2000 + 7), (700001, 700003)):
                assert np.array_equal(bits(pyfilter.decode(frame, start, stop)).reshape(-1), whole[start:stop])


@pytest.mark.parametrize(
    ("lossy", "dtype"),
    [*itertools.product(LOSSY, ("f4", "f8")), *((pyfilter.HierarchicalDelta, dtype) for dtype in ("i2", "u8"))],
)
def test_choices_by_threads(lossy: Lossy, dtype: str) -> None:
    """What is found out of a whole array: its range, with both zeros as its lowest value, and the predictor, where
    some places have small codes and others large ones, and each predictor is the best somewhere.
    """
    rng = np.random.default_rng(8)
    z, y, x = np.meshgrid(*(np.arange(n) for n in (70, 90, 110)), indexing="ij")
    values = np.abs(40 * np.sin(x / 9) * np.cos(y / 7) + z)
    values[20:40] += 30 * rng.random((20, 90, 110))
    values[40:50] *= 1000
    values[50:] = np.cumsum(rng.normal(size=(20, 90, 110)), axis=2).clip(0)
    values = values.astype(dtype)
    if dtype[0] == "f":
        values[3, ::7] = -0.0
        values[60:, 5:9] = np.nan
    for codec in (lossy(relative=1e-5), lossy(relative=1e-3), lossy(absolute=1)):
        assert len(set(frame_digests(Case(values, codec, None)).values())) == 1


@pytest.mark.parametrize("threads", THREADS)
def test_calls_from_several_threads(threads: int) -> None:
    """Python threads share the worker threads of the library; ctypes lets them run at the same time."""
    cases = []
    for seed, (codec, dtype) in enumerate(codecs(1)):
        size = (1000, 150001, 600000)[seed % 3]
        cases.append(Case(field((size,), np.dtype(dtype), seed), codec, None, f"{dtype}"))

    def there_and_back(case: Case) -> tuple[bytes, bytes]:
        frame = pyfilter.encode(case.values, case.codec)
        return hashlib.sha256(frame).digest(), hashlib.sha256(bits(pyfilter.decode(frame)).tobytes()).digest()

    with pyfilter.config(threads=1):
        expected = [there_and_back(case) for case in cases]
    with pyfilter.config(threads=threads), ThreadPoolExecutor(6) as pool:
        assert list(pool.map(there_and_back, cases * 4)) == expected * 4


@pytest.mark.parametrize(
    ("codec", "fill"),
    [
        (pyfilter.Lossless(), None),
        (pyfilter.Cuszp2(absolute=1e-3), -999),
        (pyfilter.HierarchicalDelta(absolute=1e-3), -999),
    ],
    ids=str,
)
def test_tiles_of_all_speeds(codec: pyfilter.Codec, fill: float | None) -> None:
    """Segments that take long or none at all: they are ready in any order, and their places do not depend on it."""
    rng = np.random.default_rng(5)
    values = np.full((400, 4096), -999, dtype="f4")
    for first in range(0, 400, 8):
        kind = rng.integers(4)
        if kind == 1:
            values[first : first + 8] = rng.normal(size=(8, 4096))
        elif kind == 2:
            values[first : first + 8] = np.where(rng.random((8, 4096)) < 0.5, np.nan, rng.normal(size=(8, 4096)))
        elif kind == 3:
            values[first : first + 3] = 0
    one = np.float32(fill) if fill is not None else None
    with pyfilter.config(threads=1):
        expected = pyfilter.encode(values.reshape(-1), codec, one)
    for threads in (2, 3, 8, 40) * 3:
        with pyfilter.config(threads=threads):
            assert pyfilter.encode(values.reshape(-1), codec, one) == expected


def test_on_the_edge_of_raw() -> None:
    """Noise, and as many equal values as make a frame just smaller than the values: all thread counts agree on it."""
    rng = np.random.default_rng(6)
    noise = rng.integers(0, 1 << 32, 100 * 4096, dtype="u4").view("f4")
    stored_raw = set()
    for equal in range(0, 1200, 40):
        values = np.concatenate([np.zeros(equal, dtype="f4"), noise])
        found = set()
        for threads in THREADS:
            with pyfilter.config(threads=threads):
                frame = pyfilter.encode(values, pyfilter.Lossless())
            found.add(frame)
        assert len(found) == 1
        stored_raw.add(pyfilter.frame_info(frame).stored_raw)
        assert np.array_equal(bits(pyfilter.decode(frame)), bits(values))
    assert stored_raw == {True, False}


def test_errors_from_several_threads() -> None:
    """Each thread gets its own error and its own text."""
    frame = pyfilter.encode(field((1000,), F32), pyfilter.Cuszp2(absolute=1e-3))

    def refusal(size: int) -> str:
        with pytest.raises(pyfilter.errors.TruncatedFrame) as error:
            pyfilter.decode(frame[:size])
        return str(error.value)

    sizes = list(range(8, len(frame), 7))
    expected = [refusal(size) for size in sizes]
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(refusal, sizes * 5)) == expected * 5


UPWARD = {"x86_64": 0x800, "aarch64": 0x400000}  # FE_UPWARD of fenv.h


@contextmanager
def rounding_upward() -> Iterator[None]:
    libm = ctypes.CDLL("libm.so.6")
    nearest = libm.fegetround()
    assert libm.fesetround(UPWARD[platform.machine()]) == 0
    try:
        yield
    finally:
        libm.fesetround(nearest)


@contextmanager
def flushing_subnormals() -> Iterator[None]:
    """Subnormals count as zero, as programs built with -ffast-math set it for their threads."""
    libm = ctypes.CDLL("libm.so.6")
    before = ctypes.create_string_buffer(32)
    libm.fegetenv(before)
    changed = bytearray(before.raw)
    if platform.machine() == "x86_64":
        (mxcsr,) = struct.unpack_from("<I", changed, 28)
        struct.pack_into("<I", changed, 28, mxcsr | 0x8040)
    else:
        (fpcr,) = struct.unpack_from("<I", changed, 0)
        struct.pack_into("<I", changed, 0, fpcr | 1 << 24)
    libm.fesetenv(bytes(changed))
    try:
        yield
    finally:
        libm.fesetenv(before)


@pytest.mark.parametrize("level", LEVELS)
def test_x87_registers_are_free(level: str) -> None:
    """Long doubles of the caller: MMX registers used and not given back would make them NaN."""
    rng = np.random.default_rng(4)
    plain = np.arange(8).astype(np.longdouble)
    for dtype in (F32, F64):
        values = sprinkle(family("smooth", 9000, dtype, rng, 1.0, 1e-3), None, "few", rng).reshape(3, 30, 100)
        for lossy in LOSSY:
            bounds = [{"absolute": 1e-3}, {"absolute": 5e-324}]
            if lossy is not pyfilter.Cuszp2:
                bounds.append({"pointwise_relative": 1e-2})
            for bound in bounds:
                for codec in (*lossy_codecs(lossy, 3, **bound), pyfilter.Lossless()):
                    with pyfilter.config(cpu_level=level, threads=1):
                        frame = pyfilter.encode(values, codec)
                        assert np.array_equal(plain * 3 - plain, plain * 2), f"after encoding with {codec}"
                        pyfilter.decode(frame)
                        assert np.array_equal(plain * 3 - plain, plain * 2), f"after decoding what {codec} made"
    for codec, kind in codecs(3):
        whole = np.resize(np.arange(97), (9, 17, 33)).astype(kind)
        with pyfilter.config(cpu_level=level, threads=1):
            frame = pyfilter.encode(whole, codec, whole.dtype.type(5))
            assert np.array_equal(plain * 3 - plain, plain * 2), f"after encoding {kind} with {codec}"
            pyfilter.decode(frame)
            assert np.array_equal(plain * 3 - plain, plain * 2), f"after decoding what {codec} made of {kind}"


def test_floating_point_environment() -> None:
    """The caller's rounding mode and flushing of subnormals change nothing, and are what they were afterwards."""
    rng = np.random.default_rng(9)
    cases = []
    for dtype, bound in ((F32, 1e-3), (F32, 5e-38), (F64, 1e-3), (F64, 9e-308)):
        for name in ("noise", "subnormal", "half-way"):
            values = sprinkle(family(name, 300000, dtype, rng, bound * 50, bound), None, "few", rng)
            cases.append(Case(values, pyfilter.Cuszp2(absolute=bound), from_bits([77], dtype)[0]))
            cases.append(Case(values, pyfilter.HierarchicalDelta(absolute=bound), from_bits([77], dtype)[0]))
            cases.append(Case(values, pyfilter.Lorenzo(absolute=bound), from_bits([77], dtype)[0]))
            cases.append(
                Case(values, pyfilter.Cuszp2(relative=1e-3), from_bits(special_patterns(dtype)[3:4], dtype)[0])
            )
    third, tiny = np.float64(1) / np.float64(3), np.array([1e-310])
    for case in cases:
        frame = pyfilter.encode(case.values, case.codec, case.fill)
        values = bits(pyfilter.decode(frame))
        for change, one, two in ((rounding_upward, 1.0, 3.0), (flushing_subnormals, 1e-310, 1.0)):
            for level in LEVELS:
                with pyfilter.config(cpu_level=level):
                    with change():
                        before = np.float64(one) / np.float64(two)
                        again = pyfilter.encode(case.values, case.codec, case.fill)
                        decoded = pyfilter.decode(frame)
                        after = np.float64(one) / np.float64(two)
                    assert before == after
                    assert before == 0 or before > third  # the change was in force
                    assert again == frame
                    assert np.array_equal(bits(decoded), values)
    assert np.float64(1) / np.float64(3) == third
    assert (tiny * 1.0)[0] == 1e-310
