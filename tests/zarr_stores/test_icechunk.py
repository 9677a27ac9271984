# SPDX-License-Identifier: BSD-3-Clause
"""Icechunk, a store of Zarr with versions: arrays of frames, and HDF5 files as virtual chunks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import zarr
from python.support import run_script

import pyfilter
from pyfilter.zarr import Serializer, create_array, encoding

from .support import CHUNK, FILL, SHAPE, field, within

icechunk = pytest.importorskip("icechunk")

CODEC = pyfilter.Lorenzo(absolute=0.01)
READ = """
import sys
import icechunk, numpy, zarr
repository = icechunk.Repository.open(icechunk.local_filesystem_storage(sys.argv[1]))
array = zarr.open_array(repository.readonly_session("main").store, path="u", mode="r")
numpy.save(sys.argv[2], array[...])
"""


def repository(path: Path, config: Any = None) -> Any:
    """Return a new repository in a folder."""
    return icechunk.Repository.create(icechunk.local_filesystem_storage(str(path)), config=config)


def test_every_version_keeps_the_bound(tmp_path: Path) -> None:
    repo, values = repository(tmp_path / "r"), field()
    session = repo.writable_session("main")
    create_array(session.store, values, CODEC, name="u", chunks=CHUNK, fill_value=FILL)
    first = session.commit("first")
    session = repo.writable_session("main")
    changed = values.copy()
    changed[3:20, 5:9, 1:40] += 7
    zarr.open_array(session.store, path="u")[3:20, 5:9, 1:40] = changed[3:20, 5:9, 1:40]
    second = session.commit("a part of the chunks, in part")

    def of(version: str) -> Any:
        return zarr.open_array(repo.readonly_session(snapshot_id=version).store, path="u", mode="r")

    old, new = of(first)[...], of(second)[...]
    assert isinstance(of(second).serializer, Serializer)
    assert within(values, old, CODEC)
    assert within(changed, new, CODEC)
    rest = np.ones(SHAPE, dtype=bool)
    rest[3:20, 5:9, 1:40] = False
    assert np.array_equal(new.view("u4")[rest], old.view("u4")[rest])


def test_a_process_that_imports_zarr_alone(tmp_path: Path) -> None:
    session = repository(tmp_path / "r").writable_session("main")
    create_array(session.store, field(), CODEC, name="u", chunks=CHUNK, fill_value=FILL)
    session.commit("first")
    run_script(READ, tmp_path / "r", tmp_path / "u.npy")
    assert within(field(), np.load(tmp_path / "u.npy"), CODEC)


@pytest.mark.parametrize("lazy", [False, True])
def test_xarray(tmp_path: Path, lazy: bool) -> None:
    xarray = pytest.importorskip("xarray")
    values = field()
    dataset = xarray.Dataset({"u": (("t", "y", "x"), values)})
    dataset["u"].encoding["_FillValue"] = np.float32(FILL)
    if lazy:
        pytest.importorskip("dask")
        dataset = dataset.chunk(t=16, y=20, x=32)
    session = repository(tmp_path / "r").writable_session("main")
    # icechunk.xarray.to_icechunk of Icechunk 1.1 fails with xarray 2026.9, whatever the codec
    dataset.to_zarr(session.store, mode="w", encoding=encoding(dataset, u=CODEC), consolidated=False)
    session.commit("first")
    with xarray.open_zarr(session.store, consolidated=False, mask_and_scale=False) as back:
        missing = np.where(np.isnan(values), np.float32(FILL), values)  # xarray writes NaN as the fill value
        assert within(missing, back["u"].values, CODEC)


def test_chunks_that_stay_in_an_hdf5_file(tmp_path: Path) -> None:
    pytest.importorskip("virtualizarr")
    pytest.importorskip("kerchunk")
    from obspec_utils.registry import ObjectStoreRegistry
    from obstore.store import LocalStore
    from virtualizarr import open_virtual_dataset

    from pyfilter.zarr import HDFParser

    values = field(special=False)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        pyfilter.create_dataset(file, "u", values, CODEC, chunks=(10, 41, 50))
    folder = f"file://{tmp_path}/"
    virtual = open_virtual_dataset(
        f"file://{tmp_path / 'a.h5'}", registry=ObjectStoreRegistry({"file://": LocalStore()}), parser=HDFParser()
    )
    config = icechunk.RepositoryConfig.default()
    config.set_virtual_chunk_container(
        icechunk.VirtualChunkContainer(folder, icechunk.local_filesystem_store(str(tmp_path)))
    )
    repo = repository(tmp_path / "r", config)
    session = repo.writable_session("main")
    virtual.vz.to_icechunk(session.store)
    session.commit("first")
    opened = icechunk.Repository.open(
        icechunk.local_filesystem_storage(str(tmp_path / "r")),
        authorize_virtual_chunk_access=icechunk.containers_credentials({folder: None}),
    )
    array = zarr.open_array(opened.readonly_session("main").store, path="u", mode="r")
    assert within(values, array[...], CODEC, None)
    assert sum(path.stat().st_size for path in (tmp_path / "r").rglob("*") if path.is_file()) < 8192
