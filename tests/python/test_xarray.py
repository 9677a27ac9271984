# SPDX-License-Identifier: BSD-3-Clause
"""xarray: encoding for h5netcdf, to_netcdf by both engines, and datasets saved again."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import pyfilter
from pyfilter import Cuszp2, HierarchicalDelta, Lossless

from .support import field

xr = pytest.importorskip("xarray")
h5netcdf = pytest.importorskip("h5netcdf")
pytest.importorskip("netCDF4")

ENGINES = ["h5netcdf", "netcdf4"]
FORMATS = ["NETCDF4", "NETCDF4_CLASSIC"]
BOUND = Cuszp2(absolute=1e-3)


@pytest.fixture
def dataset() -> Any:
    values = field((12, 30, 40))
    values[:, :5] = np.nan
    return xr.Dataset(
        {
            "t": (("time", "lat", "lon"), values, {"units": "K"}),
            "p": (("time", "lat", "lon"), field((12, 30, 40), "f8", seed=1)),
            "count": (("lat",), np.arange(30, dtype="i4")),
            "scalar": ((), 1.5),
        },
        coords={"time": np.arange(12.0), "lat": np.linspace(-90, 90, 30), "lon": np.linspace(0, 360, 40)},
        attrs={"title": "a test"},
    )


def codecs(path: Path) -> dict[str, pyfilter.Codec]:
    """Return the codecs of a file's variables, for those that have one."""
    with h5py.File(path) as file:
        found = {name: pyfilter.codec_of(item) for name, item in file.items() if isinstance(item, h5py.Dataset)}
    return {name: codec for name, codec in found.items() if isinstance(codec, pyfilter.Codec)}


@pytest.fixture(params=list(itertools.product(ENGINES, FORMATS)), ids=" ".join)
def saved(request: pytest.FixtureRequest, dataset: Any, tmp_path: Path) -> tuple[Path, str]:
    engine, model = request.param
    if request.param == ("h5netcdf", "NETCDF4_CLASSIC") and not hasattr(h5netcdf.File, "data_model"):
        pytest.skip("this h5netcdf writes no NETCDF4_CLASSIC files")
    path = tmp_path / "saved.nc"
    pyfilter.xarray.to_netcdf(dataset, path, engine=engine, format=model, codecs={"t": BOUND})
    return path, engine


@pytest.mark.parametrize("reader", ENGINES)
def test_to_netcdf_by_both_engines(saved: tuple[Path, str], dataset: Any, reader: str) -> None:
    path, _ = saved
    assert codecs(path) == {"t": BOUND}
    assert pyfilter.check(path) == []
    with xr.open_dataset(path, engine=reader) as found:
        assert found.attrs["title"] == "a test"
        assert found.t.attrs["units"] == "K"
        assert pyfilter.verify(dataset.t.values, found.t.values, BOUND).ok
        for name in ("p", "count", "scalar", "time", "lat", "lon"):
            np.testing.assert_array_equal(found[name].values, dataset[name].values)


@pytest.mark.parametrize("reader", ENGINES)
@pytest.mark.parametrize("writer", ENGINES)
def test_a_dataset_saved_again_keeps_its_compression(
    saved: tuple[Path, str], tmp_path: Path, reader: str, writer: str
) -> None:
    path, _ = saved
    with xr.open_dataset(path, engine=reader) as found:
        pyfilter.xarray.to_netcdf(found, tmp_path / "again.nc", engine=writer)
        assert codecs(tmp_path / "again.nc") == {"t": BOUND}
        with xr.open_dataset(tmp_path / "again.nc", engine=reader) as again:
            assert pyfilter.verify(found.t.values, again.t.values, BOUND).ok
        changed = found.isel(time=slice(0, 5)) * 2
        pyfilter.xarray.to_netcdf(changed, tmp_path / "changed.nc", engine=writer, codecs={"p": Lossless()})
        assert codecs(tmp_path / "changed.nc") == {"p": Lossless()}  # arithmetic forgets where values came from
        part = found.isel(time=slice(0, 5))
        pyfilter.xarray.to_netcdf(part, tmp_path / "part.nc", engine=writer, codecs={"p": Lossless()})
        assert codecs(tmp_path / "part.nc") == {"t": BOUND, "p": Lossless()}
        pyfilter.xarray.to_netcdf(found, tmp_path / "plain.nc", engine=writer, codecs={"t": None})
        assert codecs(tmp_path / "plain.nc") == {}


