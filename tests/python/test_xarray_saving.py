# SPDX-License-Identifier: BSD-3-Clause
"""pyfilter.xarray.to_netcdf: what xarray saves and returns, types that it encodes, compression kept or spoken of."""

from __future__ import annotations

import io
import itertools
from pathlib import Path
from typing import Any

import dask
import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr

import pyfilter
from pyfilter import Cuszp2, HierarchicalDelta, Lossless

from .support import field, run_script

ENGINES = ["h5netcdf", "netcdf4"]
BOUND = Cuszp2(absolute=1e-3)


@pytest.fixture
def dataset() -> Any:
    days = np.datetime64("2000-01-01", "ns") + np.arange(12) * np.timedelta64(6, "h")
    return xr.Dataset(
        {
            "t": (("time", "lat", "lon"), field((12, 30, 40))),
            "when": (("time", "lat"), np.broadcast_to(days[:, None], (12, 30)).copy()),
            "took": (("time", "lat"), np.arange(360).reshape(12, 30) * np.timedelta64(1, "m").astype("m8[ns]")),
            "sea": (("lat", "lon"), np.arange(1200).reshape(30, 40) % 7 == 0),
            "name": (("lat",), np.array([f"n{index}" for index in range(30)])),
        },
        coords={"time": days, "lat": np.linspace(-90, 90, 30)},
    )


def codecs(path: Path, group: str = "/") -> dict[str, pyfilter.Codec]:
    """Return the codecs of the variables of a group, for those that have one."""
    with h5py.File(path) as file:
        items = {name: item for name, item in file[group].items() if isinstance(item, h5py.Dataset)}
        found = {name: pyfilter.codec_of(item) for name, item in items.items()}
    return {name: codec for name, codec in found.items() if isinstance(codec, pyfilter.Codec)}


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
@pytest.mark.parametrize("engine", ENGINES)
def test_compute_false_returns_a_delayed(dataset: Any, tmp_path: Path, engine: str, scheduler: str) -> None:
    lazy = dataset.chunk({"time": 4})
    with dask.config.set(scheduler=scheduler):
        later = pyfilter.xarray.to_netcdf(
            lazy, tmp_path / "a.nc", engine=engine, codecs={"t": Cuszp2(relative=1e-4)}, compute=False
        )
        assert dask.is_dask_collection(later)
        later.compute()
    assert set(codecs(tmp_path / "a.nc")) == {"t"}
    assert pyfilter.check(tmp_path / "a.nc") == []
    with xr.open_dataset(tmp_path / "a.nc") as found:
        assert pyfilter.verify(dataset.t.values, found.t.values, Cuszp2(relative=1e-4)).ok
        np.testing.assert_array_equal(found.sea, dataset.sea)


@pytest.mark.parametrize("codec", [Cuszp2(relative=1e-4), HierarchicalDelta(psnr=70)], ids=repr)
@pytest.mark.parametrize("engine", ENGINES)
def test_blocks_that_end_inside_of_chunks(dataset: Any, tmp_path: Path, engine: str, codec: pyfilter.Codec) -> None:
    """The bound is of the whole variable, though one block has a range a thousand times smaller."""
    dataset["t"][:5] /= 1000
    lazy = dataset[["t"]].chunk({"time": 3, "lat": 7, "lon": 40})
    pyfilter.xarray.to_netcdf(
        lazy, tmp_path / "a.nc", engine=engine, codecs={"t": codec}, encoding={"t": {"chunksizes": (4, 10, 40)}}
    )
    spread = float(np.ptp(dataset.t.values))
    mode, absolute = codecs(tmp_path / "a.nc")["t"].bound
    assert mode == "absolute"
    assert absolute == pytest.approx(spread * float(codec.range_fraction or 0), rel=1e-6)
    with xr.open_dataset(tmp_path / "a.nc") as found:
        assert found.t.encoding["chunksizes"] == (4, 10, 40)
        assert pyfilter.verify(dataset.t.values, found.t.values, absolute).ok


