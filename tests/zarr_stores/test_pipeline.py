# SPDX-License-Identifier: BSD-3-Clause
"""The codec pipeline for arrays of frames gives what zarr-python's own gives: values, stored bytes, errors."""

from __future__ import annotations

import asyncio
import multiprocessing
import pickle
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.core.codec_pipeline import BatchedCodecPipeline

import pyfilter
from pyfilter.errors import FrameError
from pyfilter.zarr import Compressor, Serializer, pipeline, work

from .support import CHUNK, FILL, SHAPE, field, stored

pytestmark = pytest.mark.skipif(not zarr.__version__.startswith("3.1."), reason="later pipelines are not known")

OWN = "zarr.core.codec_pipeline.BatchedCodecPipeline"
CODEC = pyfilter.Cuszp2(absolute=0.01)
KINDS = ("3", "2", "shards", "big-endian", "2, F")


def made(kind: str, values: Any, path: str | None = None, **given: Any) -> zarr.Array:
    """Return an array in memory by a pipeline, by default the one that zarr-python takes."""
    settings: dict[str, Any] = {"shape": values.shape, "dtype": values.dtype, "chunks": CHUNK, "fill_value": FILL}
    if kind.startswith("2") or kind == "big-endian":
        settings |= {"zarr_format": 2, "compressors": Compressor(CODEC), "filters": None}
    else:
        settings |= {"serializer": Serializer(CODEC), "compressors": None}
    if kind == "shards":
        settings["shards"] = tuple(2 * edge for edge in CHUNK)
    if kind == "2, F":
        settings["order"] = "F"
    with zarr.config.set({"codec_pipeline.path": path} if path else {}):
        return zarr.create_array(zarr.storage.MemoryStore(), **(settings | given))


def values_of(kind: str) -> Any:
    return field(">f4" if kind == "big-endian" else "f4")


def same(left: Any, right: Any) -> bool:
    """Whether arrays are of one shape and type and equal bit for bit."""
    left, right = np.asarray(left), np.asarray(right)
    return bool(left.shape == right.shape and left.dtype == right.dtype and left.tobytes() == right.tobytes())


def test_who_gets_it() -> None:
    values = field()
    assert all(type(made(kind, values).async_array.codec_pipeline) is pipeline.Pipeline for kind in ("2", "3"))
    plain = [made("3", values, OWN), made("3", values, compressors=zarr.codecs.ZstdCodec())]
    plain.append(zarr.create_array(zarr.storage.MemoryStore(), shape=(4,), dtype="f4"))
    assert all(type(array.async_array.codec_pipeline) is BatchedCodecPipeline for array in plain)


def test_a_chosen_pipeline_stays() -> None:
    with zarr.config.set({"codec_pipeline.path": "another"}):
        pipeline._use()
        assert zarr.config.get("codec_pipeline.path") == "another"


@pytest.mark.parametrize("kind", KINDS)
def test_same_bytes_and_values(kind: str) -> None:
    values = values_of(kind)
    arrays = [made(kind, values), made(kind, values, OWN)]
    for array in arrays:
        array[...] = values
        array[3:20, 7, ::3] = 1.5
        array[16:30] = values[:14]
    kept = [stored(array) for array in arrays]
    assert kept[0].keys() == kept[1].keys()
    assert all(bytes(kept[0][key]) == bytes(kept[1][key]) for key in kept[0])
    assert same(arrays[0][...], arrays[1][...])


