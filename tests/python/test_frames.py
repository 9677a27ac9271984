# SPDX-License-Identifier: BSD-3-Clause
"""Arrays to frames and back without a file: shapes, types, ranges, special values, damage."""

from __future__ import annotations

import struct
import sys
import zlib
from typing import Any

import numpy as np
import pytest

import pyfilter
from pyfilter import Cuszp2, HierarchicalDelta, Lorenzo, Lossless, errors
from pyfilter._lib import host

from .support import field

INTEGERS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]
SHAPES = [(), (1,), (31,), (4097,), (5, 9), (17, 33), (3, 0, 4), (0,), (4, 5, 6), (2, 3, 8, 9), (1,) * 12]


def with_crc(header: bytearray, units: int) -> bytes:
    """Return a frame whose header was changed with its checksum made anew (docs/format.md, section 2)."""
    size = 8 * units
    header[12:16] = bytes(4)
    header[12:16] = struct.pack("<I", zlib.crc32(bytes(header[:size])))
    return bytes(header)


LOSSY = pytest.mark.parametrize("lossy", [Cuszp2, HierarchicalDelta, Lorenzo])
Lossy = type[Cuszp2] | type[HierarchicalDelta] | type[Lorenzo]


@LOSSY
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_bound_holds_for_any_shape(shape: tuple[int, ...], dtype: str, lossy: Lossy) -> None:
    values = field(shape, dtype)
    back = pyfilter.decode(pyfilter.encode(values, lossy(absolute=1e-3)))
    assert (back.shape, back.dtype) == (values.shape, values.dtype)
    assert pyfilter.verify(values, back, 1e-3).ok


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [*INTEGERS, "f4", "f8"])
def test_lossless_is_bit_exact(shape: tuple[int, ...], dtype: str) -> None:
    values = (field(shape, "f8") * 30).astype("i8").astype(dtype) if dtype in INTEGERS else field(shape, dtype)
    back = pyfilter.decode(pyfilter.encode(values, Lossless()))
    assert (back.shape, back.dtype) == (values.shape, values.dtype)
    assert back.tobytes() == values.tobytes()


@pytest.mark.parametrize("codec", [Cuszp2(absolute=1e-3), HierarchicalDelta(absolute=1e-3), Lossless()], ids=repr)
@pytest.mark.parametrize(
    "view",
    [
        lambda a: a[::2],
        lambda a: a[:, ::-1],
        lambda a: a.T,
        lambda a: np.asfortranarray(a),
        lambda a: a[3:-3, 5:-5],
        lambda a: np.broadcast_to(a[0], (7, a.shape[1])),
    ],
)
def test_any_memory_layout_gives_the_same_frame(codec: pyfilter.Codec, view: Any) -> None:
    values = view(field((40, 50)))
    assert pyfilter.encode(values, codec) == pyfilter.encode(np.array(values, order="C"), codec)


@LOSSY
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_big_endian_values_come_back_native_and_are_remembered(dtype: str, lossy: Lossy) -> None:
    values = field((20, 30), dtype)
    frame = pyfilter.encode(values.astype(f">{dtype}"), lossy(absolute=1e-3))
    assert pyfilter.frame_info(frame).big_endian
    back = pyfilter.decode(frame)
    assert back.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(back, pyfilter.decode(pyfilter.encode(values, lossy(absolute=1e-3))))
    assert not pyfilter.frame_info(pyfilter.encode(values, lossy(absolute=1e-3))).big_endian


@pytest.mark.parametrize("codec", [None, "cuszp2", 1e-3, Cuszp2, pyfilter.Codec])
def test_a_codec_is_needed(codec: Any) -> None:
    with pytest.raises(TypeError, match="codec"):
        pyfilter.encode(np.zeros(3), codec)


def test_more_block_dims_than_dimensions_are_refused() -> None:
    with pytest.raises(ValueError, match="block"):
        pyfilter.encode(np.zeros(30), Cuszp2(absolute=1.0, block_dims=2))


