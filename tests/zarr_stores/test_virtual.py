# SPDX-License-Identifier: BSD-3-Clause
"""HDF5 and netCDF-4 files as virtual Zarr, by kerchunk and VirtualiZarr, from here and over http."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import zarr
from http_ranges import Ranges, serving

import pyfilter
from pyfilter.errors import Unsupported

from .support import FILL, within

kerchunk = pytest.importorskip("kerchunk")
pytest.importorskip("virtualizarr")
xarray = pytest.importorskip("xarray")

from pyfilter.zarr import HDFParser, references  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning", "ignore::RuntimeWarning")

CODEC = pyfilter.Lorenzo(absolute=0.01)
SHAPE, CHUNK = (12, 60, 90), (2, 20, 50)


def field(dtype: str = "f4") -> Any:
    """Return temperatures with missing values."""
    values = 280 + 20 * np.sin(np.linspace(0, 90, np.prod(SHAPE))).reshape(SHAPE)
    values[:, :9, 5:20] = np.nan
    return values.astype(dtype)


@pytest.fixture(params=["f4", ">f8"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a netCDF-4 file: a compressed variable with a fill value, coordinates, and a variable that is not."""
    dataset = xarray.Dataset(
        {"t": (("time", "y", "x"), field(request.param)), "n": (("time",), np.arange(12))},
        coords={"x": np.arange(90.0)},
        attrs={"title": "a title"},
    )
    dataset["t"].encoding.update(_FillValue=np.dtype(request.param).type(FILL), dtype=np.dtype(request.param))
    encoding = {"t": {"chunksizes": CHUNK}}
    pyfilter.xarray.to_netcdf(dataset, tmp_path / "a.nc", engine="h5netcdf", codecs={"t": CODEC}, encoding=encoding)
    return tmp_path / "a.nc"


def opened(refs: dict[str, Any], **options: Any) -> Any:
    """Return the dataset of references."""
    storage = {"fo": refs, **options}
    return xarray.open_dataset(
        "reference://", engine="zarr", backend_kwargs={"consolidated": False, "storage_options": storage}
    )


def check(dataset: Any) -> None:
    """Compare a dataset with what was written: values, missing values, the others."""
    assert within(field(), np.asarray(dataset["t"].values, dtype="f4"), 0.0101, None)
    assert np.array_equal(dataset["n"], np.arange(12))
    assert np.array_equal(dataset["x"], np.arange(90.0))
    assert dataset.attrs["title"] == "a title"


def test_references(path: Path) -> None:
    refs = json.loads(json.dumps(references(path)))
    said = json.loads(refs["refs"]["t/.zarray"])
    assert said["filters"] == [{"id": "pyfilter", "cd_values": list(CODEC.filter_options)}]
    assert refs["refs"]["t/0.0.0"][0] == str(path)
    with opened(refs) as dataset:
        check(dataset)


def test_references_to_a_file_object(path: Path) -> None:
    with path.open("rb") as file:
        with pytest.raises(Unsupported, match="need url="):
            references(file)
        refs = references(file, f"file://{path}")
    assert refs["refs"]["t/0.0.0"][0] == f"file://{path}"
    with opened(refs) as dataset:
        check(dataset)


@pytest.mark.parametrize("codec", [pyfilter.Cuszp2(absolute=0.01), pyfilter.Lossless()], ids=repr)
@pytest.mark.parametrize("more", [{}, {"fletcher32": True}], ids=["alone", "checksum"])
def test_plain_hdf5(tmp_path: Path, codec: pyfilter.Codec, more: dict[str, Any]) -> None:
    values = np.nan_to_num(field(), nan=FILL)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        group = file.create_group("deep/er")
        group.create_dataset("v", data=values, chunks=CHUNK, fillvalue=FILL, **codec, **more)
        group.create_dataset("four", data=values[None], chunks=(1, *CHUNK), fillvalue=FILL, **codec, **more)
        file.create_dataset("deflated", data=values, chunks=CHUNK, compression="gzip", shuffle=True)
    store = zarr.storage.FsspecStore.from_url("reference://", storage_options={"fo": references(tmp_path / "a.h5")})
    group = zarr.open_group(store, mode="r", zarr_format=2)
    assert within(values, group["deep/er/v"][...], codec)
    assert within(values[None], group["deep/er/four"][...], codec)
    assert np.array_equal(group["deflated"][...], values)


def test_other_filters(tmp_path: Path) -> None:
    """One behind ours is told, one that kerchunk does not know is refused."""
    hdf5plugin = pytest.importorskip("hdf5plugin")
    values = np.nan_to_num(field())
    for name, behind in (("good", hdf5plugin.Zstd()), ("bad", hdf5plugin.LZ4())):
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk(CHUNK)
        plist.set_filter(CODEC.filter_id, 0, CODEC.filter_options)
        plist.set_filter(behind.filter_id, 0, behind.filter_options)
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            space = h5py.h5s.create_simple(SHAPE)
            dataset = h5py.Dataset(h5py.h5d.create(file.id, b"v", h5py.h5t.IEEE_F32LE, space, plist))
            dataset[...] = values
    store = zarr.storage.FsspecStore.from_url("reference://", storage_options={"fo": references(tmp_path / "good.h5")})
    assert within(values, zarr.open_array(store, path="v", mode="r", zarr_format=2)[...], CODEC, None)
    with pytest.raises(Exception, match="lz4"):
        references(tmp_path / "bad.h5")