def test_the_range_of_a_dask_array_is_computed_at_once(dataset: Any, tmp_path: Path) -> None:
    calls = []

    def counted(block: Any) -> Any:
        calls.append(block.shape)
        return block

    lazy = dataset[["t"]].chunk({"time": 4})
    lazy["t"] = lazy.t.copy(data=lazy.t.data.map_blocks(counted, meta=np.empty((0, 0, 0), "f4")))
    later = pyfilter.xarray.to_netcdf(lazy, tmp_path / "a.nc", codecs={"t": Cuszp2(relative=1e-4)}, compute=False)
    assert len(calls) == 3  # one pass for both ends of the range
    later.compute()
    assert len(calls) == 6


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("chunked", [False, True])
def test_times_and_booleans_are_kept_bit_for_bit(dataset: Any, tmp_path: Path, engine: str, chunked: bool) -> None:
    named = {name: Lossless() for name in ("when", "took", "sea", "time")}
    dataset["when"][3, :5] = np.datetime64("NaT", "ns")
    data = dataset.chunk({"lat": 10}) if chunked else dataset
    with dask.config.set(scheduler="synchronous"):
        pyfilter.xarray.to_netcdf(data, tmp_path / "a.nc", engine=engine, codecs=named)
    assert codecs(tmp_path / "a.nc") == named
    with xr.open_dataset(tmp_path / "a.nc", decode_timedelta=True) as found:
        for name in dataset.variables:
            np.testing.assert_array_equal(found[name].values, dataset[name].values)
        assert found.sea.dtype == bool
        pyfilter.xarray.to_netcdf(found, tmp_path / "b.nc", engine=engine)
    assert codecs(tmp_path / "b.nc") == named


def test_times_and_booleans_by_encoding(dataset: Any, tmp_path: Path) -> None:
    encoding = pyfilter.xarray.encoding(dataset, Lossless(), time=Lossless())
    assert set(encoding) == {"t", "when", "took", "sea", "time"}  # all data variables but the strings
    dataset.to_netcdf(tmp_path / "a.nc", engine="h5netcdf", encoding=encoding)
    assert codecs(tmp_path / "a.nc") == dict.fromkeys(encoding, Lossless())
    with xr.open_dataset(tmp_path / "a.nc", decode_timedelta=True) as found:
        for name in encoding:
            np.testing.assert_array_equal(found[name].values, dataset[name].values)


@pytest.mark.parametrize("name", ["when", "took", "sea"])
def test_a_bound_for_times_and_booleans_is_refused(dataset: Any, tmp_path: Path, name: str) -> None:
    with pytest.raises(TypeError, match=rf"variable '{name}' holds .* is stored as int.*Use Lossless\(\)"):
        pyfilter.xarray.to_netcdf(dataset, tmp_path / "a.nc", codecs={name: HierarchicalDelta(absolute=1)})
    dataset["when"].encoding["dtype"] = "f8"  # then it would be a float to the filter
    assert set(pyfilter.xarray.encoding(dataset, HierarchicalDelta(absolute=1))) == {"t"}
    with pytest.raises(TypeError, match="variable 'name' is stored as"):
        pyfilter.xarray.to_netcdf(dataset, tmp_path / "a.nc", codecs={"name": Lossless()})
    assert not (tmp_path / "a.nc").exists()