@pytest.mark.parametrize("block_dims", [1, 2, 3])
@pytest.mark.parametrize("mode", ["outlier", "plain", "fixed"])
def test_parameters_reach_the_frame(mode: str, block_dims: int) -> None:
    values = field((9, 10, 11))
    info = pyfilter.frame_info(pyfilter.encode(values, Cuszp2(absolute=1e-2, mode=mode, block_dims=block_dims)))
    assert info.parameters == {"mode": mode, "block_dims": block_dims}


@pytest.mark.parametrize("outliers", ["auto", "on", "off"])
@pytest.mark.parametrize("predictor", ["auto", "chain", "lorenzo2d", "lorenzo3d", "columns"])
def test_what_auto_became_is_in_the_frame(predictor: str, outliers: str) -> None:
    codec = HierarchicalDelta(absolute=1e-2, predictor=predictor, outliers=outliers)
    info = pyfilter.frame_info(pyfilter.encode(field((9, 70, 110)), codec))
    found = info.parameters["predictor"]
    assert found in ("chain", "lorenzo2d", "lorenzo3d", "columns")
    assert found == predictor or predictor == "auto"
    wanted = ("off" if predictor == "chain" else "on") if outliers == "auto" else outliers
    assert info.parameters["outliers"] == wanted
    orders = {"chain": (1,), "lorenzo2d": (1, 2), "lorenzo3d": (1, 2, 3), "columns": (1,)}
    assert info.parameters["order"] in orders[str(found)]
    assert (info.codec, info.format_version, set(info.parameters)) == (
        "hierarchical_delta", 2, {"predictor", "outliers", "order"}
    )  # fmt: skip


@pytest.mark.parametrize(("coder", "gap_array"), [("rans", True), ("huffman", True), ("huffman", False)])
def test_coders_reach_the_frame(coder: str, gap_array: bool) -> None:
    values = field((9, 70, 110))
    frame = pyfilter.encode(values, Lorenzo(absolute=1e-2, coder=coder, gap_array=gap_array))
    info = pyfilter.frame_info(frame)
    assert (info.codec, info.format_version) == ("lorenzo", 10 if coder == "rans" else 3)
    assert (info.parameters["coder"], info.parameters["gap_array"]) == (coder, gap_array)
    assert 0 <= int(info.parameters["group_log2"]) <= 5
    assert set(info.parameters) == {"predictor", "coder", "gap_array", "order", "group_log2"}
    assert len(frame) < len(pyfilter.encode(values, HierarchicalDelta(absolute=1e-2)))


def test_small_chunks_have_no_tables() -> None:
    """What is not longer then is the frame of the other codec."""
    for values in (field((7, 9)), np.zeros((30, 40), "f4")):
        frame = pyfilter.encode(values, Lorenzo(absolute=1e-2))
        assert pyfilter.frame_info(frame).codec == "hierarchical_delta"
        assert frame == pyfilter.encode(values, HierarchicalDelta(absolute=1e-2))


def test_predictors_that_need_more_dimensions_are_refused() -> None:
    for predictor, rank in (("lorenzo2d", 1), ("lorenzo3d", 2), ("columns", 1), ("columns", 0)):
        with pytest.raises(ValueError, match=f"needs data of rank . or more, this has rank {rank}"):
            pyfilter.encode(np.zeros((5,) * rank), HierarchicalDelta(absolute=1.0, predictor=predictor))


def test_frame_info_says_what_is_in_the_frame() -> None:
    values = field((64, 100))
    frame = pyfilter.encode(values, Cuszp2(absolute=1e-3), fill_value=-999.0)
    info = pyfilter.frame_info(frame)
    assert (info.codec, info.dtype, info.shape) == ("cuszp2", np.dtype("f4"), (64, 100))
    assert 0 < info.bound <= 1e-3
    assert 0 < info.step <= 2e-3
    assert (info.frame_bytes, info.header_bytes) == (len(frame), 8 * 9)
    assert (info.value_count, info.value_bytes) == (6400, 25600)
    assert not info.stored_raw
    assert info.format_version == 1
    assert info.ratio == pytest.approx(25600 / len(frame))
    assert pyfilter.frame_info(frame[: info.header_bytes]) == info