def test_damaged_chunks_are_errors(path: Path) -> None:
    refs = references(path)
    place = refs["refs"]["t/1.0.0"]
    with path.open("r+b") as file:
        file.seek(place[1])
        file.write(b"\0" * 40)
    with opened(refs) as dataset:
        assert dataset["t"][0].shape == (60, 90)
        with pytest.raises(ValueError, match="not a pyfilter frame"):
            dataset["t"][2].load()


@pytest.fixture
def served(path: Path) -> Iterator[tuple[str, Ranges]]:
    """Return the URL of the file, and the list of ranges that were fetched."""
    with serving(path, "a.nc") as place:
        yield place


def test_only_the_chunks_asked_for_are_fetched(path: Path, served: tuple[str, Ranges]) -> None:
    pytest.importorskip("aiohttp")
    url, sent = served
    refs = references(path, url)
    chunks = {key: tuple(place[1:]) for key, place in refs["refs"].items() if key.startswith("t/") and "." in key[2:]}
    chunks = {key: place for key, place in chunks.items() if key[2:3].isdigit()}
    dataset = opened(refs, remote_protocol="http", remote_options={"asynchronous": True})
    sent.clear()
    row = dataset["t"][5, 3:17, 60:70].values
    assert sorted(sent) == [chunks["t/2.0.1"]]
    assert within(field()[5, 3:17, 60:70], row.astype("f4"), 0.0101, None)
    sent.clear()
    dataset["t"][0:4, 0:30, 0].load()
    assert sorted(sent) == sorted(chunks[key] for key in ("t/0.0.0", "t/0.1.0", "t/1.0.0", "t/1.1.0"))
    sent.clear()
    check(dataset)
    assert {place for place in sent if place in chunks.values()} == set(chunks.values())


@pytest.fixture
def registry() -> Any:
    """Return a registry of object stores with the local files."""
    pytest.importorskip("virtualizarr")
    from obspec_utils.registry import ObjectStoreRegistry
    from obstore.store import LocalStore

    return ObjectStoreRegistry({"file://": LocalStore()})


def test_virtualizarr(path: Path, registry: Any, tmp_path: Path) -> None:
    from virtualizarr import open_virtual_dataset

    url = f"file://{path}"
    with xarray.open_zarr(HDFParser()(url, registry), consolidated=False, zarr_format=3) as dataset:
        check(dataset)
    virtual = open_virtual_dataset(url, registry=registry, parser=HDFParser(drop_variables=["n"]))
    assert set(virtual.data_vars) == {"t"}
    both = xarray.concat(
        [open_virtual_dataset(url, registry=registry, parser=HDFParser()) for _ in range(2)],
        dim="time", coords="minimal", compat="override", join="override",
    )  # fmt: skip
    refs = both.virtualize.to_kerchunk(format="dict")
    with opened(refs) as dataset:
        assert dataset["t"].shape == (24, 60, 90)
        for half in (slice(12), slice(12, 24)):
            assert within(field(), np.asarray(dataset["t"][half].values, dtype="f4"), 0.0101, None)


def test_virtualizarr_over_http(served: tuple[str, Ranges]) -> None:
    pytest.importorskip("virtualizarr")
    from obspec_utils.registry import ObjectStoreRegistry
    from obstore.store import HTTPStore

    url, sent = served
    base = url.rsplit("/", 1)[0]
    store = HTTPStore.from_url(base, client_options={"allow_http": True})
    found = HDFParser()(url, ObjectStoreRegistry({base: store}))
    sent.clear()
    array = zarr.open_group(found, mode="r", zarr_format=3)["t"]
    assert within(field()[5, 3:17, 60:70], array[5, 3:17, 60:70].astype("f4"), 0.0101, None)
    assert len(sent) == 1


def test_groups_in_virtualizarr(tmp_path: Path, registry: Any) -> None:
    values = np.nan_to_num(field())
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = file.create_group("deep").create_dataset("v", data=values, chunks=CHUNK, **CODEC)
        for axis, name in enumerate("tyx"):
            file["deep"].create_dataset(name, data=np.arange(SHAPE[axis])).make_scale(name)
            dataset.dims[axis].attach_scale(file["deep"][name])
    store = HDFParser(group="deep")(f"file://{tmp_path / 'a.h5'}", registry)
    assert within(values, zarr.open_group(store, mode="r", zarr_format=3)["v"][...], CODEC, None)