@pytest.mark.parametrize(("reader", "writer"), list(itertools.product(ENGINES, ENGINES)))
def test_saved_again_by_any_engine(dataset: Any, tmp_path: Path, reader: str, writer: str) -> None:
    """Ours keeps the codec; xarray's own says that it does not, or refuses."""
    pyfilter.xarray.to_netcdf(dataset, tmp_path / "a.nc", codecs={"t": BOUND, "sea": Lossless()})
    with xr.open_dataset(tmp_path / "a.nc", engine=reader) as found:
        pyfilter.xarray.to_netcdf(found, tmp_path / "kept.nc", engine=writer)
        assert codecs(tmp_path / "kept.nc") == {"t": BOUND, "sea": Lossless()}
        if reader == "h5netcdf":
            with pytest.raises(ValueError, match=r"(?i)compression"):
                found.to_netcdf(tmp_path / "plain.nc", engine=writer)
            return
        with pytest.warns(UserWarning, match="which xarray does not keep") as said:
            found.to_netcdf(tmp_path / "plain.nc", engine=writer)
        assert [str(item.message)[:12] for item in said] == ["variable 't'", "variable 'se"]
        assert "Cuszp2(absolute=0.001)" in str(said[0].message)
        assert "pyfilter.xarray.to_netcdf" in str(said[0].message)
        assert said[0].filename == __file__
        assert codecs(tmp_path / "plain.nc") == {}
        # with a word of the user's there is nothing to say
        pyfilter.xarray.to_netcdf(found, tmp_path / "off.nc", engine=writer, codecs={"t": None, "sea": None})
        assert codecs(tmp_path / "off.nc") == {}
        found[["t"]].to_netcdf(tmp_path / "zlib.nc", engine=writer, encoding={"t": {"zlib": True}})
        found[["t"]].to_netcdf(tmp_path / "bare.nc", engine=writer, encoding={"t": {}})
        (found[["t"]] * 2).to_netcdf(tmp_path / "other.nc", engine=writer)


@pytest.mark.parametrize(
    "imports",
    [
        "import pyfilter; import xarray as xr",
        "import xarray as xr; import pyfilter",
        "import xarray as xr; xr.Dataset().to_netcdf(); import pyfilter",
    ],
)
def test_any_order_of_imports(tmp_path: Path, imports: str) -> None:
    """What is lost is said in programs that never name pyfilter.xarray."""
    data = xr.Dataset({"t": (("y", "x"), field((40, 50)))})
    pyfilter.xarray.to_netcdf(data, tmp_path / "a.nc", codecs={"t": BOUND})
    script = f"""
{imports}
import sys
with xr.open_dataset(sys.argv[1], engine="netcdf4") as data:
    try:
        data.to_netcdf(sys.argv[1] + ".nc")
    except UserWarning as warning:  # warnings are errors here
        print(warning)
"""
    assert "'t' was compressed by Cuszp2(absolute=0.001)" in run_script(script, tmp_path / "a.nc").stdout


@pytest.mark.parametrize("engine", ENGINES)
def test_a_file_that_is_gone(tmp_path: Path, engine: str) -> None:
    data = xr.Dataset({"t": (("y", "x"), field((40, 50)))})
    pyfilter.xarray.to_netcdf(data, tmp_path / "a.nc", codecs={"t": BOUND})
    with xr.open_dataset(tmp_path / "a.nc", engine="h5netcdf") as found:
        found.load()
    (tmp_path / "a.nc").unlink()
    with pytest.warns(UserWarning, match="or the file is gone: it is saved uncompressed"):
        pyfilter.xarray.to_netcdf(found, tmp_path / "b.nc", engine=engine)
    assert codecs(tmp_path / "b.nc") == {}


