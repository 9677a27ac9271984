# SPDX-License-Identifier: BSD-3-Clause
"""Many chunks in one call of the library: the chunks that the filter makes, and the values that HDF5 reads."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pyfilter
from pyfilter import Cuszp2, HierarchicalDelta, Lossless, errors
from pyfilter._chunks import grids, layout, pipeline, transfer
from pyfilter._lib import abi, host, library
from pyfilter.errors import InvalidArgument

from .support import field
from .test_h5 import stored_chunks

BOUND = Cuszp2(absolute=1e-3)


@pytest.fixture(autouse=True)
def batches_of_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grids, "BATCH_BYTES", 3000)


@st.composite
def datasets(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return a shape and the shape of its chunks."""
    shape = tuple(draw(st.lists(st.integers(1, 40), min_size=1, max_size=4)))
    while np.prod(shape) > 20_000:
        shape = shape[:-1]
    return shape, tuple(draw(st.integers(1, extent)) for extent in shape)


def laid_out(data: st.DataObject, shape: tuple[int, ...], dtype: str) -> Any:
    """Return an array of other values that lies in its memory in some way."""
    room = np.full([extent + 3 for extent in shape], 77, dtype, order=data.draw(st.sampled_from("CF")))
    part = room[tuple(slice(low, low + extent) for low, extent in zip((0, 1, 2, 3), shape, strict=False))]
    for axis in range(len(shape)):
        if data.draw(st.booleans()):
            part = np.flip(part, axis)
    return part


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.data(),
    datasets(),
    st.sampled_from(["f4", "f8", "i2", "u1"]),
    st.sampled_from([1, 2, 5]),
    st.sampled_from([-9, 0]),
)
def test_chunks_and_values_are_those_of_hdf5(
    tmp_path: Path,
    data: st.DataObject,
    sizes: tuple[tuple[int, ...], tuple[int, ...]],
    dtype: str,
    threads: int,
    fill: int,
) -> None:
    shape, chunk = sizes
    codec: pyfilter.Codec = Lossless() if dtype[0] in "iu" else data.draw(st.sampled_from([BOUND, Lossless()]))
    values = laid_out(data, shape, dtype)
    values[...] = (np.arange(values.size) % 113).reshape(shape)
    options: Any = {"chunks": chunk, "fillvalue": fill if dtype != "u1" else 9, **codec}
    with pyfilter.config(threads=threads), h5py.File(tmp_path / "a.h5", "w") as file:
        pyfilter.write(file.create_dataset("ours", shape, dtype, **options), values)
        file.create_dataset("theirs", data=values, **options)
        assert stored_chunks(file["ours"]) == stored_chunks(file["theirs"])
    part = tuple(slice(*sorted(data.draw(st.tuples(*[st.integers(0, n)] * 2)))) for n in shape)
    with pyfilter.config(threads=threads), h5py.File(tmp_path / "a.h5") as file:
        expected = file["theirs"][...]
        out = laid_out(data, shape, dtype)
        pyfilter.read(file["ours"], out=out)
        np.testing.assert_array_equal(out, expected)
        assert (np.asarray(out.base) == 77).sum() >= out.base.size - out.size  # nothing beside it
        np.testing.assert_array_equal(pyfilter.read(file["ours"], part), expected[part])


def test_they_are_done_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "decode_chunk", None)
    monkeypatch.setattr(transfer, "encode_chunk", None)
    values = field((60, 50))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        pyfilter.create_dataset(file, "a", values, BOUND, chunks=(7, 11))
    with h5py.File(tmp_path / "a.h5") as file:
        assert abs(pyfilter.read(file["a"]) - values).max() <= 1e-3


