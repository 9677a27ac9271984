# SPDX-License-Identifier: BSD-3-Clause
"""The serializer on zarr-python's GPU buffers: chunks are coded on their device, values are not copied to the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyfilter

zarr = pytest.importorskip("zarr")

SHAPE = (8, 40, 64)


@pytest.fixture(autouse=True)
def _zarr_knows_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give zarr-python the model, where it was imported before the model was."""
    import cupy
    from zarr.core.buffer import gpu

    monkeypatch.setattr(gpu, "cp", cupy)


def field() -> Any:
    """Return a smooth field with missing values."""
    values = np.sin(np.linspace(0, 50, np.prod(SHAPE))).reshape(SHAPE) * 9
    values[:2, 5] = -999
    return values.astype("f4")


def spec_of(fill: float) -> Any:
    """Return what zarr-python says of a chunk, with the buffers of a device."""
    from zarr.core.array_spec import ArrayConfig, ArraySpec
    from zarr.core.buffer.gpu import buffer_prototype
    from zarr.core.dtype import parse_dtype

    config = ArrayConfig(order="C", write_empty_chunks=False)
    return ArraySpec(SHAPE, parse_dtype("f4", zarr_format=3), np.float32(fill), config, buffer_prototype)


def test_chunks_stay_on_their_device(monkeypatch: pytest.MonkeyPatch) -> None:
    import cupy

    codec = pyfilter.HierarchicalDelta(absolute=1e-3)
    serializer = pyfilter.zarr.Serializer(codec)
    spec, values = spec_of(-999), cupy.asarray(field())
    copied: list[int] = []
    get = cupy.ndarray.get

    def counted(array: Any, *arguments: Any, **named: Any) -> Any:
        copied.append(array.nbytes)
        return get(array, *arguments, **named)

    with monkeypatch.context() as patch:
        if cupy.__file__ == "model":  # the methods of the real one cannot be replaced
            patch.setattr(cupy.ndarray, "get", counted)
        frame = serializer._encode_sync(spec.prototype.nd_buffer.from_ndarray_like(values), spec)
        there = serializer._decode_sync(frame, spec)
        part = serializer._decode_part(frame, (slice(2, 4), slice(None), slice(3, 9)), spec)
    assert isinstance(frame.as_array_like(), cupy.ndarray)
    assert isinstance(there.as_ndarray_like(), cupy.ndarray)
    assert isinstance(part.as_ndarray_like(), cupy.ndarray)
    assert max(copied, default=0) < 4096  # sizes and headers
    assert frame.as_array_like().get().tobytes() == pyfilter.encode(field(), codec, -999)
    result = there.as_ndarray_like().get()
    assert pyfilter.verify(field(), result, codec, fill_value=-999).ok
    assert np.array_equal(part.as_ndarray_like().get(), result[2:4, :, 3:9])


def test_refusals_on_a_device() -> None:
    import cupy

    spec = spec_of(0)
    values = spec.prototype.nd_buffer.from_ndarray_like(cupy.asarray(field()))
    serializer = pyfilter.zarr.Serializer(pyfilter.Cuszp2(relative=1e-3), fill_value=-999)
    with pytest.raises(TypeError, match=r"needs an array with the same fill_value, -999"):
        serializer._encode_sync(values, spec)
    frame = spec.prototype.buffer.from_array_like(cupy.asarray(np.frombuffer(b"x" * 200, np.uint8)))
    with pytest.raises(ValueError, match="not a pyfilter frame"):
        serializer._decode_sync(frame, spec)


@pytest.mark.device_only
def test_arrays_through_zarr() -> None:
    import cupy

    values = cupy.asarray(field())
    codec = pyfilter.Cuszp2(relative=1e-3)
    array = pyfilter.zarr.create_array(
        zarr.storage.MemoryStore(), values, codec, chunks=(3, 40, 64), fill_value=-999
    )  # the store gets compressed bytes
    assert pyfilter.verify(field(), array[...], codec, fill_value=-999).ok
    with zarr.config.enable_gpu():
        there = zarr.open_array(array.store_path.store, mode="r")[...]
        assert isinstance(there, cupy.ndarray)
        assert np.array_equal(there.get(), array[...])