def test_noise_is_stored_raw_and_never_larger_than_that() -> None:
    noise = np.random.default_rng(1).integers(0, 2**64, 5000, dtype="u8")
    frame = pyfilter.encode(noise, Lossless())
    info = pyfilter.frame_info(frame)
    assert info.stored_raw
    assert len(frame) == info.header_bytes + noise.nbytes
    np.testing.assert_array_equal(pyfilter.decode(frame), noise)


@LOSSY
@pytest.mark.parametrize("fill", [-999.0, 1e20, np.nan, np.inf, np.float32(9.96921e36), -(2.0**-149), 0, 0.0])
def test_fill_values_and_specials_come_back_bit_for_bit(fill: Any, lossy: Lossy) -> None:
    values = field((50, 60))
    values[10:20, 5:50] = fill
    values[3, :5] = [np.nan, np.inf, -np.inf, -0.0, 3e38]
    values[4, 4:6].view("u4")[:] = [0x7FC01234, 0xFF800001]  # NaNs with a payload
    back = pyfilter.decode(pyfilter.encode(values, lossy(absolute=1e-3), fill_value=fill))
    assert pyfilter.verify(values, back, 1e-3, fill_value=fill).ok
    assert back[10:20, 5:50].tobytes() == values[10:20, 5:50].tobytes()


@LOSSY
def test_the_fill_value_is_left_out_of_a_relative_bound(lossy: Lossy) -> None:
    values = field((50, 60))
    spread = float(values.max()) - float(values.min())
    values[:5] = 1e20
    frame = pyfilter.encode(values, lossy(relative=1e-3), fill_value=1e20)
    assert pyfilter.frame_info(frame).bound == pytest.approx(spread * 1e-3, rel=1e-6)
    assert pyfilter.verify(values, pyfilter.decode(frame), Cuszp2(relative=1e-3), fill_value=1e20).ok


@pytest.mark.parametrize("fill", ["x", b"1", [1, 2], None.__class__, 1j, 10**400, np.zeros(2)])
def test_fill_values_must_be_numbers(fill: Any) -> None:
    with pytest.raises(ValueError, match="fill value"):
        pyfilter.encode(np.zeros(3), Cuszp2(absolute=1.0), fill_value=fill)


@pytest.mark.parametrize(("dtype", "fill"), [("i1", 128), ("u1", -1), ("i4", 0.5), ("u8", 2**64), ("i8", np.nan)])
def test_fill_values_must_fit_an_integer_type(dtype: str, fill: Any) -> None:
    with pytest.raises(ValueError, match="fill value"):
        pyfilter.encode(np.zeros(3, dtype), Lossless(), fill_value=fill)


@pytest.mark.parametrize(("dtype", "fill"), [("i1", -128), ("u8", 2**64 - 1), ("i8", -(2**63)), ("i4", 5.0)])
def test_extreme_fill_values_are_taken(dtype: str, fill: Any) -> None:
    values = np.full(100, int(fill), dtype=dtype)
    np.testing.assert_array_equal(pyfilter.decode(pyfilter.encode(values, Lossless(), fill_value=fill)), values)


def test_masked_values_are_refused() -> None:
    values = np.ma.masked_greater(field((20,)), 0.5)
    with pytest.raises(ValueError, match="masked"):
        pyfilter.encode(values, Cuszp2(absolute=1e-3))
    unmasked = np.ma.array(field((20,)), mask=False)
    assert pyfilter.encode(unmasked, Lossless()) == pyfilter.encode(field((20,)), Lossless())


