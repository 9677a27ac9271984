# SPDX-License-Identifier: BSD-3-Clause
"""Orders of writing that once broke a bound, or that find a chunk's origin in one way only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
from numpy.typing import NDArray

import pyfilter

LOSSY = (pyfilter.Adaptive, pyfilter.Cuszp2, pyfilter.HierarchicalDelta, pyfilter.Lorenzo, pyfilter.Progressive)
FOLLOWING: tuple[dict[str, float], ...] = ({"relative": 1e-3}, {"psnr": 60.0})


def in_bounds(written: NDArray[Any], got: NDArray[Any], fraction: float = 1e-3) -> float:
    """Return the largest error as a part of the bound that the whole of one chunk has in the end."""
    error = np.abs(written.astype("f8") - got.astype("f8")).max()
    return float(error / (fraction * (float(written.max()) - float(written.min()))))


def walk(count: int, seed: int = 1) -> NDArray[Any]:
    return np.random.default_rng(seed).standard_normal(count).cumsum().astype("f4")


@pytest.mark.parametrize("codec", LOSSY)
def test_one_large_chunk_step_by_step(tmp_path: Path, codec: Any) -> None:
    """A chunk that is larger than HDF5's cache, one time step after the other, with a range that grows."""
    rng = np.random.default_rng(2)
    base = rng.standard_normal((200, 200)).cumsum(0).cumsum(1)
    base /= np.abs(base).max()
    steps = np.stack([base * 0.05 * (t + 1) + 0.2 * t for t in range(60)]).astype("f4")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = file.create_dataset("x", steps.shape, "f4", chunks=steps.shape, **codec(relative=1e-3))
        for t, step in enumerate(steps):
            dataset[t] = step
    with h5py.File(tmp_path / "a.h5") as file:
        assert in_bounds(steps, file["x"][...]) <= 1


@pytest.mark.parametrize("bound", FOLLOWING, ids=["relative", "psnr"])
@pytest.mark.parametrize("codec", LOSSY)
def test_opened_and_appended_500_times(tmp_path: Path, codec: Any, bound: dict[str, float]) -> None:
    values, path = walk(1000), tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", (0,), "f4", maxshape=(None,), chunks=(1000,), **codec(**bound))
    for i in range(0, 1000, 2):
        with h5py.File(path, "r+") as file:
            file["x"].resize((i + 2,))
            file["x"][i:] = values[i : i + 2]
    with h5py.File(path) as file:
        assert in_bounds(values, file["x"][...]) <= 1


def test_netcdf_file_appended_daily(tmp_path: Path) -> None:
    days, path = 60, tmp_path / "a.nc"
    rng = np.random.default_rng(3)
    values = (rng.standard_normal((days, 20, 30)).cumsum(0) * 3 + 280).astype("f4")
    with netCDF4.Dataset(path, "w") as file:
        for name, size in (("time", None), ("y", 20), ("x", 30)):
            file.createDimension(name, size)
        variable = file.createVariable("t", "f4", ("time", "y", "x"), chunksizes=(days, 20, 30))
        pyfilter.netcdf.compress(variable, pyfilter.HierarchicalDelta(relative=1e-3))
    for day in range(days):
        with netCDF4.Dataset(path, "a") as file:
            file["t"][day] = values[day]
    with netCDF4.Dataset(path) as file:
        assert in_bounds(values, np.asarray(file["t"][...])) <= 1


def test_dask_blocks_that_cut_chunks(tmp_path: Path) -> None:
    dask_array = pytest.importorskip("dask.array")
    values = walk(40_000).reshape(200, 200)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = file.create_dataset("x", values.shape, "f4", chunks=values.shape, **pyfilter.Lorenzo(relative=1e-3))
        dask_array.store(dask_array.from_array(values, chunks=(7, 200)), dataset)
    with h5py.File(tmp_path / "a.h5") as file:
        assert in_bounds(values, file["x"][...]) <= 1