@pytest.mark.parametrize("kind", KINDS)
def test_selections(kind: str) -> None:
    values = values_of(kind)
    arrays = [made(kind, values), made(kind, values, OWN)]
    for array in arrays:
        array[:, :20] = values[:, :20]  # the other chunks are not stored
    for part in (
        ...,
        3,
        (slice(2, 29), 7),
        (slice(None, None, 5), slice(3, 40), -1),
        (slice(16), slice(20), slice(32)),
    ):
        assert same(arrays[0][part], arrays[1][part])
    rows, columns = [2, 17, 5, 29], [0, 49, 3, 31]
    assert same(arrays[0].oindex[rows, :, columns], arrays[1].oindex[rows, :, columns])
    assert same(arrays[0].vindex[rows, [0, 1, 2, 40], columns], arrays[1].vindex[rows, [0, 1, 2, 40], columns])
    assert same(arrays[0].blocks[0, 0], arrays[1].blocks[0, 0])
    mask = values > 60
    assert same(arrays[0].get_mask_selection(mask), arrays[1].get_mask_selection(mask))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["f4", "f8", ">f4"])
def test_into_an_array(dtype: str, order: Any) -> None:
    array = made("3", field(special=False))
    array[...] = field(special=False)
    out = np.zeros(SHAPE, dtype, order=order)
    array.get_basic_selection(..., out=zarr.core.buffer.cpu.NDBuffer.from_numpy_array(out))
    assert np.array_equal(out, array[...].astype(dtype))


@pytest.mark.parametrize("kind", ["3", "2"])
def test_chunks_of_the_fill_value_are_not_stored(kind: str) -> None:
    values = field(special=False)
    values[:16, :20] = FILL
    array = made(kind, values)
    array[...] = FILL
    assert not stored(array)
    array[...] = values
    assert len(stored(array)) == 2 * 3 * 2 - 2
    assert np.array_equal(array[:16, :20], values[:16, :20])


@pytest.mark.parametrize("kind", ["3", "2"])
def test_an_error_names_the_chunk_and_leaves_no_call(kind: str) -> None:
    array = made(kind, field())
    array[...] = field()
    key = "c/1/0/0" if kind == "3" else "1.0.0"
    held = array.store._store_dict
    held[key] = zarr.core.buffer.cpu.Buffer.from_bytes(held[key].to_bytes()[:40])
    with pytest.raises(FrameError, match=key):
        array[...]
    assert work._calls == 0
    assert array[:16].shape == (16, 41, 50)


def test_an_error_of_a_store() -> None:
    class Failing(zarr.storage.MemoryStore):  # type: ignore[misc]
        fails = False

        async def get(self, key: str, *given: Any, **named: Any) -> Any:
            if self.fails and key.endswith("1/1/1"):
                await asyncio.sleep(0.01)
                raise OSError(5, "no such luck")
            return await super().get(key, *given, **named)

    array = zarr.create_array(
        Failing(), shape=SHAPE, dtype="f4", chunks=CHUNK, serializer=Serializer(CODEC), compressors=None
    )
    array[...] = field()
    Failing.fails = True
    with pytest.raises(OSError, match="no such luck"):
        array[...]
    assert work._calls == 0


@pytest.mark.parametrize("threads", [1, 3])
def test_threads(threads: int) -> None:
    array = made("3", field())
    with pyfilter.config(threads=threads):
        array[...] = field()
        assert work._executor is not None
        assert work._executor[0] == threads
        found = array[...]
    assert same(found, array[...])


def test_pickled() -> None:
    array = made("3", field())
    again = pickle.loads(pickle.dumps(array.async_array.codec_pipeline))
    assert again == array.async_array.codec_pipeline
    assert type(again) is pipeline.Pipeline


def _sum(path: str, found: Any) -> None:
    found.put(float(zarr.open_array(path, mode="r")[...].sum()))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
def test_in_the_child_of_a_fork(tmp_path: Any) -> None:
    path = str(tmp_path / "a.zarr")
    values = field(special=False)
    array = pyfilter.zarr.create_array(path, values, CODEC, chunks=CHUNK)
    expected = float(array[...].sum())
    context = multiprocessing.get_context("fork")
    found = context.SimpleQueue()
    child = context.Process(target=_sum, args=(path, found))
    child.start()
    child.join(30)
    assert child.exitcode == 0
    assert found.get() == expected