@pytest.mark.parametrize(("start", "stop"), [(0, 0), (0, 1), (5, 9), (31, 33), (4000, 4200), (0, 9999), (9999, 9999)])
@pytest.mark.parametrize(
    "codec",
    [
        Cuszp2(absolute=1e-3), Cuszp2(absolute=1e-3, block_dims=2), HierarchicalDelta(absolute=1e-3, predictor="chain"),
        HierarchicalDelta(absolute=1e-3, predictor="lorenzo2d"), HierarchicalDelta(absolute=1e-3, predictor="columns"),
        Lorenzo(absolute=1e-3), Lorenzo(absolute=1e-3, coder="huffman"), Lossless(),
    ],
    ids=repr,
)  # fmt: skip
def test_ranges_are_parts_of_the_whole(codec: pyfilter.Codec, start: int, stop: int) -> None:
    frame = pyfilter.encode(field((99, 101)), codec)
    whole = pyfilter.decode(frame).ravel()
    np.testing.assert_array_equal(pyfilter.decode(frame, start, stop), whole[start:stop])
    np.testing.assert_array_equal(pyfilter.decode(frame, start=start), whole[start:])
    np.testing.assert_array_equal(pyfilter.decode(frame, stop=stop), whole[:stop])


@pytest.mark.parametrize(
    ("start", "stop", "text"),
    [
        (-1, 5, "start must be an integer from 0 to 100, got -1"),
        (101, None, "start must be an integer from 0 to 100, got 101"),
        (0, 101, "stop must be an integer from 0 to 100, got 101"),
        (50, 49, "stop must be an integer from 50 to 100, got 49"),
        (1.0, 5, "start must be an integer"),
        (0, True, "stop must be an integer"),
        ("0", 1, "start must be an integer"),
    ],
)
def test_bad_ranges_are_refused(start: Any, stop: Any, text: str) -> None:
    frame = pyfilter.encode(np.zeros((10, 10)), Lossless())
    with pytest.raises(ValueError, match=text):
        pyfilter.decode(frame, start, stop)


@pytest.mark.parametrize(
    "make",
    [
        np.zeros,
        lambda shape: np.zeros(shape, order="F"),
        lambda shape: np.zeros((*shape, 2))[..., 0],
        lambda shape: np.zeros(shape, ">f8"),
    ],
)
def test_out_is_filled_and_returned(make: Any) -> None:
    values = field((30, 40), "f8")
    out = make((30, 40))
    assert pyfilter.decode(pyfilter.encode(values, Lossless()), out=out) is out
    np.testing.assert_array_equal(out, values)


def test_out_of_a_range() -> None:
    frame = pyfilter.encode(np.arange(100.0), Lossless())
    out = np.zeros(3)
    assert pyfilter.decode(frame, 4, 7, out=out) is out
    np.testing.assert_array_equal(out, [4, 5, 6])


def test_an_out_that_does_not_fit_is_refused() -> None:
    frame = pyfilter.encode(np.zeros((3, 4)), Lossless())
    with pytest.raises(ValueError, match=r"\(3, 4\)"):
        pyfilter.decode(frame, out=np.zeros(12))
    with pytest.raises(ValueError, match="float64"):
        pyfilter.decode(frame, out=np.zeros((3, 4), "f4"))
    with pytest.raises(TypeError, match="ndarray"):
        pyfilter.decode(frame, out=[0.0] * 12)  # type: ignore[arg-type]
    locked = np.zeros((3, 4))
    locked.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        pyfilter.decode(frame, out=locked)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, lambda frame: np.frombuffer(frame, "u1"),
                                  lambda frame: np.repeat(np.frombuffer(frame, "u1"), 2)[::2]])  # fmt: skip
def test_frames_are_anything_with_bytes(kind: Any) -> None:
    frame = pyfilter.encode(np.arange(10.0), Lossless())
    np.testing.assert_array_equal(pyfilter.decode(kind(frame)), np.arange(10.0))


@pytest.mark.parametrize("thing", ["text", None, 5, [1, 2]])
def test_what_has_no_bytes_is_refused(thing: Any) -> None:
    with pytest.raises(TypeError, match="a frame is bytes"):
        pyfilter.decode(thing)