@pytest.mark.parametrize("cached", [False, True], ids=["not cached", "cached and flushed"])
@pytest.mark.parametrize("codec", LOSSY)
def test_one_value_is_left(tmp_path: Path, codec: Any, cached: bool) -> None:
    """All but one value are written again and again: no sample of the chunk shows where it came from."""
    path, left = tmp_path / "a.h5", 377
    values = walk(1000)
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=values, chunks=(1000,), **codec(relative=1e-3))
    for turn in range(40):
        with h5py.File(path, "r+", rdcc_nbytes=1 << 20 if cached else 0) as file:
            others = (walk(1000, seed=turn + 2) * (1.02 + 0.02 * turn)).astype("f4")
            others[left] = values[left]
            file["x"][:left], file["x"][left + 1 :] = others[:left], others[left + 1 :]
            file.flush()
        values = others
    bounds = 1e-3 * (float(values.max()) - float(values.min()))
    with h5py.File(path) as file:
        frame = pyfilter.frame_info(file["x"].id.read_direct_chunk((0,))[1])
        got = file["x"][...]
    assert np.delete(np.abs(got - values), left).max() <= bounds
    assert abs(float(got[left]) - float(values[left])) <= frame.error_bound


def test_range_that_becomes_smaller(tmp_path: Path) -> None:
    """What is written after the range has shrunk keeps the smaller bound; the frame names that of older values."""
    path, values = tmp_path / "a.h5", walk(1000)
    values[10] = 1e4
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=values, chunks=(1000,), **pyfilter.HierarchicalDelta(relative=1e-3))
    values[10], values[500:] = 0.5, walk(500, seed=9)
    with h5py.File(path, "r+") as file:
        file["x"][10], file["x"][500:] = values[10], values[500:]
    spread = float(values.max()) - float(values.min())
    with h5py.File(path) as file:
        frame = pyfilter.frame_info(file["x"].id.read_direct_chunk((0,))[1])
        error = np.abs(file["x"][...].astype("f8") - values)
    assert error[500:].max() <= 1e-3 * spread
    assert error[10] <= 1e-3 * spread
    assert 9 < frame.error_bound < 11
    assert frame.format_version == 6
    assert error.max() <= frame.error_bound
    (finding,) = pyfilter.check(path)
    assert (finding.dataset, finding.problem, finding.chunks) == ("/x", "larger bound", 1)
    assert "or use absolute= or pyfilter.create_dataset" in finding.detail


def test_whole_chunks_are_no_larger_for_what_was_read_before(tmp_path: Path) -> None:
    """A program that reads one dataset and writes another gets the frames that a fresh process gets."""
    codec = pyfilter.HierarchicalDelta(relative=1e-3)
    first, second = walk(20_000).reshape(20, 1000), walk(20_000, seed=5).reshape(20, 1000)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=first, chunks=(1, 1000), **codec)
    with h5py.File(tmp_path / "a.h5") as old, h5py.File(tmp_path / "b.h5", "w") as file:
        new = file.create_dataset("x", first.shape, "f4", chunks=(1, 1000), **codec)
        for row in range(20):
            assert old["x"][row].size == 1000
            new[row] = second[row]
        file.flush()
        for row in range(20):
            assert new.id.read_direct_chunk((row, 0))[1] == pyfilter.encode(second[row].reshape(1, 1000), codec)


def test_copies_are_the_same(tmp_path: Path) -> None:
    """What was decoded and is encoded with the same settings gets its own frame back: copying moves nothing."""
    codec, values = pyfilter.Lorenzo(relative=1e-2), walk(40_000).reshape(40, 1000)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=values, chunks=(10, 1000), **codec)
    with h5py.File(tmp_path / "a.h5") as old, h5py.File(tmp_path / "b.h5", "w") as file:
        new = file.create_dataset("x", data=old["x"][...], chunks=(10, 1000), **codec)
        file.flush()
        for row in range(0, 40, 10):
            assert new.id.read_direct_chunk((row, 0)) == old["x"].id.read_direct_chunk((row, 0))


def test_encode_over_a_frame() -> None:
    """The same without a file."""
    codec, values = pyfilter.HierarchicalDelta(relative=1e-3), walk(5000)
    frame = pyfilter.encode(values[:5000] * 0, codec)
    now = np.zeros(5000, "f4")
    for i in range(0, 5000, 50):
        now[i : i + 50] = values[i : i + 50]
        frame = pyfilter.encode(now, codec, over=frame)
        now = np.array(pyfilter.decode(frame))
    assert in_bounds(values, now) <= 1
    with pytest.raises(ValueError, match="updated holds 20000 bytes of dtype f32, the values are 40000 of f64"):
        pyfilter.encode(values.astype("f8"), codec, over=frame)