@pytest.mark.parametrize("codec", [BOUND, HierarchicalDelta(absolute=1e-3, predictor="lorenzo2d")], ids=repr)
def test_one_codec_for_all_data_variables(dataset: Any, tmp_path: Path, codec: pyfilter.Codec) -> None:
    for engine in ENGINES:
        pyfilter.xarray.to_netcdf(dataset, tmp_path / f"{engine}.nc", engine=engine, codecs=codec)
        assert codecs(tmp_path / f"{engine}.nc") == {"t": codec, "p": codec}
        with xr.open_dataset(tmp_path / f"{engine}.nc") as found:
            assert pyfilter.verify(dataset.t.values, found.t.values, codec).ok
            assert pyfilter.verify(dataset.p.values, found.p.values, codec).ok


@pytest.mark.parametrize("engine", ENGINES)
def test_a_relative_bound_is_of_the_whole_variable(dataset: Any, tmp_path: Path, engine: str) -> None:
    codec = Cuszp2(relative=1e-3, mode="plain")
    pyfilter.xarray.to_netcdf(dataset, tmp_path / "a.nc", engine=engine, codecs={"t": codec})
    spread = float(np.nanmax(dataset.t)) - float(np.nanmin(dataset.t))
    found = codecs(tmp_path / "a.nc")["t"]
    assert isinstance(found, Cuszp2)
    assert found.mode == "plain"
    assert found.absolute == pytest.approx(spread * 1e-3, rel=1e-6)
    with xr.open_dataset(tmp_path / "a.nc") as again:
        assert pyfilter.verify(dataset.t.values, again.t.values, codec).ok


def test_encoding_for_h5netcdf(dataset: Any, tmp_path: Path) -> None:
    encoding = pyfilter.xarray.encoding(dataset, t=BOUND, p=Lossless())
    assert set(encoding) == {"t", "p"}
    assert encoding["t"]["compression"] == pyfilter.FILTER_ID
    assert encoding["t"]["chunksizes"] == (12, 30, 40)
    dataset.to_netcdf(tmp_path / "a.nc", engine="h5netcdf", encoding=encoding)
    assert codecs(tmp_path / "a.nc") == {"t": BOUND, "p": Lossless()}
    everything = pyfilter.xarray.encoding(dataset, BOUND, p=None)
    assert set(everything) == {"t"}


def test_a_codec_as_xarray_itself_takes_it(dataset: Any, tmp_path: Path) -> None:
    dataset.to_netcdf(tmp_path / "a.nc", engine="h5netcdf", encoding={"t": dict(BOUND)})
    assert codecs(tmp_path / "a.nc") == {"t": BOUND}


@pytest.mark.parametrize("engine", ENGINES)
def test_encoding_of_the_values_is_kept(dataset: Any, tmp_path: Path, engine: str) -> None:
    dataset.t.encoding = {"_FillValue": np.float32(-999), "dtype": np.dtype("f4"), "chunksizes": (4, 30, 40)}
    dataset.p.encoding = {"dtype": "i2", "scale_factor": 1e-3, "add_offset": 0.0, "_FillValue": -32768}
    dataset.encoding["unlimited_dims"] = {"time"}
    pyfilter.xarray.to_netcdf(dataset, tmp_path / "a.nc", engine=engine, codecs={"t": BOUND, "p": Lossless()})
    with h5py.File(tmp_path / "a.nc") as file:
        assert (file["t"].chunks, file["t"].fillvalue, file["t"].maxshape) == ((4, 30, 40), -999, (None, 30, 40))
        assert (file["p"].dtype, file["p"].attrs["scale_factor"], file["p"].fillvalue) == (np.dtype("i2"), 1e-3, -32768)
    with xr.open_dataset(tmp_path / "a.nc") as found:
        assert pyfilter.verify(dataset.t.values, found.t.values, BOUND).ok
        np.testing.assert_allclose(found.p.values, dataset.p.values, atol=6e-4)