@pytest.mark.parametrize("engine", ENGINES)
def test_compression_of_others_that_is_lost_is_said(tmp_path: Path, engine: str) -> None:
    hdf5plugin = pytest.importorskip("hdf5plugin")
    with h5py.File(tmp_path / "a.nc", "w") as file:
        file.create_dataset("t", data=field((40, 50)), chunks=(20, 50), **hdf5plugin.Zstd())
        for axis, name in enumerate(("y", "x")):
            file[name] = np.arange((40, 50)[axis])
            file[name].make_scale(name)
            file["t"].dims[axis].attach_scale(file[name])
    with xr.open_dataset(tmp_path / "a.nc", engine="h5netcdf") as found:
        with pytest.warns(UserWarning, match="'t' was compressed in .* by a filter that xarray calls 'unknown'"):
            pyfilter.xarray.to_netcdf(found, tmp_path / "b.nc", engine=engine)
        pyfilter.xarray.to_netcdf(found, tmp_path / "c.nc", engine=engine, codecs={"t": None})
        pyfilter.xarray.to_netcdf(found, tmp_path / "d.nc", engine=engine, encoding={"t": {"zlib": True}})
        assert codecs(tmp_path / "d.nc") == {}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_codec_and_another_compression(dataset: Any, tmp_path: Path, engine: str) -> None:
    with pytest.raises(ValueError, match=r"'t' has Cuszp2.* in codecs= and zlib=True in encoding=.*leave"):
        pyfilter.xarray.to_netcdf(
            dataset, tmp_path / "a.nc", engine=engine, codecs={"t": BOUND}, encoding={"t": {"zlib": True}}
        )
    pyfilter.xarray.to_netcdf(dataset, tmp_path / "a.nc", engine=engine, codecs=BOUND, encoding={"t": {"zlib": True}})
    with h5py.File(tmp_path / "a.nc") as file:
        assert file["t"].compression == "gzip"


@pytest.mark.parametrize("engine", ENGINES)
def test_values_for_a_variable_that_is_there(dataset: Any, tmp_path: Path, engine: str) -> None:
    pyfilter.xarray.to_netcdf(dataset[["t"]], tmp_path / "a.nc", engine=engine, codecs={"t": BOUND})
    pyfilter.xarray.to_netcdf(dataset[["t"]], tmp_path / "a.nc", engine=engine, codecs={"t": BOUND}, mode="a")
    with pytest.warns(UserWarning, match=r"'t' exists .* by Cuszp2\(absolute=0.001\), which stays: Lossless\(\)"):
        pyfilter.xarray.to_netcdf(dataset[["t"]], tmp_path / "a.nc", engine=engine, codecs={"t": Lossless()}, mode="a")
    assert codecs(tmp_path / "a.nc") == {"t": BOUND}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["t", None, "lat"])
def test_data_arrays(dataset: Any, tmp_path: Path, engine: str, name: str | None) -> None:
    array = dataset.t.rename(name)
    pyfilter.xarray.to_netcdf(array, tmp_path / "a.nc", engine=engine, codecs=BOUND)
    array.to_netcdf(tmp_path / "b.nc", engine=engine)
    with xr.open_dataarray(tmp_path / "a.nc") as found, xr.open_dataarray(tmp_path / "b.nc") as expected:
        assert found.name == expected.name == name
        assert pyfilter.verify(array.values, found.values, BOUND).ok
        pyfilter.xarray.to_netcdf(found, tmp_path / "c.nc", engine=engine)
    assert list(codecs(tmp_path / "c.nc").values()) == [BOUND]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("chunked", [False, True])
def test_the_bytes_of_a_file(dataset: Any, engine: str, chunked: bool) -> None:
    data = dataset.chunk({"time": 4}) if chunked else dataset
    raw = pyfilter.xarray.to_netcdf(data, engine=engine, codecs={"t": BOUND})
    assert isinstance(raw, memoryview)
    with h5py.File(io.BytesIO(raw)) as file:
        assert pyfilter.codec_of(file["t"]) == BOUND
        assert pyfilter.verify(dataset.t.values, file["t"], BOUND).ok


def test_a_file_object(dataset: Any) -> None:
    target = io.BytesIO()
    pyfilter.xarray.to_netcdf(dataset, target, codecs={"t": BOUND})
    with h5py.File(target) as file:
        assert pyfilter.codec_of(file["t"]) == BOUND


@pytest.fixture
def tree(dataset: Any) -> Any:
    one = dataset[["t"]]
    return xr.DataTree.from_dict({"/": one, "/a": one * 2, "/a/b": dataset[["sea"]].drop_vars("lat")})


