# SPDX-License-Identifier: BSD-3-Clause
"""xarray's engine "pyfilter": the same datasets as by engine netcdf4, lazily, in parallel, from files and addresses."""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import http_ranges
import numpy as np
import pytest

import pyfilter
from pyfilter._chunks import detached
from pyfilter.errors import FrameError, InvalidArgument

from .support import field

xr = pytest.importorskip("xarray")
netCDF4 = pytest.importorskip("netCDF4")

SHAPE = (12, 30, 40)
BOUND = pyfilter.Lorenzo(absolute=1e-3)


def simple(path: Path) -> None:
    """CF coordinates, a scale factor, a fill value, times in a compressed variable, strings and an other filter."""
    values = field(SHAPE)
    values[2, 3:9] = np.nan
    data = xr.Dataset(
        {
            "t": (("time", "y", "x"), values, {"units": "K", "grid_mapping": "crs"}),
            "packed": (("time", "y", "x"), field(SHAPE, seed=1)),
            "when": ("time", np.datetime64("2000-01-01", "ns") + np.arange(12)),
            "zlib": (("y", "x"), field(SHAPE[1:])),
            "crs": ((), 0),
            "name": ("time", [f"step {number}" for number in range(12)]),
        },
        {"time": np.arange(12), "y": np.linspace(0, 1, 30), "lon2": (("y", "x"), field(SHAPE[1:], "f8"))},
        {"title": "a test"},
    )
    packing = {"dtype": "i2", "scale_factor": 0.01, "add_offset": 1.0, "_FillValue": -999}
    pyfilter.xarray.to_netcdf(
        data,
        path,
        codecs={"t": BOUND, "packed": pyfilter.Lossless(), "when": pyfilter.Lossless(), "lon2": BOUND},
        encoding={
            "packed": {**packing, "chunksizes": (5, 30, 17)},
            "t": {"_FillValue": 1e20, "chunksizes": (4, 13, 40)},
            "zlib": {"zlib": True},
        },
        unlimited_dims=["time"],
    )


def odd(path: Path) -> None:
    """What netCDF-C stores otherwise than others: big-endian, a variable named as a dimension, missing records."""
    with netCDF4.Dataset(path, "w") as file:
        for name, size in (("time", None), ("y", 30), ("x", 40)):
            file.createDimension(name, size)
        for name, dtype in (("big", ">f4"), ("y", "f8"), ("short", "f4"), ("tiny", "i1")):
            order = "big" if dtype == ">f4" else "native"
            axes = ("time", "y", "x")
            made = file.createVariable(name, dtype, axes, chunksizes=(2, 30, 40), shuffle=False, endian=order)
            pyfilter.netcdf.compress(made, BOUND if dtype != "i1" else pyfilter.Lossless())
        file["big"][0:12] = field(SHAPE)
        file["y"][0:6] = field((6, 30, 40))
        file["short"][0:3] = field((3, 30, 40))
        file["tiny"][0:12] = (field(SHAPE) * 20).astype("i1")
        file.createVariable("never", "f4", ("y", "x"), fill_value=3.0)
        text = file.createVariable("text", str, ("y",))
        text[0] = "only one"


def progressive(path: Path) -> None:
    data = xr.Dataset({"u": (("y", "x"), field((96, 128))), "v": (("y", "x"), field((96, 128), seed=2))})
    pyfilter.xarray.to_netcdf(
        data,
        path,
        codecs={"u": pyfilter.Progressive(absolute=1e-6), "v": BOUND},
        encoding={"u": {"chunksizes": (32, 64)}, "v": {"chunksizes": (32, 64)}},
    )


def small_chunks(path: Path) -> None:
    data = xr.Dataset({"t": (("time", "y", "x"), field((30, 40, 50)))})
    chunks = {"t": {"chunksizes": (3, 8, 16)}}
    pyfilter.xarray.to_netcdf(data, path, codecs=pyfilter.Cuszp2(absolute=1e-3), encoding=chunks, engine="h5netcdf")


def classic(path: Path) -> None:
    data = xr.Dataset({"t": (("y", "x"), field((40, 50)))})
    pyfilter.xarray.to_netcdf(data, path, codecs=BOUND, format="NETCDF4_CLASSIC", engine="netcdf4")


def netcdf3(path: Path) -> None:
    xr.Dataset({"t": (("y", "x"), field((40, 50)))}).to_netcdf(path, format="NETCDF3_64BIT", engine="netcdf4")