@pytest.mark.parametrize("engine", ENGINES)
def test_history(dataset: Any, tmp_path: Path, engine: str) -> None:
    dataset.attrs["history"] = "older"
    pyfilter.xarray.to_netcdf(dataset, tmp_path / "a.nc", engine=engine, codecs={"t": BOUND, "p": None}, history=True)
    with xr.open_dataset(tmp_path / "a.nc") as found:
        first, second = found.attrs["history"].split("\n")
    assert first.endswith(": t Cuszp2(absolute=0.001)")
    assert second == dataset.attrs["history"] == "older"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_users_own_encoding_goes_first(dataset: Any, tmp_path: Path, engine: str) -> None:
    pyfilter.xarray.to_netcdf(
        dataset, tmp_path / "a.nc", engine=engine, codecs={"t": BOUND},
        encoding={"t": {"chunksizes": (6, 10, 40), "_FillValue": -1.0}, "count": {"dtype": "i8"}},
    )  # fmt: skip
    with h5py.File(tmp_path / "a.nc") as file:
        assert (file["t"].chunks, file["t"].fillvalue) == ((6, 10, 40), -1.0)
        assert file["count"].dtype == "i8"


@pytest.mark.parametrize("engine", ENGINES)
def test_groups(dataset: Any, tmp_path: Path, engine: str) -> None:
    pyfilter.xarray.to_netcdf(dataset, tmp_path / "a.nc", engine=engine, codecs={"t": BOUND}, group="one")
    pyfilter.xarray.to_netcdf(
        dataset, tmp_path / "a.nc", engine=engine, codecs={"t": Lossless(), "p": BOUND}, group="two", mode="a"
    )
    with h5py.File(tmp_path / "a.nc") as file:
        assert pyfilter.codec_of(file["one/t"]) == pyfilter.codec_of(file["two/p"]) == BOUND
        assert pyfilter.codec_of(file["two/t"]) == Lossless()
    with xr.open_dataset(tmp_path / "a.nc", group="one", engine=engine) as found:
        # xarray does not keep the group, and both groups have a compressed t of one shape
        with pytest.warns(UserWarning, match="several variables"):
            pyfilter.xarray.to_netcdf(found, tmp_path / "b.nc", engine=engine)
        assert codecs(tmp_path / "b.nc") == {}
        pyfilter.xarray.to_netcdf(found, tmp_path / "c.nc", engine=engine, codecs={"t": BOUND})
        assert codecs(tmp_path / "c.nc") == {"t": BOUND}


def test_datasets_of_dask(tmp_path: Path, dataset: Any) -> None:
    pytest.importorskip("dask")
    lazy = dataset.chunk({"time": 4})
    for engine in ENGINES:
        path = tmp_path / f"{engine}.nc"
        pyfilter.xarray.to_netcdf(lazy, path, engine=engine, codecs={"t": Cuszp2(relative=1e-3)})
        with h5py.File(path) as file:
            assert file["t"].chunks == (4, 30, 40)
        with xr.open_dataset(path) as found:
            assert pyfilter.verify(dataset.t.values, found.t.values, Cuszp2(relative=1e-3)).ok


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"codecs": {"nothing": BOUND}}, ValueError, "'nothing' is not a variable"),
        ({"codecs": {"count": BOUND}}, TypeError, "int32"),
        ({"codecs": {"scalar": BOUND}}, TypeError, "scalar"),
        ({"codecs": {"t": 1e-3}}, TypeError, "codec"),
        ({"engine": "scipy"}, ValueError, "engine must be one of 'h5netcdf', 'netcdf4'"),
    ],
    ids=str,
)
@pytest.mark.parametrize("engine", ENGINES)
def test_bad_arguments_are_refused(
    dataset: Any, tmp_path: Path, engine: str, arguments: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        pyfilter.xarray.to_netcdf(dataset, tmp_path / "a.nc", **{"engine": engine, **arguments})
    assert not (tmp_path / "a.nc").exists()


def test_encoding_for_netcdf4_points_to_to_netcdf(dataset: Any) -> None:
    with pytest.raises(TypeError, match=r"pyfilter\.xarray\.to_netcdf"):
        pyfilter.xarray.encoding(dataset, t=BOUND, engine="netcdf4")
    with pytest.raises(TypeError, match=r"xarray\.Dataset"):
        pyfilter.xarray.encoding(dataset.t, BOUND)