@pytest.mark.parametrize("engine", ENGINES)
def test_trees(tree: Any, tmp_path: Path, engine: str) -> None:
    chosen = {"/": {"t": BOUND}, "/a": Cuszp2(absolute=1e-2), "/a/b": {"sea": Lossless()}}
    given = {"/a": {"t": {"chunksizes": (6, 30, 40)}}}
    path = tmp_path / "a.nc"
    assert pyfilter.xarray.to_netcdf(tree, path, engine=engine, codecs=chosen, encoding=given, history=True) is None
    assert "history" not in tree.attrs
    assert codecs(path) == {"t": BOUND}
    assert codecs(path, "a") == {"t": Cuszp2(absolute=1e-2)}
    assert codecs(path, "a/b") == {"sea": Lossless()}
    with xr.open_datatree(path, engine=engine) as found:
        assert "/a/t Cuszp2(absolute=0.01); /a/b/sea Lossless()" in found.attrs["history"]
        assert found["/a/t"].encoding["chunksizes"] == (6, 30, 40)
        assert pyfilter.verify(tree["/a/t"].values, found["/a/t"].values, Cuszp2(absolute=1e-2)).ok
        np.testing.assert_array_equal(found["/a/b/sea"], tree["/a/b/sea"])
        assert "time" not in found["/a"].to_dataset(inherit=False).variables
        pyfilter.xarray.to_netcdf(found, tmp_path / "b.nc", engine=engine)
    for group in ("/", "a", "a/b"):  # each group its own, though two have a t of one shape
        assert codecs(tmp_path / "b.nc", group) == codecs(path, group)
    later = pyfilter.xarray.to_netcdf(
        tree.chunk({"time": 4}), tmp_path / "c.nc", engine=engine, codecs=BOUND, compute=False
    )
    later.compute()
    assert codecs(tmp_path / "c.nc", "a") == {"t": BOUND}
    assert codecs(tmp_path / "c.nc", "a/b") == {}
    assert isinstance(pyfilter.xarray.to_netcdf(tree, engine=engine, codecs=BOUND), memoryview)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"codecs": {"t": BOUND}}, ValueError, "'t' is not a group of the tree; there are '/', '/a', '/a/b'"),
        ({"codecs": {"/a": {"x": BOUND}}}, ValueError, "'x' is not a variable"),
        ({"codecs": {"/a": 1e-3}}, TypeError, "codecs must be a codec, or a mapping of names to codecs; got 0.001"),
        ({"encoding": {"/c": {}}}, ValueError, "'/c' is not a group"),
    ],
    ids=str,
)
def test_bad_arguments_for_trees(
    tree: Any, tmp_path: Path, arguments: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        pyfilter.xarray.to_netcdf(tree, tmp_path / "a.nc", **arguments)
    assert not (tmp_path / "a.nc").exists()


def test_other_objects_are_refused(tmp_path: Path) -> None:
    for thing in (np.zeros(5), {"t": np.zeros(5)}, None):
        with pytest.raises(TypeError, match=r"an xarray.Dataset, DataArray or DataTree is needed, got"):
            pyfilter.xarray.to_netcdf(thing, tmp_path / "a.nc")
    with pytest.raises(TypeError, match=r"got DataArray: pyfilter\.xarray\.to_netcdf saves it"):
        pyfilter.xarray.encoding(xr.DataArray(np.zeros(5)), BOUND)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("chunked", [False, True])
def test_missing_values_are_not_part_of_the_range(tmp_path: Path, engine: str, chunked: bool) -> None:
    """Data that was not decoded has them as numbers, here 1e20: the bound would be one of nothing."""
    values = field((12, 30, 40))
    values[:, :5] = 1e20
    data = xr.Dataset({"t": (("time", "y", "x"), values, {"_FillValue": np.float32(1e20)})})
    pyfilter.xarray.to_netcdf(
        data.chunk({"time": 4}) if chunked else data, tmp_path / "a.nc", engine=engine, codecs=Cuszp2(relative=1e-3)
    )
    most = float(np.ptp(values[:, 5:])) * 1e-3
    with xr.open_dataset(tmp_path / "a.nc", mask_and_scale=False) as found:
        assert codecs(tmp_path / "a.nc")["t"].bound[1] == pytest.approx(most, rel=1e-5)
        assert (found.t.values[:, :5] == np.float32(1e20)).all()
        assert np.abs(found.t.values[:, 5:] - values[:, 5:]).max() <= most


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("decoded", [False, True])
def test_missing_value_alone_is_kept(tmp_path: Path, engine: str, decoded: bool) -> None:
    """HDF5 knows a fill value, not CF's other attribute: -999 would come back as a number within the bound."""
    values = field((12, 30, 40))
    values[:, :5] = np.nan if decoded else -999.0
    data = xr.Dataset({"t": (("time", "y", "x"), values)})
    (data.t.encoding if decoded else data.t.attrs)["missing_value"] = np.float32(-999)
    pyfilter.xarray.to_netcdf(data, tmp_path / "a.nc", engine=engine, codecs={"t": Cuszp2(absolute=0.1)})
    with netCDF4.Dataset(tmp_path / "a.nc") as file:
        assert file["t"][:].mask[:, :5].all()
        assert not file["t"][:].mask[:, 5:].any()
    data.t.attrs["missing_value"], data.t.encoding = np.array([-999, -998], "f4"), {}
    with pytest.raises(TypeError, match=r"'t' has several values for missing ones, -999.0, -998.0.*Lossless\(\)"):
        pyfilter.xarray.to_netcdf(data, tmp_path / "b.nc", engine=engine, codecs={"t": Cuszp2(absolute=0.1)})
    pyfilter.xarray.to_netcdf(data, tmp_path / "b.nc", engine=engine, codecs={"t": Lossless()})


@pytest.mark.parametrize("engine", ENGINES)
def test_netcdf3_is_refused_before_a_file_is_overwritten(dataset: Any, tmp_path: Path, engine: str) -> None:
    (tmp_path / "a.nc").write_text("something else", encoding="utf-8")
    with pytest.raises(TypeError, match=r"'NETCDF3_64BIT' has no compression, and 't' by Cuszp2.*use NETCDF4 or"):
        pyfilter.xarray.to_netcdf(
            dataset, tmp_path / "a.nc", engine=engine, codecs={"t": BOUND}, format="NETCDF3_64BIT"
        )
    assert (tmp_path / "a.nc").read_text(encoding="utf-8") == "something else"
    pyfilter.xarray.to_netcdf(dataset[["t"]], tmp_path / "b.nc", format="NETCDF3_64BIT")
    with netCDF4.Dataset(tmp_path / "b.nc") as file:
        assert file.data_model == "NETCDF3_64BIT_OFFSET"


@pytest.mark.parametrize("engine", ENGINES)
def test_schedulers_that_xarray_cannot_write_by(dataset: Any, tree: Any, tmp_path: Path, engine: str) -> None:
    lazy = dataset.chunk({"time": 4})
    with dask.config.set(scheduler="processes"):
        for thing, path, where in (
            (tree.chunk({"time": 4}), tmp_path / "a.nc", "to a file"),
            (lazy, None, "to memory"),
            (lazy, io.BytesIO(), "to memory"),
            (lazy, tmp_path / "a.nc", "to a file"),
        ):
            text = rf"cannot save dask arrays {where} by dask's scheduler 'processes'.*scheduler=\"threads\""
            with pytest.raises(TypeError, match=text):
                pyfilter.xarray.to_netcdf(thing, path, engine=engine, codecs=BOUND)
        assert not (tmp_path / "a.nc").exists()
        pyfilter.xarray.to_netcdf(dataset, tmp_path / "a.nc", engine=engine, codecs=BOUND)
