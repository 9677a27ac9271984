# SPDX-License-Identifier: BSD-3-Clause
"""pyfilter.xarray.to_netcdf of dask arrays: workers compress, one process writes, failures leave the old file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import pyfilter
from pyfilter._chunks import blocks
from pyfilter.xarray import streaming

from .support import field

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
xr = pytest.importorskip("xarray")
pytest.importorskip("netCDF4")

SHAPE = (12, 30, 40)
CODEC = pyfilter.Lorenzo(relative=1e-4)
ENGINES = ["netcdf4", "h5netcdf"]


def data(**more: Any) -> Any:
    values = field(SHAPE)
    values[3, :4] = np.nan
    times = np.datetime64("2000-01-01", "ns") + np.arange(12)
    variables = {
        "t": (("time", "y", "x"), values, {"units": "K"}),
        "packed": (("time", "y", "x"), field(SHAPE, seed=3)),
        "plain": (("time", "y"), field(SHAPE[:2])),
        **more,
    }
    return xr.Dataset(variables, {"time": times, "y": np.arange(30.0)}, {"title": "a"})


ENCODING: dict[str, dict[str, Any]] = {
    "t": {"_FillValue": 1e20, "chunksizes": (5, 30, 17)},
    "packed": {"dtype": "i2", "scale_factor": 0.001, "_FillValue": -9},
}
CODECS: dict[str, pyfilter.Codec] = {"t": CODEC, "packed": pyfilter.Lossless()}


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that grows with each block of frames that is written."""
    calls: list[int] = []
    before = blocks.store

    def store(dataset: Any, frames: Any) -> None:
        calls.append(len(frames.origins))
        before(dataset, frames)

    monkeypatch.setattr(blocks, "store", store)
    return calls


CASES = [
    ("netcdf4", None, "threads"),
    ("netcdf4", ["time"], "synchronous"),
    ("netcdf4", ["time"], "processes"),
    ("h5netcdf", ["time"], "threads"),
    ("h5netcdf", None, "synchronous"),
]