def more_filters(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("sum", data=field(SHAPE), chunks=(4, 30, 40), fletcher32=True, **BOUND)
        file.create_dataset("raw", data=field(SHAPE))
        file.create_dataset("latest", data=field(SHAPE), chunks=(4, 30, 40), maxshape=(12, 30, None), **BOUND)


FILES = [simple, odd, progressive, small_chunks, classic, netcdf3, more_filters]


def assert_same(found: Any, expected: Any) -> None:
    """Names, dimensions, coordinates, attributes and values, and encodings, are the same."""
    assert list(found.variables) == list(expected.variables)
    assert found.encoding == expected.encoding
    for name, variable in expected.variables.items():
        assert repr(found.variables[name].encoding) == repr(variable.encoding)
        assert found.variables[name].dtype == variable.dtype
    xr.testing.assert_identical(found, expected)


@pytest.mark.parametrize("decoding", [{}, {"decode_cf": False}, {"mask_and_scale": False}, {"chunks": {}}], ids=str)
@pytest.mark.parametrize("write", FILES, ids=lambda write: write.__name__)
def test_the_same_as_by_netcdf4(tmp_path: Path, write: Callable[[Path], None], decoding: dict[str, Any]) -> None:
    if "chunks" in decoding:
        pytest.importorskip("dask")
    write(tmp_path / "a.nc")
    with (
        xr.open_dataset(tmp_path / "a.nc", engine="netcdf4", **decoding) as expected,
        xr.open_dataset(tmp_path / "a.nc", engine="pyfilter", **decoding) as found,
    ):
        assert_same(found, expected)


def counted(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list that grows with each part that is read past HDF5."""
    calls: list[Any] = []
    before = detached.Detached.read

    def read(self: Any, key: Any, source: Any) -> Any:
        calls.append(key)
        return before(self, key, source)

    monkeypatch.setattr(detached.Detached, "read", read)
    return calls


SELECTIONS: list[dict[str, Any]] = [
    {"time": 3},
    {"time": -1, "x": slice(None, None, 7)},
    {"time": slice(10, 2, -3), "y": slice(5, 6)},
    {"time": [0, 11], "y": [29, 0, 0, 14], "x": slice(30, 35)},
    {"time": [], "y": 3},
    {"time": slice(5, 5)},
    {"time": 1, "y": 2, "x": 3},
    {"time": xr.DataArray([0, 5, 5], dims="point"), "y": xr.DataArray([29, 1, 0], dims="point")},
    {"time": np.arange(12) % 3 == 0},
]


@pytest.mark.parametrize("selection", SELECTIONS, ids=str)
def test_selections(tmp_path: Path, selection: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    simple(tmp_path / "a.nc")
    calls = counted(monkeypatch)
    with (
        xr.open_dataset(tmp_path / "a.nc", engine="netcdf4") as expected,
        xr.open_dataset(tmp_path / "a.nc", engine="pyfilter") as found,
    ):
        for name in ("t", "packed"):
            xr.testing.assert_identical(found[name].isel(selection), expected[name].isel(selection))
    assert calls  # h5py and netCDF4 read nothing of it
    with xr.open_dataset(tmp_path / "a.nc", engine="pyfilter") as found, pytest.raises(IndexError, match="out of"):
        found.t.isel(time=12).load()


def test_chunks_that_a_list_skips_are_not_read(tmp_path: Path) -> None:
    values = field((40, 30))
    with h5py.File(tmp_path / "a.nc", "w") as file:
        pyfilter.create_dataset(file, "t", values, BOUND, chunks=(4, 30))
        info = file["t"].id.get_chunk_info_by_coord((8, 0))
    with (tmp_path / "a.nc").open("r+b") as raw:  # a chunk in the middle is damaged
        raw.seek(info.byte_offset)
        raw.write(b"\0" * 16)
    with xr.open_dataset(tmp_path / "a.nc", engine="pyfilter") as data:
        rows = data.t.isel(phony_dim_0=[1, 5, 30, 31]).values
        assert np.abs(rows - values[[1, 5, 30, 31]]).max() <= 1e-3
        assert np.abs(data.t[::13].values - values[::13]).max() <= 1e-3
        with pytest.raises(FrameError):
            data.t.isel(phony_dim_0=[1, 9]).load()


def groups(path: Path) -> None:
    outer = xr.Dataset({"t": (("time", "y", "x"), field(SHAPE))}, {"y": np.arange(30)}, {"title": "outer"})
    inner = xr.Dataset({"t": (("time", "y", "x"), field(SHAPE, seed=4))}, {"x": np.arange(40.0)})
    pyfilter.xarray.to_netcdf(outer, path, codecs=BOUND)
    pyfilter.xarray.to_netcdf(inner, path, codecs=BOUND, mode="a", group="a/b")


def test_groups(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    groups(path)
    for group in (None, "/", "a/b", "/a/b", "a"):
        with (
            xr.open_dataset(path, engine="netcdf4", group=group) as expected,
            xr.open_dataset(path, engine="pyfilter", group=group) as found,
        ):
            assert_same(found, expected)
    if not hasattr(xr, "open_groups"):
        pytest.skip("this xarray has no groups as trees")
    for group in (None, "a"):
        expected_groups = xr.open_groups(path, engine="netcdf4", group=group)
        found_groups = xr.open_groups(path, engine="pyfilter", group=group)
        assert list(found_groups) == list(expected_groups)
        for name, expected in expected_groups.items():
            assert_same(found_groups[name], expected)
            expected.close()
            found_groups[name].close()
    with xr.open_datatree(path, engine="netcdf4") as tree, xr.open_datatree(path, engine="pyfilter") as other:
        xr.testing.assert_identical(tree, other)


def test_threads_and_pickles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    simple(tmp_path / "a.nc")
    calls = counted(monkeypatch)
    with xr.open_dataset(tmp_path / "a.nc", engine="netcdf4") as expected:
        expected.load()
    data = xr.open_dataset(tmp_path / "a.nc", engine="pyfilter", cache=False)
    calls.clear()
    wrong: list[Any] = []
    threads_before = pyfilter.config().threads

    def read() -> None:
        for step in range(12):
            if not np.array_equal(data.t[step].values, expected.t[step].values, equal_nan=True):
                wrong.append(step)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(calls) == 48
    data.t[0].load()
    assert pyfilter.config().threads == threads_before
    copied = pickle.loads(pickle.dumps(data))
    data.close()
    xr.testing.assert_identical(copied, expected)
    copied.close()


def test_dask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dask = pytest.importorskip("dask")
    simple(tmp_path / "a.nc")
    calls = counted(monkeypatch)
    with (
        xr.open_mfdataset(str(tmp_path / "a.nc"), engine="pyfilter", chunks={}) as data,
        xr.open_dataset(tmp_path / "a.nc", engine="netcdf4") as expected,
    ):
        with dask.config.set(scheduler="threads"):
            xr.testing.assert_identical(data.load(), expected)
        assert len(calls) >= 3
        later = xr.open_dataset(tmp_path / "a.nc", engine="pyfilter", chunks={})
        with dask.config.set(scheduler="processes"):
            assert np.array_equal(later.t.values, expected.t.values, equal_nan=True)
        later.close()


def descriptors(path: Path) -> int:
    """Return how often this process has a file open."""
    return sum(
        os.path.exists(link) and os.path.samefile(link, path)  # noqa: PTH110, PTH121
        for link in (f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd"))  # noqa: PTH208
    )


def test_files_are_closed_and_changes_are_seen(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    simple(path)
    data = xr.open_dataset(path, engine="pyfilter", cache=False)
    first = data.t.values
    data.close()
    assert descriptors(path) == 0
    data = xr.open_dataset(path, engine="pyfilter", cache=False)
    path.rename(tmp_path / "old.nc")
    xr.Dataset({"t": (("time", "y", "x"), field(SHAPE, seed=9))}).to_netcdf(path, engine="netcdf4")
    assert np.array_equal(data.t.values, first, equal_nan=True)  # of the file that was opened, as by netCDF4
    data.close()
    with xr.open_dataset(path, engine="pyfilter") as data:
        assert np.array_equal(data.t.values, field(SHAPE, seed=9))
    with pytest.raises(FileNotFoundError):
        xr.open_dataset(tmp_path / "none.nc", engine="pyfilter")


def test_tolerance(tmp_path: Path) -> None:
    progressive(tmp_path / "a.nc")
    exact = field((96, 128))
    with (
        xr.open_dataset(tmp_path / "a.nc", engine="pyfilter", tolerance=0.1) as coarse,
        xr.open_dataset(tmp_path / "a.nc", engine="pyfilter", tolerance={"u": 1e-3}) as fine,
        xr.open_dataset(tmp_path / "a.nc", engine="netcdf4") as whole,
    ):
        errors = [float(np.abs(data.u.values - exact).max()) for data in (coarse, fine, whole)]
        assert errors[2] <= 1e-6 < errors[1] <= 1e-3 < errors[0] <= 0.1
        xr.testing.assert_identical(coarse.v, whole.v)
        for part in ({"y": 7}, {"y": slice(90, 3, -5), "x": [5, 2, 2]}, {"x": [100, 3]}):
            assert np.abs(fine.u.isel(part).values - whole.u.isel(part).values).max() <= 1e-3 + 1e-6
    for wrong in (-1, "much", float("nan"), {"u": None}):
        with pytest.raises(InvalidArgument, match="tolerance must be a number >= 0"):
            xr.open_dataset(tmp_path / "a.nc", engine="pyfilter", tolerance=wrong)
    with pytest.raises(InvalidArgument, match=r"given for 'v', which is not .* there are 'u'"):
        xr.open_dataset(tmp_path / "a.nc", engine="pyfilter", tolerance={"v": 1.0})
    assert descriptors(tmp_path / "a.nc") == 0


def test_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fsspec")
    pytest.importorskip("aiohttp")
    values = field((64, 128, 128))
    data = xr.Dataset({"t": (("time", "y", "x"), values), "u": (("time", "y", "x"), values)})
    chunks = {name: {"chunksizes": (8, 64, 64)} for name in ("t", "u")}
    codecs = {"t": pyfilter.Lossless(), "u": pyfilter.Progressive(absolute=1e-6)}
    pyfilter.xarray.to_netcdf(data, tmp_path / "a.nc", codecs=codecs, encoding=chunks)
    with h5py.File(tmp_path / "a.nc") as file:
        info = file["t"].id.get_chunk_info_by_coord((8, 64, 0))
    calls = counted(monkeypatch)
    with http_ranges.serving(tmp_path / "a.nc", "a.nc") as (url, sent):
        with (
            xr.open_dataset(tmp_path / "a.nc", engine="h5netcdf") as expected,
            xr.open_dataset(url, engine="pyfilter", cache=False) as found,
        ):
            part = {"time": 9, "y": slice(70, 80), "x": slice(10, 60, 7)}
            found.t.isel(time=0, y=0, x=0).load()  # the locations of chunks
            del sent[:]
            assert np.array_equal(found.t.isel(part).values, values[9, 70:80, 10:60:7])
            assert sent == [(info.byte_offset, info.size)]
            again = pickle.loads(pickle.dumps(found))
            xr.testing.assert_identical(again.t, expected.t)
            xr.testing.assert_identical(found, expected)
            assert calls
        whole = (tmp_path / "a.nc").stat().st_size
        with xr.open_dataset(url, engine="pyfilter", tolerance=0.1) as coarse:
            del sent[:]
            assert 1e-6 < np.abs(coarse.u.values - values).max() <= 0.1
            assert sum(size for _, size in sent) < whole / 8
    with (
        http_ranges.serving(Path(__file__), "a.nc") as (url, _),
        pytest.raises(InvalidArgument, match="is no netCDF-4"),
    ):
        xr.open_dataset(url, engine="pyfilter")


def test_more_than_a_batch_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fsspec")
    monkeypatch.setattr(detached, "_FETCHED_BYTES", 5000)
    simple(tmp_path / "a.nc")
    with (
        xr.open_dataset(tmp_path / "a.nc", engine="h5netcdf") as expected,
        xr.open_dataset(f"file://{tmp_path / 'a.nc'}", engine="pyfilter", storage_options={}) as found,
    ):
        xr.testing.assert_identical(found, expected)
    with pytest.raises(InvalidArgument, match="storage_options are for addresses"):
        xr.open_dataset(tmp_path / "a.nc", engine="pyfilter", storage_options={"anon": True})


def test_devices(tmp_path: Path) -> None:
    progressive(tmp_path / "a.nc")
    with xr.open_dataset(tmp_path / "a.nc", engine="pyfilter", device="cpu") as data:
        assert isinstance(data.v.values, np.ndarray)
    with pytest.raises(InvalidArgument, match="device must be"):
        xr.open_dataset(tmp_path / "a.nc", engine="pyfilter", device="gpu")