@pytest.mark.parametrize("fill", [-9.0, np.nan])
def test_what_is_unusual_with_a_chunk(tmp_path: Path, fill: float, threads: int) -> None:
    """Chunks that were never written, without the filter, of other values, and damaged ones."""
    path, values = tmp_path / "a.h5", field((64, 50))
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("a", (64, 50), "f4", chunks=(8, 10), fillvalue=fill, **BOUND)
        dataset[:24] = values[:24]
        dataset.id.write_direct_chunk((32, 20), values[32:40, 20:30].tobytes(), 1)
    with h5py.File(path) as file:
        np.testing.assert_array_equal(pyfilter.read(file["a"]), file["a"][...])
        np.testing.assert_array_equal(pyfilter.read(file["a"], np.s_[3:61, 7:44]), file["a"][3:61, 7:44])
    for damage, said in (
        (pyfilter.encode(values[:8, :10].astype("f8"), BOUND), "a chunk of shape .* holds a frame"),
        (pyfilter.encode(values[:8, :10], BOUND)[:-8], "truncated|frame"),
        (b"noise" * 7, "not a pyfilter frame"),
    ):
        with h5py.File(path, "r+") as file:
            file["a"].id.write_direct_chunk((8, 40), bytes(damage), 0)
        with h5py.File(path) as file, pytest.raises(errors.FrameError, match=said):
            pyfilter.read(file["a"])


def test_what_the_library_does_not_encode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each third chunk is left by the library; each call ends after a few."""
    plain = host.write_grid

    def some(request: Any, grid: Any, padding: Any, writer: Any, chunks: tuple[int, int], *rest: Any) -> int:
        first, end = chunks
        return plain(request, grid, padding, writer, (first, min(end, -(-first // 3) * 3)), *rest)

    values = field((40, 50))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        expected = pyfilter.create_dataset(file, "b", values, BOUND, chunks=(8, 10))
        monkeypatch.setattr(host, "write_grid", some)
        found = pyfilter.create_dataset(file, "a", values, BOUND, chunks=(8, 10))
        assert stored_chunks(found) == stored_chunks(expected)


def test_sources_that_are_not_in_memory(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        source = file.create_dataset("source", data=field((90, 50)))
        expected = file.create_dataset("b", data=source[...], chunks=(8, 10), **BOUND)
        told: list[int] = []
        for name, codec in (("a", BOUND), ("c", HierarchicalDelta(absolute=1e-3))):
            found = file.create_dataset(name, source.shape, "f4", chunks=(8, 10), **codec)
            how = pipeline.chunk_codec(found)
            assert how is not None
            transfer.write_chunks(found, how, source, told.append, 2000)
            assert abs(found[...] - source[...]).max() <= 1e-3
        assert stored_chunks(file["a"]) == stored_chunks(expected)
        assert sum(told) == 2 * source.size
        assert len(told) > 4


def test_batches_are_boxes_of_chunks() -> None:
    region = (slice(3, 40), slice(0, 17))
    boxes = list(layout.batches(region, (4, 5), 4, 200))
    assert sum((a.stop - a.start) * (b.stop - b.start) for a, b in boxes) == 37 * 17
    assert all(layout.count([p.stop - p.start // e * e for p, e in zip(box, (4, 5), strict=True)], (4, 5)) * 80 <= 200
               for box in boxes)  # fmt: skip


def test_slips_of_who_calls() -> None:
    c = library.load()
    values, ranges = np.zeros((4, 6), "f4"), np.zeros(4, abi.RANGE)

    def read(grid: host.Grid | None, count: int = 4) -> None:
        asked = None if grid is None else ctypes.byref(grid)
        library.check(c.pyf_read_grid(asked, 1, -1, ranges.ctypes.data, count, 1))

    def grid(rank: int = 2, begin: tuple[int, int] = (0, 0), chunk: tuple[int, int] = (2, 3)) -> host.Grid:
        made = host.Grid(values, begin, chunk)
        made.rank = rank
        return made

    for asked, said in (
        (None, "grid is NULL"),
        (grid(rank=0), "the grid has 0 dimensions, allowed: 1 to 32"),
        (grid(rank=33), "the grid has 33 dimensions, allowed: 1 to 32"),
        (grid(chunk=(2, 0)), "begins 0 values before the array, must be fewer than the chunk's 0"),
        (grid(begin=(0, 3)), "begins 3 values before the array, must be fewer than the chunk's 3"),
        (grid(begin=(0, 1)), "the grid has 6 chunks, but count is 4"),
    ):
        with pytest.raises(InvalidArgument, match=said):
            read(asked)
    read(grid())
    assert not ranges["done"].any()
    with pytest.raises(InvalidArgument, match="request is NULL"):
        library.check(c.pyf_encode_grid(None, ctypes.byref(grid()), None, None, 0, None, 4, 1))
