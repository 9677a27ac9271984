# SPDX-License-Identifier: BSD-3-Clause
"""Particles: positions in every order, at every size, with every kind of coordinate; bytes that depend on nothing."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import decoder

import pyfilter
from pyfilter import Lorenzo, Particles
from pyfilter._lib import host
from pyfilter.errors import CorruptFrame, InvalidArgument
from pyfilter.frames import make_request

from .fields import Array, float_cases, from_bits, hunt
from .judge import bits, check_values
from .test_same_bytes import EVERY

ORDERS = ("kept", "tile", "chunk")
COUNTS = (1, 2, 31, 32, 33, 64, 4095, 4096, 4097, 9001)
FILL = 1e35


def permutation(values: Array, codec: Particles, fill: Any = None) -> Array:
    return host.particle_order(make_request(codec, values.dtype, values.shape, fill), values)


def check(values: Array, codec: Particles, fill: Any = None) -> pyfilter.FrameInfo:
    """Each row is one of the given, in the order that the library says, within the bound; all decoders agree."""
    frame = pyfilter.encode(values, codec, fill)
    info, y = pyfilter.frame_info(frame), pyfilter.decode(frame)
    assert info.frame_bytes == len(frame) <= 8 * (7 + values.ndim) + values.nbytes
    assert np.array_equal(bits(decoder.decode(frame).reshape(-1)), bits(y.reshape(-1)))
    x = values.reshape(-1, values.shape[-1])
    if info.codec == "particles":
        order = permutation(values, codec, fill)
        assert np.array_equal(np.sort(order), np.arange(len(x)))
        x = x[order]
        width = x.shape[1]
        for start, stop in ((1, 2), (len(x) * width // 2, len(x) * width), (width * 4095, width * 4097 + 1)):
            start, stop = min(start, y.size), min(stop, y.size)
            assert np.array_equal(bits(pyfilter.decode(frame, start, stop)), bits(y.reshape(-1)[start:stop]))
    if info.step == 0:
        assert np.array_equal(bits(x.reshape(-1)), bits(y.reshape(-1)))
        return info
    bound = Fraction(info.bound)
    if codec.absolute is not None:
        assert bound <= Fraction(codec.absolute)
    missing = None if fill is None else np.array([fill], values.dtype)
    check_values(x.reshape(-1), y.reshape(-1), bound, missing)
    return info


def cloud(count: int, axes: int, dtype: str, seed: int = 1) -> Array:
    """Clumps of several sizes."""
    rng = np.random.default_rng(seed)
    centres, widths = rng.uniform(-50, 50, (12, axes)), rng.choice((0.1, 1.0, 8.0), 12)
    which = rng.integers(0, 12, count)
    made: Array = (centres[which] + rng.normal(size=(count, axes)) * widths[which, None]).astype(dtype)
    return made


@pytest.mark.parametrize("axes", [2, 3])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("order", ORDERS)
def test_any_number(order: str, dtype: str, axes: int) -> None:
    for count in COUNTS:
        values = cloud(count, axes, dtype, count)
        info = check(values, Particles(absolute=0.5, order=order))
        if order != "kept" and count > 1000:
            assert info.codec == "particles"
            assert info.parameters == {"order": order}
            back = np.ascontiguousarray(values[permutation(values, Particles(absolute=0.5, order=order))])
            kept = check(back, Particles(absolute=0.5))  # what is sorted needs no sorting
            assert kept.codec == "particles"
            assert kept.frame_bytes == info.frame_bytes
    for shape in ((0, axes), (3, 0, axes)):
        check(np.empty(shape, dtype), Particles(absolute=0.5, order=order))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@given(data=st.data())
@hunt(25)
def test_any_values(dtype: str, order: str, data: st.DataObject) -> None:
    """What the other codecs are hunted with, as rows: any bound, any range, special values of all kinds."""
    case = data.draw(float_cases(np.dtype(dtype)))
    shape = data.draw(st.sampled_from(COUNTS)), data.draw(st.sampled_from((2, 3)))
    assert isinstance(case.codec, pyfilter.Cuszp2)
    check(np.resize(case.values, shape), Particles(absolute=case.codec.absolute, order=order), case.fill)


@pytest.mark.parametrize("order", ORDERS)
def test_odd_clouds(order: str) -> None:
    rng = np.random.default_rng(3)
    cubes = np.stack(np.meshgrid(*[np.arange(17)] * 3), -1).reshape(-1, 3)
    clouds: dict[str, tuple[Array, float]] = {
        "equal": (np.full((5000, 3), 3.25), 1e-3),
        "two points": (np.repeat([[1.0, 2, 3], [4, 5, 6]], 3000, axis=0), 1e-2),
        "line": (np.linspace(0, 1, 5000)[:, None] * [1.0, 2.0, -3.0], 1e-4),
        "plane": (cloud(5000, 3, "f8") * [1, 1, 0], 1e-2),
        "lattice": (cubes + 1e-3 * rng.normal(size=cubes.shape), 1e-2),
        "far": (cloud(5000, 3, "f8") + np.array([1e6, -1e6, 1e5]), 0.26),
        "far, tiny bound": (cloud(5000, 3, "f8") + 1e6, 1e-9),
        "one far": (np.append(cloud(5000, 3, "f8"), [[1e30, 0, 0]], axis=0), 1e-3),
        "coarse": (cloud(5000, 3, "f8"), 1e3),
        "fine": (cloud(300, 3, "f8"), 1e-14),
        "wide": (rng.normal(size=(5000, 3)) * 10.0 ** rng.uniform(-12, 12, (5000, 1)), 1e-3),
    }
    for name, (values, bound) in clouds.items():
        for dtype in ("f4", "f8"):
            info = check(values.astype(dtype), Particles(absolute=bound, order=order))
            if name == "equal" and info.codec == "particles":
                assert info.frame_bytes < 200


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_special_coordinates(order: str, dtype: str) -> None:
    kind = np.dtype(dtype)
    payload = from_bits([0x7FC01234 if dtype == "f4" else 0x7FF8000000001234], kind)[0]
    for count in (33, 4100, 9000):
        for some in (1, count // 50 + 1, count // 2, count):
            rng = np.random.default_rng(some)
            values = cloud(count, 3, dtype)
            flat = values.reshape(-1)
            where = rng.choice(flat.size, some, replace=False)
            flat[where] = rng.choice(np.array([np.nan, np.inf, -np.inf, payload, 0.0, -0.0, FILL, 1e-40], kind), some)
            for fill in (None, FILL, np.nan):
                check(values, Particles(absolute=0.25, order=order), fill)


def test_sorted_chunks_with_padding() -> None:
    """HDF5 pads the last chunk with rows of zeros, or of the fill value: they stay behind the others."""
    for fill in (None, FILL):
        for dtype in ("f4", "f8"):
            values = np.full((9000, 3), fill or 0.0, dtype)
            values[:5000] = cloud(5000, 3, dtype) + np.array([5, 0, 0], dtype)
            for order in ("tile", "chunk"):
                codec = Particles(absolute=0.1, order=order)
                assert np.array_equal(permutation(values, codec, fill)[5000:], np.arange(5000, 9000))
                assert check(values, codec, fill).codec == "particles"
                assert np.array_equal(pyfilter.decode(pyfilter.encode(values, codec, fill))[5000:], values[5000:])
                laid = np.ascontiguousarray(values[permutation(values, codec, fill)])
                assert check(laid, Particles(absolute=0.1), fill).codec == "particles"


@pytest.mark.parametrize("order", ORDERS)
def test_bytes_depend_on_nothing_else(order: str) -> None:
    values = cloud(70_000, 3, "f4")
    values[1000, 2] = np.nan
    codec = Particles(absolute=0.05, order=order)
    if order == "kept":
        values = np.ascontiguousarray(values[permutation(values, Particles(absolute=0.05, order="chunk"))])
    frames, decoded = set(), set()
    for level, threads in EVERY:
        with pyfilter.config(cpu_level=level, threads=threads):
            frame = pyfilter.encode(values, codec)
            frames.add(frame)
            decoded.add(pyfilter.decode(frame).tobytes())
    assert len(frames) == len(decoded) == 1
    assert pyfilter.frame_info(frames.pop()).codec == "particles"


@pytest.mark.parametrize(("step", "absolute"), [(0.0, 2e-5), (0.25, 2e-5), (1.0, 0.4)])
def test_chunk_order_is_the_sorted_order(step: float, absolute: float) -> None:
    """Encoding sorts only as far as tiles need it: rows still come in the order that the library names.

    Particles of a grid share segments, so tiles have equal keys whose order the chunk's keys decide.
    """
    values = cloud(20_000, 3, "f4", 5)
    if step:
        apart = np.random.default_rng(6).choice((0, 3e-5), values.shape)
        values = (np.round(values / step) * step + apart).astype("f4")
    values[::1000] = np.nan
    codec = Particles(absolute=absolute, order="chunk")
    assert check(values, codec).codec == "particles"


def test_other_bounds_and_shapes() -> None:
    values = cloud(9000, 3, "f4")
    spread = float(values.max()) - float(values.min())
    for codec in (Particles(relative=1e-3, order="chunk"), Particles(psnr=60, order="chunk")):
        info = check(values, codec)
        assert info.codec == "particles"
        assert 0.99e-3 * spread < info.bound <= 1e-3 * spread
    check(values.reshape(10, 900, 3), Particles(absolute=0.1, order="chunk"))
    for shape in ((), (9000,), (90, 100), (4, 5, 9)):
        wanted = np.resize(values, shape)
        assert check_case_of(wanted) != "particles"
        for order in ("tile", "chunk"):
            with pytest.raises(InvalidArgument, match="needs positions, arrays"):
                pyfilter.encode(wanted, Particles(absolute=0.1, order=order))


def check_case_of(values: Array) -> str:
    frame = pyfilter.encode(values, Particles(absolute=0.1))
    assert frame == pyfilter.encode(values, Lorenzo(absolute=0.1))
    return pyfilter.frame_info(frame).codec


def test_never_much_longer_than_lorenzo() -> None:
    """Of a few thousand particles the shorter one is taken, whatever the order."""
    for seed in range(4):
        for bound in (1.0, 1e-2, 1e-4):
            for values in (cloud(6000, 3, "f4", seed), np.sort(cloud(6000, 3, "f4", seed), axis=0)):
                lorenzo = len(pyfilter.encode(values, Lorenzo(absolute=bound)))
                for order in ORDERS:
                    assert len(pyfilter.encode(values, Particles(absolute=bound, order=order))) <= 1.01 * lorenzo + 40


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_larger_chunks_are_estimated(dtype: str) -> None:
    """Above 32 768 particles lorenzo's size is estimated: where the two are far apart the shorter one is taken."""
    rng = np.random.default_rng(17)
    walk = np.cumsum(rng.normal(size=(50_000, 3)), axis=0).astype(dtype)  # neighbours are near
    noise = cloud(50_000, 3, dtype)
    for values in (walk, noise):
        values[rng.integers(0, len(values), 20), 1] = np.nan
    for order in ("tile", "chunk"):
        codec = Particles(absolute=0.1, order=order)
        assert pyfilter.encode(walk, codec) == pyfilter.encode(walk, Lorenzo(absolute=0.1))
        frame = pyfilter.encode(noise, codec)
        assert pyfilter.frame_info(frame).codec == "particles"
        assert len(frame) < len(pyfilter.encode(noise, Lorenzo(absolute=0.1)))


def test_damaged_frames() -> None:
    """Any byte of a tile may change: an error, or values; never a crash, and the reference decoder agrees."""
    values = cloud(600, 3, "f4")
    values[5, 1] = np.nan
    frame = bytearray(pyfilter.encode(values, Particles(absolute=0.2, order="chunk")))
    assert pyfilter.frame_info(bytes(frame)).codec == "particles"
    rng = np.random.default_rng(8)
    for _ in range(150):
        at, bit = int(rng.integers(72, len(frame))), 1 << int(rng.integers(0, 8))
        frame[at] ^= bit
        try:
            wanted = decoder.decode(bytes(frame))
        except decoder.CorruptFrame:
            with pytest.raises(CorruptFrame):
                pyfilter.decode(bytes(frame))
        else:
            assert np.array_equal(bits(pyfilter.decode(bytes(frame)).reshape(-1)), bits(wanted.reshape(-1)))
        frame[at] ^= bit