@pytest.mark.parametrize(("engine", "unlimited", "scheduler"), CASES, ids=str)
def test_the_file_is_that_of_values_in_memory(
    tmp_path: Path, engine: str, unlimited: list[str] | None, scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = counted(monkeypatch)
    settings: dict[str, Any] = {"codecs": CODECS, "encoding": ENCODING, "engine": engine, "unlimited_dims": unlimited}
    pyfilter.xarray.to_netcdf(data(), tmp_path / "a.nc", **settings)
    assert calls == []
    lazy = data().chunk({"time": 3, "x": 20})
    if scheduler == "processes":
        lazy["plain"] = lazy["plain"].load()
    with dask.config.set(scheduler=scheduler):
        pyfilter.xarray.to_netcdf(lazy, tmp_path / "b.nc", **settings)
    assert sum(calls) == 3 * 3 + 4 * 2  # chunks of both variables
    with xr.open_dataset(tmp_path / "a.nc") as expected, xr.open_dataset(tmp_path / "b.nc") as found:
        xr.testing.assert_identical(found, expected)
        assert found.encoding["unlimited_dims"] == expected.encoding["unlimited_dims"]
    with h5py.File(tmp_path / "a.nc") as first, h5py.File(tmp_path / "b.nc") as second:
        for place in ((0, 0, 0), (10, 0, 34)):
            assert first["t"].id.read_direct_chunk(place) == second["t"].id.read_direct_chunk(place)
        assert first["packed"].shape == second["packed"].shape
    assert pyfilter.check(tmp_path / "b.nc") == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.nc", "b.nc"]


@pytest.mark.parametrize("engine", ENGINES)
def test_trees_groups_and_names(tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = counted(monkeypatch)
    inner = xr.Dataset({"w": (("z", "y", "x"), field(SHAPE))}).chunk({"z": 4})
    if not hasattr(xr, "DataTree"):
        pytest.skip("this xarray has no trees")
    tree = xr.DataTree.from_dict({"/": data()[["t"]].chunk({"time": 4}), "/a/b": inner})
    pyfilter.xarray.to_netcdf(tree, tmp_path / "a.nc", codecs=CODEC, engine=engine)
    assert len(calls) == 6
    with xr.open_datatree(tmp_path / "a.nc", engine="netcdf4") as found:
        for path, name in (("/", "t"), ("/a/b", "w")):
            expected = tree[path][name].values
            bound = 1e-4 * np.ptp(expected[np.isfinite(expected)])
            np.testing.assert_allclose(found[path][name].values, expected, rtol=0, atol=bound)
    assert pyfilter.check(tmp_path / "a.nc") == []


def test_a_file_may_be_saved_over_itself(tmp_path: Path) -> None:
    pyfilter.xarray.to_netcdf(data()[["t"]], tmp_path / "a.nc", codecs=CODEC)
    with xr.open_dataset(tmp_path / "a.nc", chunks={}) as opened:
        before = opened.t.values
        pyfilter.xarray.to_netcdf(opened * 2, tmp_path / "a.nc", codecs={"t": pyfilter.Lossless()})
    with xr.open_dataset(tmp_path / "a.nc") as found:
        np.testing.assert_array_equal(found.t.values, 2 * before)


def test_failures_leave_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.nc"
    pyfilter.xarray.to_netcdf(data(), path, codecs=CODECS)
    before = path.read_bytes()

    def fail(block: Any, block_info: Any = None) -> Any:
        if block_info and block_info[0]["chunk-location"][0] == 2:
            raise OSError("no such luck")
        return block

    lazy = da.from_array(field(SHAPE), chunks=(4, 30, 40)).map_blocks(fail, dtype="f4")
    bad = xr.Dataset({"t": (("time", "y", "x"), lazy)})
    codec = pyfilter.Lorenzo(absolute=1e-3)
    for name in ("a.nc", "new.nc"):
        with pytest.raises(OSError, match="no such luck"):
            pyfilter.xarray.to_netcdf(bad, tmp_path / name, codecs=codec)

    def full(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(blocks, "store", full)
    with pytest.raises(OSError, match="disk full"):
        pyfilter.xarray.to_netcdf(data().chunk(), path, codecs=CODECS)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["a.nc"]


def test_what_xarray_still_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = counted(monkeypatch)
    lazy = data()[["t"]].chunk({"time": 4})
    pyfilter.xarray.to_netcdf(lazy, tmp_path / "a.nc", codecs=CODEC, group="one", mode="a")
    pyfilter.xarray.to_netcdf(lazy, tmp_path / "b.nc", codecs=CODEC, compute=False).compute()
    lazy.to_netcdf(tmp_path / "c.nc")
    assert calls == []
    assert streaming._later.get() is None
    for name, place in (("a.nc", "one/t"), ("b.nc", "t")):
        with h5py.File(tmp_path / name) as file:
            assert pyfilter.verify(lazy.t.values, file[place]).ok
    with dask.config.set(scheduler="processes"), pytest.raises(TypeError, match="dask's scheduler 'processes'"):
        pyfilter.xarray.to_netcdf(data().chunk(), tmp_path / "d.nc", codecs=CODECS)
    assert not (tmp_path / "d.nc").exists()


def test_a_dataset_that_only_hdf5_can_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "encoding_of", lambda dataset: None)
    lazy = data()[["t"]].chunk({"time": 5})
    pyfilter.xarray.to_netcdf(lazy, tmp_path / "a.nc", codecs=CODEC, encoding={"t": ENCODING["t"]})
    with h5py.File(tmp_path / "a.nc") as file:
        values = np.where(np.isnan(data().t.values), np.float32(1e20), data().t.values)
        assert pyfilter.verify(values, file["t"], fill_value=np.float32(1e20)).ok


def test_progress(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    calls: list[tuple[int, int]] = []
    lazy = data()[["t"]].chunk({"time": 4})
    pyfilter.xarray.to_netcdf(lazy, tmp_path / "a.nc", codecs=CODEC, progress=lambda *numbers: calls.append(numbers))
    assert calls == [(1, 3), (2, 3), (3, 3)]
    pyfilter.xarray.to_netcdf(lazy, tmp_path / "a.nc", codecs=CODEC, progress=True)
    pyfilter.dask.to_hdf5(lazy.t.data, tmp_path / "a.h5", "t", pyfilter.Lossless(), progress=True)
    assert (tmp_path / "a.h5").exists()