@LOSSY
def test_every_cut_is_an_error(lossy: Lossy) -> None:
    frame = pyfilter.encode(field((40, 40)), lossy(absolute=1e-3))
    for size in range(len(frame)):
        with pytest.raises(errors.FrameError):
            pyfilter.decode(frame[:size])


def test_what_is_missing_is_said() -> None:
    frame = pyfilter.encode(field((40, 40)), Cuszp2(absolute=1e-3))
    with pytest.raises(errors.TruncatedFrame):
        pyfilter.decode(frame[:-1])
    with pytest.raises(errors.TruncatedFrame):
        pyfilter.frame_info(b"\x89PYF")
    with pytest.raises(errors.FrameError):
        pyfilter.frame_info(b"")


def test_other_bytes_are_not_a_frame() -> None:
    with pytest.raises(errors.CorruptFrame):
        pyfilter.decode(bytes(1000))
    frame = pyfilter.encode(np.zeros(100), Cuszp2(absolute=1.0))
    for position in range(4):
        other = bytearray(frame)
        other[position] ^= 1
        with pytest.raises(errors.CorruptFrame, match="not a pyfilter frame"):
            pyfilter.decode(with_crc(other, other[7]))


@LOSSY
def test_every_changed_byte_of_the_header_is_an_error(lossy: Lossy) -> None:
    values = field((40, 40))
    frame = pyfilter.encode(values, lossy(absolute=1e-3))
    for position in range(pyfilter.frame_info(frame).header_bytes):
        for change in (0x01, 0x80, 0xFF):
            damaged = bytearray(frame)
            damaged[position] ^= change
            with pytest.raises(errors.FrameError):
                pyfilter.decode(damaged)


def test_a_newer_frame_names_the_release_that_it_needs() -> None:
    frame = bytearray(pyfilter.encode(field((40,)), Cuszp2(absolute=1e-3)))
    frame[4:7] = bytes([pyfilter.registry.registry().format_version + 1, 3, 7])
    with pytest.raises(errors.TooNew, match=r"3\.7"):
        pyfilter.decode(frame)


def test_format_version_0() -> None:
    frame = bytearray(pyfilter.encode(field((40,)), Cuszp2(absolute=1e-3)))
    frame[4] = 0
    with pytest.raises(errors.CorruptFrame, match="format version 0, allowed: 1 or more"):
        pyfilter.decode(with_crc(frame, frame[7]))


def test_a_hostile_size_asks_for_no_memory() -> None:
    frame = bytearray(pyfilter.encode(np.zeros(4096), Cuszp2(absolute=1.0)))
    frame[56:64] = struct.pack("<Q", 2**58)
    with pytest.raises(errors.CorruptFrame):
        pyfilter.decode(with_crc(frame, 8))


@LOSSY
def test_threads_do_not_change_the_bytes(lossy: Lossy) -> None:
    values = field((200, 300, 20))
    frames = set()
    for threads in (1, 2, 5):
        with pyfilter.config(threads=threads):
            frames.add(pyfilter.encode(values, lossy(relative=1e-4)))
    assert len(frames) == 1


@pytest.mark.parametrize("size", [0, 1, 33, 1000, 1 << 18, (2 << 20) + 1001])
def test_frames_are_made_in_bytes(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(size).normal(size=size).astype(np.float32)
    codec = Cuszp2(absolute=1e-2)
    made = pyfilter.encode(values, codec)
    assert type(made) is bytes
    assert sys.getrefcount(made) <= 2
    assert sys.getsizeof(made) == len(made) + sys.getsizeof(b"")
    again = pyfilter.encode(values, codec, over=made)
    monkeypatch.setattr(host, "_MAKES_BYTES", False)  # as where Python is not CPython
    copied = pyfilter.encode(values, codec)
    assert (made, hash(made)) == (copied, hash(copied))
    assert again == pyfilter.encode(values, codec, over=made)
