# SPDX-License-Identifier: BSD-3-Clause
"""encode and decode of device arrays: the frames and values of the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from python.support import field

import pyfilter
from pyfilter import Cuszp2, Lossless, frames
from pyfilter._lib import host

CODECS = [
    Cuszp2(absolute=1e-3),
    Cuszp2(relative=1e-4),
    Cuszp2(absolute=1e-3, mode="plain"),
    Cuszp2(absolute=1e-3, mode="fixed"),
    Cuszp2(absolute=1e-30),
    Lossless(),
]
SHAPES = [(), (0,), (1,), (7, 0, 3), (31,), (4096,), (4097,), (100_003,), (65, 130), (17, 33, 29)]


@pytest.mark.parametrize("codec", CODECS, ids=str)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_frames_and_values_are_those_of_the_host(cp: Any, shape: tuple[int, ...], dtype: str, codec: Any) -> None:
    values = field(shape, dtype) if shape else np.asarray(2.5, dtype)
    frame = pyfilter.encode(cp.asarray(values), codec)
    expected = pyfilter.encode(values, codec)
    assert isinstance(frame, cp.ndarray)
    assert (frame.dtype, frame.ndim) == (np.uint8, 1)
    assert frame.get().tobytes() == expected
    found = pyfilter.decode(frame)
    assert isinstance(found, cp.ndarray)
    assert (found.shape, found.dtype) == (shape, values.dtype)
    assert found.get().tobytes() == pyfilter.decode(expected).tobytes()


@pytest.mark.parametrize("block_dims", [1, 2, 3])
@pytest.mark.parametrize("codec", [Cuszp2(absolute=1e-2), Lossless()], ids=str)
def test_block_shapes(cp: Any, codec: Any, block_dims: int) -> None:
    codec = type(codec)(**{**({"absolute": 1e-2} if isinstance(codec, Cuszp2) else {}), "block_dims": block_dims})
    values = field((13, 50, 61))
    frame = pyfilter.encode(cp.asarray(values), codec)
    assert frame.get().tobytes() == pyfilter.encode(values, codec)
    assert pyfilter.decode(frame).get().tobytes() == pyfilter.decode(frame.get()).tobytes()


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_integers(cp: Any, dtype: str) -> None:
    values = (field((40, 55), "f8") * 20 + 60).astype(dtype)
    frame = pyfilter.encode(cp.asarray(values), Lossless())
    assert frame.get().tobytes() == pyfilter.encode(values, Lossless())
    np.testing.assert_array_equal(pyfilter.decode(frame).get(), values)


def test_missing_values(cp: Any) -> None:
    values = field((200, 300))
    values[20:60] = -999.0
    values[70, :50] = np.nan
    values[71, :50] = np.inf
    for fill in (None, -999.0):
        for codec in (Cuszp2(absolute=1e-3), Cuszp2(relative=1e-3)):
            frame = pyfilter.encode(cp.asarray(values), codec, fill)
            assert frame.get().tobytes() == pyfilter.encode(values, codec, fill)
            assert pyfilter.decode(frame).get().tobytes() == pyfilter.decode(frame.get()).tobytes()


@pytest.mark.device_only
@pytest.mark.parametrize("name", ["cuszp2", "hierarchical_delta", "lorenzo", "progressive"])
def test_ranges_without_zeros(cp: Any, name: str) -> None:
    """As copies by nccopy ask for them (docs/cd_values.md)."""
    device = pytest.importorskip("gpu.device")
    values = 300 + field((200, 300))
    values[150:] = 0
    values[20:60] = -999.0
    codec: Any = pyfilter.FILTERS[name]
    request = frames.make_request(codec(relative=1e-3), values.dtype, values.shape, -999.0)
    sizes = []
    for request.without_zeros in (0, 1):
        expected = np.empty(host.max_frame_bytes(request), np.uint8)
        size = host.encode(request, values, expected)
        assert device.encode(request, [values]) == [expected[:size].tobytes()]
        sizes.append(size)
    assert sizes[0] < sizes[1]


def test_memory_layouts(cp: Any) -> None:
    values = field((60, 80))
    given = cp.asarray(values)
    for view, same in [
        (given.transpose(1, 0), values.T),
        (given[::2, 3:70:3], values[::2, 3:70:3]),
        (given[5:7], values[5:7]),
        (given[:, 9], values[:, 9]),
    ]:
        codec = Cuszp2(absolute=1e-3)
        assert pyfilter.encode(view, codec).get().tobytes() == pyfilter.encode(same, codec)


@pytest.mark.parametrize(("start", "stop"), [(None, 1), (0, 0), (5, None), (4095, 4097), (123, 9999), (10_000, 10_000)])
def test_ranges(cp: Any, start: int | None, stop: int | None) -> None:
    frame = pyfilter.encode(field((10_000,)), Cuszp2(absolute=1e-3))
    expected = pyfilter.decode(frame, start, stop)
    on_device = cp.asarray(np.frombuffer(frame, np.uint8))
    found = pyfilter.decode(on_device, start, stop)
    np.testing.assert_array_equal(found.get(), expected)
    out = cp.zeros(expected.shape, "f4")
    assert pyfilter.decode(on_device, start, stop, out=out) is out
    np.testing.assert_array_equal(out.get(), expected)


@pytest.mark.device_only
@pytest.mark.parametrize("predictor", ["regression", "interpolation"])
@pytest.mark.parametrize("shape", [(4097,), (65, 130), (17, 33, 29)], ids=str)
def test_adaptive(cp: Any, shape: tuple[int, ...], predictor: Any) -> None:
    values, codec = field(shape), pyfilter.Adaptive(absolute=1e-3, predictor=predictor)
    frame = pyfilter.encode(values, codec)
    assert pyfilter.frame_info(frame).codec == "adaptive"
    expected = pyfilter.decode(frame)
    assert pyfilter.decode(cp.asarray(np.frombuffer(frame, np.uint8))).get().tobytes() == expected.tobytes()
    assert pyfilter.decode(frame, 100, 777, device="cuda").get().tobytes() == expected.reshape(-1)[100:777].tobytes()
    assert pyfilter.encode(cp.asarray(values), codec).get().tobytes() == frame


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "i2", "u1", "c8", "f2"])
def test_lossless_ratio(cp: Any, dtype: str) -> None:
    values, codec = (100 * field((65, 130))).astype(dtype), Lossless(effort="ratio")
    frame = pyfilter.encode(values, codec)
    assert not pyfilter.frame_info(frame).stored_raw
    assert pyfilter.encode(cp.asarray(values), codec).get().tobytes() == frame
    assert pyfilter.decode(cp.asarray(np.frombuffer(frame, np.uint8))).get().tobytes() == values.tobytes()
    assert pyfilter.decode(frame, 100, 777, device="cuda").get().tobytes() == values.reshape(-1)[100:777].tobytes()


def test_host_frames_are_decoded_where_out_or_device_says(cp: Any) -> None:
    values = field((60, 80))
    frame = pyfilter.encode(values, Cuszp2(absolute=1e-3))
    expected = pyfilter.decode(frame)
    out = cp.zeros((60, 80), "f4")
    assert pyfilter.decode(frame, out=out) is out
    np.testing.assert_array_equal(out.get(), expected)
    for device in ("cuda", "cuda:0"):
        found = pyfilter.decode(frame, device=device)
        assert isinstance(found, cp.ndarray)
        np.testing.assert_array_equal(found.get(), expected)
    assert isinstance(pyfilter.decode(frame, device="cpu"), np.ndarray)
    wide = cp.zeros((60, 160), "f4")
    pyfilter.decode(frame, out=wide[:, ::2])
    np.testing.assert_array_equal(wide.get()[:, ::2], expected)
    assert not wide.get()[:, 1::2].any()


def test_device_frames_are_decoded_where_out_or_device_says(cp: Any) -> None:
    values = field((60, 80))
    frame = pyfilter.encode(cp.asarray(values), Cuszp2(absolute=1e-3))
    out = np.zeros((60, 80), "f4")
    assert pyfilter.decode(frame, out=out) is out
    np.testing.assert_array_equal(out, pyfilter.decode(frame.get()))
    assert isinstance(pyfilter.decode(frame, device="cpu"), np.ndarray)
    assert pyfilter.frame_info(frame) == pyfilter.frame_info(frame.get())


def test_wrong_arguments(cp: Any) -> None:
    frame = pyfilter.encode(cp.asarray(field((60, 80))), Cuszp2(absolute=1e-3))
    for shape, dtype in [((80, 60), "f4"), ((4800,), "f4"), ((60, 80), "f8"), ((60, 80), "i4")]:
        with pytest.raises(ValueError, match="out must have shape"):
            pyfilter.decode(frame, out=cp.zeros(shape, dtype))
    with pytest.raises(ValueError, match="not both"):
        pyfilter.decode(frame, out=cp.zeros((60, 80), "f4"), device="cuda")
    for device in ("gpu", "cuda:", "cuda:x", "CUDA", "cuda:-1", "cpu:0", ""):
        with pytest.raises(ValueError, match="device must be"):
            pyfilter.decode(frame, device=device)
    with pytest.raises(ValueError, match="is not there"):
        pyfilter.decode(frame, device="cuda:4000")
    with pytest.raises(ValueError, match="start"):
        pyfilter.decode(frame, start=-1)
    wrong: Any = [1, 2, 3]
    with pytest.raises(TypeError):
        pyfilter.decode(frame, out=wrong)
    with pytest.raises(TypeError, match="cannot encode"):
        pyfilter.encode(cp.zeros((3,), "i4"), Cuszp2(absolute=1.0))
    with pytest.raises(TypeError, match="cannot encode"):
        pyfilter.encode(cp.zeros((3,), "c8"), pyfilter.Progressive(absolute=1.0))


def test_cut_frames_are_refused(cp: Any) -> None:
    frame = np.frombuffer(pyfilter.encode(field((100, 100)), Cuszp2(absolute=1e-3)), np.uint8)
    for size in (0, 1, 3, 20, 40, 63, 100, len(frame) // 2, len(frame) - 1):
        with pytest.raises(pyfilter.errors.FrameError):
            pyfilter.decode(cp.asarray(frame[:size]))


@pytest.mark.parametrize("codec", [Cuszp2(absolute=1e-3), Cuszp2(absolute=1e-3, mode="plain"), Lossless()], ids=str)
def test_damaged_frames_are_errors_or_values(cp: Any, codec: Any) -> None:
    values = field((5000,))
    frame = np.frombuffer(pyfilter.encode(values, codec), np.uint8)
    rng = np.random.default_rng(5)
    refused = 0
    for _ in range(300):
        damaged = frame.copy()
        place = int(rng.integers(len(frame)))
        damaged[place] ^= np.uint8(1 << int(rng.integers(8)))
        try:
            assert pyfilter.decode(cp.asarray(damaged)).shape == (5000,)
        except pyfilter.errors.FrameError:
            refused += 1
    assert refused > 0
    np.testing.assert_array_equal(pyfilter.decode(cp.asarray(frame)).get(), pyfilter.decode(frame.tobytes()))


def test_frames_at_odd_addresses(cp: Any) -> None:
    frame = np.frombuffer(pyfilter.encode(field((5000,)), Cuszp2(absolute=1e-3)), np.uint8)
    for shift in range(5):
        buffer = cp.asarray(np.concatenate([np.zeros(shift, np.uint8), frame]))
        np.testing.assert_array_equal(pyfilter.decode(buffer[shift:]).get(), pyfilter.decode(frame.tobytes()))
