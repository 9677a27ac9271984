# SPDX-License-Identifier: BSD-3-Clause
"""progressive: what the table says of every prefix, levels, special values, damaged frames, the same bytes anywhere."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import decoder
from reference.header import parse_header
from reference.progressive import decode_progressive, parse_head

import pyfilter
from pyfilter import Progressive, errors
from pyfilter._lib import abi, host

from . import fields
from .fields import FAMILIES, Case, family, hunt, levels_here, sprinkle
from .judge import bits, check_case, first_beyond, is_fill

DTYPES = pytest.mark.parametrize("dtype", [np.dtype("f4"), np.dtype("f8")], ids=["f32", "f64"])
SHAPES = ((), (1,), (33,), (5000,), (7, 9), (40, 130), (130, 1, 3), (9, 17, 65), (20, 30, 40), (2, 3, 4, 5))
FILL = -3.5
Array = np.ndarray[Any, Any]


def smooth(shape: tuple[int, ...], dtype: np.dtype[Any], seed: int = 1) -> Array:
    rng = np.random.default_rng(seed)
    return np.asarray(np.cumsum(rng.normal(size=shape), axis=-1) if shape else 2.5, dtype)


def parts_of(frame: bytes, level: int = 0) -> tuple[abi.ProgressiveSummary, Array]:
    data = np.frombuffer(frame, np.uint8)
    summary = host.progressive_summary(data)
    return summary, host.progressive_parts(data, level, summary.segments)


def part(frame: bytes, count: int, level: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    out = np.empty(shape, dtype)
    host.progressive_decode(np.frombuffer(frame, np.uint8), count, level, out)
    return out


def check_within(x: Array, y: Array, error: float, fill: Array | None) -> None:
    """Every ordinary value to the error, every other to the bit; no value becomes the fill value."""
    x, y = np.ascontiguousarray(x).reshape(-1), np.ascontiguousarray(y).reshape(-1)
    exact = ~np.isfinite(x) | is_fill(x, fill)
    assert np.array_equal(bits(x[exact]), bits(y[exact]))
    if fill is not None:
        assert not is_fill(y[~exact], fill).any()
    if np.isfinite(error):
        assert first_beyond(x[~exact], y[~exact], Fraction(error)) is None


def check_parts(x: Array, codec: Progressive, fill: Array | None = None) -> int:
    """Assert what the table says, of prefixes cut right behind their segments. How many were looked at."""
    frame = pyfilter.encode(x, codec, None if fill is None else fill[0])
    info = pyfilter.frame_info(frame)
    if info.codec != "progressive" or info.stored_raw:
        return 0
    summary, parts = parts_of(frame)
    assert np.array_equal(np.cumsum(parts["size"]) + summary.prefix_bytes, parts["offset"] + parts["size"])
    marked = np.flatnonzero(np.isfinite(parts["error"]))
    if parts.size:
        assert marked[-1] == parts.size - 1
        assert parts["error"][-1] == info.bound
    for i in [*marked[::5], *marked[-1:]]:
        cut = frame[: parts["offset"][i] + parts["size"][i]]
        check_within(x, part(cut, int(i) + 1, 0, x.shape, x.dtype), float(parts["error"][i]), fill)
    for level in range(1, summary.levels + 1) if x.ndim <= 3 else ():
        coarse = x[tuple(slice(None, None, 1 << level) for _ in x.shape)]
        of_level = parts_of(frame, level)[1]
        for i in {0, parts.size // 3, parts.size - 1} & set(range(parts.size)):
            needed = bytearray(len(frame))  # zeros in place of finer levels
            needed[: summary.prefix_bytes] = frame[: summary.prefix_bytes]
            for offset, size, _, own, _ in parts[: i + 1].tolist():
                if own >= level:
                    needed[offset : offset + size] = frame[offset : offset + size]
            decoded = part(bytes(needed), i + 1, level, coarse.shape, x.dtype)
            check_within(coarse, decoded, float(of_level["error"][i]), fill)
    return marked.size


@DTYPES
@pytest.mark.parametrize("codec", [Progressive(), Progressive(errors="bounds"), Progressive(absolute=0.02)], ids=repr)
def test_every_part_keeps_its_error(dtype: np.dtype[Any], codec: Progressive) -> None:
    looked_at = sum(check_parts(smooth(shape, dtype), codec) for shape in SHAPES)
    assert looked_at > 50


def as_in_table(steps: int) -> float:
    """An error of so many steps and a half, rounded up to eight significant bits."""
    mantissa, exponent = np.frexp(steps + 0.5)
    return float(np.ldexp(np.ceil(mantissa * 256), exponent - 8))


@DTYPES
@pytest.mark.parametrize(
    "shape", [(70, 66, 71), (3, 290, 330), (40, 33, 32), (17, 18, 100), (2, 2, 5000), (300, 290), (90_001,)], ids=str
)
@pytest.mark.parametrize("kind", ["walk", "spikes", "zeros", "holes"])
def test_measured_errors_are_those_of_what_is_decoded(dtype: np.dtype[Any], shape: tuple[int, ...], kind: str) -> None:
    """Some are the largest error of all ordinary values, no less and no more; those before follow from the next one."""
    rng = np.random.default_rng(7)
    x = np.asarray(np.cumsum(rng.normal(size=shape), axis=-1), dtype)
    if kind == "spikes":
        x[rng.random(shape) < 1e-4] *= 30
    if kind == "zeros":
        x = np.maximum(x, 0)
    if kind == "holes":
        x[rng.random(shape) < 0.3] = np.nan
    bound = 2.0**-12  # integers of fewer bits than values have
    frame = pyfilter.encode(x, Progressive(absolute=bound))
    parts, proven = parts_of(frame)[1], parts_of(pyfilter.encode(x, Progressive(absolute=bound, errors="bounds")))[1]
    exact, step = pyfilter.decode(frame).astype("f8"), pyfilter.frame_info(frame).step
    better, measured = [], 0
    for i in np.flatnonzero(np.isfinite(parts["error"])):
        told, most = parts["error"][i], proven["error"][i]
        steps = np.nanmax(np.abs(part(frame, int(i) + 1, 0, x.shape, dtype).astype("f8") - exact)) / step
        assert steps == int(steps)
        found = as_in_table(int(steps)) * step
        assert min(found, most) <= told <= most
        if told < most:
            better.append(told == found)
            measured += int(told == found)
    assert better[-1]
    as_good = (kind, len(shape)) in {("walk", 2), ("zeros", 1)}  # what is proven, nearly everywhere
    assert measured >= (1 if as_good else 5)


@DTYPES
@pytest.mark.parametrize("kind", ["none", "few", "most", "runs"])
def test_special_values_at_every_precision(dtype: np.dtype[Any], kind: str) -> None:
    fill = np.array([FILL], dtype)
    for shape in ((5000,), (50, 60), (13, 21, 34)):
        values = sprinkle(smooth(shape, dtype), fill[0], kind, np.random.default_rng(3))
        check_parts(values, Progressive(absolute=0.25), fill)
        check_parts(np.where(values == fill[0], dtype.type(np.nan), values), Progressive())


@DTYPES
@given(data=st.data())
@hunt(10)
def test_any_values(dtype: np.dtype[Any], data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from([shape for rank in range(5) for shape in fields.SHAPES[rank]]))
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 32)))
    name, bound = data.draw(st.sampled_from(FAMILIES)), data.draw(st.sampled_from((1e-40, 1e-4, 0.01, 0.3, 20.0, 1e30)))
    values = family(name, int(np.prod(shape)), dtype, rng, 1.0, bound).reshape(shape)
    values = sprinkle(values, dtype.type(FILL), data.draw(st.sampled_from(("none", "few", "most", "runs"))), rng)
    fill = data.draw(st.sampled_from((None, dtype.type(FILL))))
    check_case(Case(values, Progressive(absolute=bound), fill, name))
    check_parts(values, Progressive(absolute=bound), None if fill is None else fill.reshape(1))


@DTYPES
def test_near_lossless(dtype: np.dtype[Any]) -> None:
    """Without a bound: within 2^-28 (2^-57) of the power of two above; what is a sixteenth of that or more is exact."""
    rng = np.random.default_rng(5)
    for scale in (1.0, 1e-30, float(np.finfo(dtype).tiny), float(np.finfo(dtype).max) / 8):
        values = (rng.normal(size=(40, 41)) * scale).astype(dtype)
        info = pyfilter.frame_info(frame := pyfilter.encode(values, Progressive()))
        decoded = pyfilter.decode(frame)
        if info.stored_raw:
            assert np.array_equal(bits(values), bits(decoded))
            continue
        above = 2.0 ** (np.frexp(float(np.abs(values).max()))[1])
        fraction, least = (2.0**-28, 2.0**-150) if dtype.itemsize == 4 else (2.0**-57, 2.0**-1074)
        assert info.bound <= max(above * fraction, least)
        check_within(values, decoded, info.bound, None)
        large = (np.abs(values) >= above / 16) & (above * fraction >= least)
        assert np.array_equal(values[large], decoded[large])


@DTYPES
def test_a_bound_finer_than_integers_is_bit_exact(dtype: np.dtype[Any]) -> None:
    values = smooth((30, 40), dtype)
    info = pyfilter.frame_info(frame := pyfilter.encode(values, Progressive(absolute=1e-25)))
    assert (info.codec, info.bound) == ("hierarchical_delta", 0.0)
    assert np.array_equal(bits(pyfilter.decode(frame)), bits(values))


@DTYPES
def test_reference_decoder_in_part(dtype: np.dtype[Any]) -> None:
    for shape in ((5000,), (40, 50), (9, 17, 34)):
        values = smooth(shape, dtype)
        values[..., 3:9], values[..., 11] = np.nan, np.inf
        frame = pyfilter.encode(values, Progressive(absolute=0.1))
        header, (summary, parts) = parse_header(frame), parts_of(frame)
        for count in (0, 1, parts.size // 2, parts.size - 1):
            for level in (0, 1, summary.levels):
                expected = decode_progressive(frame, header, count, level)
                assert part(frame, count, level, expected.shape, dtype).tobytes() == expected.tobytes()
        steps = [s.error for s in parse_head(frame, header).segments]
        told = [None if np.isinf(e) else e / header.step for e in parts["error"]]
        assert steps == told


@DTYPES
def test_same_bytes(dtype: np.dtype[Any]) -> None:
    """On every CPU level, with any number of threads, from any alignment."""
    values = smooth((12, 40, 65), dtype)
    values[3:5, 10:30], values[::7, 3, ::5] = np.nan, np.inf
    for codec in (Progressive(), Progressive(relative=1e-3, errors="bounds")):
        frames = set()
        for level in levels_here():
            for threads in (1, 3):
                with pyfilter.config(cpu_level=level, threads=threads):
                    frames.add(pyfilter.encode(values, codec))
                    decoded = pyfilter.decode(next(iter(frames)))
        assert len(frames) == 1
        moved = np.empty(values.nbytes + 1, np.uint8)[1:].view(dtype).reshape(values.shape)
        moved[...] = values
        assert {pyfilter.encode(moved, codec)} == frames
        assert decoded.tobytes() == decoder.decode(frames.pop()).tobytes()


@DTYPES
def test_damaged_frames(dtype: np.dtype[Any]) -> None:
    """Flipped bits behind the header: the library says what the reference decoder says, or decodes to the same bits."""
    values = smooth((5, 12, 20), dtype)
    values[..., 3:9], values[:3, ::5, 11] = np.nan, np.inf
    frame = pyfilter.encode(values, Progressive(absolute=0.1))
    start, rng, refused = 8 * frame[7], np.random.default_rng(7), 0
    for i in range(40):
        broken = bytearray(frame)
        last = len(frame) if i % 2 else min(len(frame), start + 500)
        broken[int(rng.integers(start, last))] ^= 1 << int(rng.integers(0, 8))
        try:
            expected: bytes | None = decoder.decode(bytes(broken)).tobytes()
        except decoder.FrameError:
            expected = None
        if expected is None:
            refused += 1
            with pytest.raises(errors.FrameError):
                pyfilter.decode(bytes(broken))
        else:
            assert pyfilter.decode(bytes(broken)).tobytes() == expected
    assert refused > 1
    for size in range(start, len(frame), 97):
        with pytest.raises(errors.TruncatedFrame):
            pyfilter.decode(frame[:size])
    with pytest.raises(errors.CorruptFrame):
        pyfilter.decode(frame + b"\0")


def test_calls_that_do_not_fit() -> None:
    frame = np.frombuffer(pyfilter.encode(smooth((20, 30), np.dtype("f4")), Progressive(absolute=1e-3)), np.uint8)
    summary = host.progressive_summary(frame)
    out = np.empty((20, 30), "f4")
    with pytest.raises(errors.InvalidArgument, match="room for 3 segments"):
        host.progressive_parts(frame, 0, 3)
    with pytest.raises(errors.InvalidArgument, match="level is 40, allowed: 0 to"):
        host.progressive_parts(frame, 40, summary.segments)
    with pytest.raises(errors.InvalidArgument, match="exactly 2400 are decoded"):
        host.progressive_decode(frame, 1, 0, out[:5])
    with pytest.raises(errors.TruncatedFrame):
        host.progressive_decode(frame[: summary.prefix_bytes], summary.segments, 0, out)
    with pytest.raises(errors.Unsupported, match="not a progressive one"):
        host.progressive_summary(np.frombuffer(pyfilter.encode(out, pyfilter.Lossless()), np.uint8))
