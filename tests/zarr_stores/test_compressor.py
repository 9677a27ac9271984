# SPDX-License-Identifier: BSD-3-Clause
"""Format 2: the codec of numcodecs, alone and in arrays of zarr-python, in both orders and byte orders."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numcodecs
import numpy as np
import pytest
import zarr
from numcodecs.registry import get_codec

import pyfilter
from pyfilter.errors import FrameError, InvalidArgument, Unsupported
from pyfilter.zarr import Compressor

from .support import CHUNK, FILL, SHAPE, codecs, field, stored, within


def create(codec: pyfilter.Codec, dtype: str = "f4", fill: Any = FILL, **given: Any) -> zarr.Array:
    """Return an empty array of format 2 in memory."""
    settings: dict[str, Any] = {"shape": SHAPE, "chunks": CHUNK, "dtype": dtype, "fill_value": fill, **given}
    compressor = Compressor(codec, fill)
    return zarr.create_array(zarr.storage.MemoryStore(), zarr_format=2, compressors=compressor, **settings)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("codec", codecs(), ids=repr)
def test_round_trip(codec: pyfilter.Codec, order: str) -> None:
    array = create(codec, order=order)
    array[...] = field()
    reader = zarr.open_array(array.store_path.store, mode="r")
    assert within(field(), reader[...], codec)
    shape = pyfilter.frame_info(stored(array)["0.0.0"]).shape
    assert shape == (CHUNK if order == "C" else CHUNK[::-1])


@pytest.mark.parametrize("dtype", ["f4", "f8", ">f4", ">f8", "i1", ">i2", "u2", "i4", ">u4", "i8", ">u8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_types(dtype: str, order: str) -> None:
    codec = pyfilter.HierarchicalDelta(absolute=1)
    fill = FILL if "f" in dtype else 0
    array = create(codec, dtype, fill, order=order)
    array[...] = field(dtype)
    there = zarr.open_array(array.store_path.store, mode="r")[...]
    assert there.dtype == np.dtype(dtype)
    assert within(field(dtype), there, codec, FILL if "f" in dtype else None)


@pytest.mark.parametrize("codec", codecs(), ids=repr)
def test_configuration(codec: pyfilter.Codec) -> None:
    compressor = Compressor(codec, np.float32(FILL))
    said = json.loads(json.dumps(compressor.get_config()))
    assert said == {"id": "pyfilter", "cd_values": list(codec.filter_options), "fill_value": float(np.float32(FILL))}
    again = get_codec(said)
    assert isinstance(again, Compressor)
    assert again == compressor
    assert pickle.loads(pickle.dumps(compressor)) == compressor
    assert eval(repr(compressor), {**vars(pyfilter), "Compressor": Compressor}) == compressor


def test_configuration_by_names() -> None:
    named = {"id": "pyfilter", "codec": "lorenzo", "absolute": 0.01, "fill_value": "NaN"}
    codec = get_codec(named)
    assert codec.codec == pyfilter.Lorenzo(absolute=0.01)
    assert np.isnan(codec.fill_value)
    assert codec.get_config()["fill_value"] == "NaN"
    with pytest.raises(InvalidArgument, match="codec must be one of"):
        get_codec({"id": "pyfilter", "codec": "sz"})


def test_a_bound_that_follows_the_range_needs_the_fill_value() -> None:
    values = field(special=False)
    array = zarr.create_array(
        zarr.storage.MemoryStore(), shape=SHAPE, chunks=CHUNK, dtype="f4", zarr_format=2,
        compressors=Compressor(pyfilter.Cuszp2(relative=1e-3)),
    )  # fmt: skip
    with pytest.raises(InvalidArgument, match=r"give fill_value=, use pyfilter\.zarr\.create_array"):
        array[...] = values
    array = create(pyfilter.Cuszp2(relative=1e-3), fill=0)
    array[...] = values + 1000
    for frame in stored(array).values():
        assert pyfilter.frame_info(frame).bound <= 1e-3 * np.ptp(values)


def test_without_zarr() -> None:
    codec = Compressor(pyfilter.Lorenzo(absolute=0.01), FILL)
    for values in (field(), np.asfortranarray(field()), field(">f8"), field()[::2, 1:]):
        frame = codec.encode(values)
        out = np.empty_like(values)
        assert codec.decode(frame, out=out) is out
        assert within(values, out, 0.01)
        flat = bytearray(values.nbytes)
        codec.decode(frame, out=flat)
        assert within(
            values, np.ndarray(values.shape, values.dtype, flat, order="F" if values.flags.fnc else "C"), 0.01
        )
    with pytest.raises(InvalidArgument, match="out must be writeable and have"):
        codec.decode(frame, out=bytearray(3))
    with pytest.raises(Unsupported, match="bytes do not say"):
        codec.encode(b"1234")
    assert Compressor(pyfilter.Lossless()).decode(Compressor(pyfilter.Lossless()).encode(b"1234")).tobytes() == b"1234"
    with pytest.raises(InvalidArgument, match="only decodes"):
        Compressor().encode(values)
    assert within(values, Compressor().decode(frame), 0.01)
    with pytest.raises(TypeError, match="lorenzo cannot encode int32"):
        codec.encode(field("i4"))


def test_damage() -> None:
    codec = Compressor(pyfilter.Lorenzo(absolute=0.01))
    frame = codec.encode(field())
    for bad in (b"", frame[:20], frame[: len(frame) // 2], b"x" * 99):
        with pytest.raises(FrameError):
            codec.decode(bad)
    array = create(pyfilter.Lorenzo(absolute=0.01))
    array[...] = field()
    array.store_path.store._store_dict["0.0.0"] = zarr.core.buffer.cpu.Buffer.from_bytes(frame[:50])
    with pytest.raises(FrameError):
        array[...]


def test_a_filter_of_numcodecs_behind_frames() -> None:
    """HDF5's pipeline of our filter and another one, as kerchunk writes it: the first filter is ours."""
    codec, behind = Compressor(pyfilter.Lorenzo(absolute=0.01), FILL), numcodecs.Zlib()
    array = zarr.create_array(
        zarr.storage.MemoryStore(), shape=SHAPE, chunks=CHUNK, dtype="f4", zarr_format=2, fill_value=FILL,
        filters=[codec, behind], compressors=None,
    )  # fmt: skip
    array[...] = field()
    assert within(field(), array[...], 0.01)
