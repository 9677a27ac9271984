# SPDX-License-Identifier: BSD-3-Clause
"""Arrays whose bound is one of all values: from NumPy, HDF5, Zarr and Dask, through xarray; threads at work."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import zarr

import pyfilter
from pyfilter.errors import InvalidArgument
from pyfilter.zarr import create_array, encoding, work

from .support import CHUNK, FILL, SHAPE, field, stored, within

RELATIVE = pyfilter.Lorenzo(relative=1e-4)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_relative_bound_is_of_the_whole_array(zarr_format: int) -> None:
    store = zarr.storage.MemoryStore()
    values = field(special=False)
    values[0] *= 100
    values[1, :9] = FILL
    array = create_array(
        store, values, RELATIVE, name="a", chunks=CHUNK, fill_value=FILL, zarr_format=zarr_format, attributes={"k": 1}
    )
    assert array.attrs["k"] == 1
    bounds = {pyfilter.frame_info(frame).bound for frame in stored(array).values()}
    assert len(bounds) == 1
    finite = values[values < 1e19].astype("f8")
    assert 0.999e-4 * np.ptp(finite) < bounds.pop() <= 1e-4 * np.ptp(finite)
    assert within(values, zarr.open_array(store, path="a", mode="r")[...], RELATIVE)
    array[0, 0] = values[0, 0] + 1
    values[0, 0] += 1
    assert within(values, array[...], RELATIVE)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_sources(tmp_path: Path, zarr_format: int) -> None:
    dask = pytest.importorskip("dask.array")
    values = field(special=False)
    group = zarr.open_group(tmp_path / "g.zarr", mode="w", zarr_format=zarr_format)
    first = create_array(group, values, RELATIVE, name="numpy")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["v"] = values
        create_array(group, file["v"], RELATIVE, name="hdf5", chunks=CHUNK)
    create_array(group, dask.from_array(values, chunks=(7, 41, 13)), RELATIVE, name="dask", chunks=CHUNK)
    create_array(group, values.tolist(), pyfilter.Lorenzo(relative=1e-4), name="list")
    create_array(group, first, pyfilter.Lossless(), name="zarr")
    for name in ("numpy", "hdf5", "dask", "list"):
        assert within(values, group[name][...].astype("f4"), pyfilter.Lorenzo(relative=1.001e-4), None), name
    assert np.array_equal(group["zarr"][...], first[...])
    assert np.array_equal(dask.from_zarr(group["dask"]).compute(), group["dask"][...])


def test_shards_and_dask(tmp_path: Path) -> None:
    dask = pytest.importorskip("dask.array")
    values = field(special=False)
    data = dask.from_array(values, chunks=(11, 20, 17))
    array = create_array(tmp_path / "a.zarr", data, RELATIVE, chunks=CHUNK, shards=(32, 40, 64))
    assert within(values, zarr.open_array(tmp_path / "a.zarr")[...], RELATIVE, None)
    assert array.shards == (32, 40, 64)
    assert len(list((tmp_path / "a.zarr" / "c").rglob("*"))) < 20


def test_what_is_refused(tmp_path: Path) -> None:
    values = field()
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"serializer": "auto"}, "serializer cannot be given"),
        ({"filters": [1]}, "filters cannot be given"),
        ({"chunks": (3,)}, "chunks must be"),
        ({"zarr_format": 2, "shards": (32, 40, 64)}, "need Zarr's format 3"),
        ({"fill_value": "none"}, "fill value 'none'"),
    ]
    for given, words in wrong:
        with pytest.raises(InvalidArgument, match=words):
            create_array(tmp_path / "a.zarr", values, RELATIVE, **given)
    with pytest.raises(TypeError, match="cannot encode bool"):
        create_array(tmp_path / "a.zarr", values > 0, RELATIVE)
    with pytest.raises(TypeError, match="a codec is needed"):
        create_array(tmp_path / "a.zarr", values, "lorenzo")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="needs name="):
        create_array(zarr.open_group(tmp_path / "g.zarr", mode="w"), values, RELATIVE)
    assert not (tmp_path / "a.zarr").exists()


def test_nothing_is_left_where_writing_fails(tmp_path: Path) -> None:
    dask = pytest.importorskip("dask.array")

    def fail(block: Any) -> Any:
        raise OSError("the disk is gone")

    data = dask.from_array(field(), chunks=CHUNK).map_blocks(fail, dtype="f4", meta=np.empty(0, "f4"))
    with pytest.raises(OSError, match="the disk is gone"):
        create_array(tmp_path / "a.zarr", data, pyfilter.Lorenzo(absolute=0.01), name="x")
    assert not (tmp_path / "a.zarr" / "x").exists()


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("lazy", [False, True])
def test_xarray(tmp_path: Path, zarr_format: int, lazy: bool) -> None:
    xarray = pytest.importorskip("xarray")
    values = field()
    values[~np.isfinite(values) | (values > 1e19)] = np.nan
    packed = np.round(field(special=False) * 4) / 4
    dataset = xarray.Dataset(
        {"t": (("z", "y", "x"), values), "p": (("z", "y", "x"), packed), "n": (("z",), np.arange(SHAPE[0]))},
        coords={"x": np.arange(50.0)},
    )
    dataset["t"].encoding["_FillValue"] = np.float32(FILL)
    dataset["p"].encoding.update(dtype="i2", scale_factor=0.25, _FillValue=np.int16(-99))
    if lazy:
        pytest.importorskip("dask")
        dataset = dataset.chunk(z=16)
    codecs = {"t": RELATIVE, "p": pyfilter.HierarchicalDelta(relative=1e-3), "n": pyfilter.Lossless()}
    given = encoding(dataset, zarr_format=zarr_format, **codecs)
    dataset.to_zarr(tmp_path / "a.zarr", zarr_format=zarr_format, encoding=given, consolidated=False)
    with xarray.open_zarr(tmp_path / "a.zarr", consolidated=False) as there:
        assert within(values, there["t"].values, RELATIVE, None)
        assert float(np.abs(there["p"].values - packed).max()) <= 1e-3 * np.ptp(packed) + 1e-6
        assert np.array_equal(there["n"], np.arange(SHAPE[0]))
        assert not any("pyfilter" in str(there["x"].encoding[key]) for key in ("compressors", "filters"))
        there.to_zarr(tmp_path / "b.zarr", zarr_format=zarr_format, consolidated=False)
        again = zarr.open_array(tmp_path / "b.zarr" / "t", mode="r")
        codec = again.serializer if zarr_format == 3 else again.compressors[0]
        assert type(codec.codec) is pyfilter.Lorenzo
        assert np.array_equal(again[...][1:], there["t"].values[1:], equal_nan=True) or zarr_format == 2


def test_encoding_says_what_is_wrong() -> None:
    xarray = pytest.importorskip("xarray")
    dataset = xarray.Dataset({"t": (("x",), np.zeros(3))})
    with pytest.raises(InvalidArgument, match="'u' is not a variable"):
        encoding(dataset, u=RELATIVE)
    with pytest.raises(InvalidArgument, match="zarr_format must be 2 or 3"):
        encoding(dataset, RELATIVE, zarr_format=1)
    assert encoding(dataset, t=None) == {}


def test_many_threads_read_and_write() -> None:
    values = field(special=False)
    arrays = [
        create_array(zarr.storage.MemoryStore(), values, RELATIVE, chunks=CHUNK, zarr_format=which) for which in (2, 3)
    ]
    expected = [array[...] for array in arrays]

    def work_on(number: int) -> bool:
        which = number % 2
        if number % 5 == 0:
            arrays[which][...] = values
        return bool(np.array_equal(arrays[which][number % 30], expected[which][number % 30]))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work_on, range(80)))


def test_memory_is_given_back() -> None:
    """Arrays that are in use keep their values; what is free goes a moment after the last call."""
    import time

    codec = pyfilter.Cuszp2(absolute=1e-3)
    values = np.arange(1 << 20, dtype="f4").reshape(4, -1)
    array = create_array(zarr.storage.MemoryStore(), values, codec, chunks=(1, values.shape[1]))
    kept = [array[row] for row in range(4)]
    assert np.array_equal(array[...], np.stack(kept))
    assert within(values, np.stack(kept), codec, None)
    for _ in range(100):
        time.sleep(0.05)
        if not work._free:
            break
    assert not work._free
    assert work._calls == 0


def test_importing_pyfilter_imports_neither() -> None:
    text = (
        "import sys, pyfilter\nassert not {'zarr', 'numcodecs'} & set(sys.modules)\n"
        "pyfilter.zarr.Compressor\nassert 'numcodecs' in sys.modules and 'zarr' not in sys.modules\n"
        "pyfilter.zarr.Serializer\nassert 'kerchunk' not in sys.modules\n"
        "sys.modules['kerchunk'] = None\n"
        "try:\n    pyfilter.zarr.references\nexcept pyfilter.errors.MissingExtra as error:\n"
        "    assert 'h5pyfilter[virtual]' in str(error)\nelse:\n    raise AssertionError\n"
    )
    subprocess.run([sys.executable, "-c", text], check=True, timeout=60)


def test_an_installed_pyfilter_needs_no_import(tmp_path: Path) -> None:
    """Entry points bring the codecs to a process that imports zarr-python alone."""
    import importlib.metadata

    found = {point.group for point in importlib.metadata.entry_points(name="pyfilter")}
    if not {"zarr.codecs", "numcodecs.codecs"} <= found:
        pytest.skip("pyfilter is not installed here")
    values = field(special=False)
    for zarr_format in (2, 3):
        create_array(tmp_path / f"{zarr_format}", values, pyfilter.Lorenzo(absolute=0.01), zarr_format=zarr_format)
    text = "import sys, zarr\nfor path in sys.argv[1:]:\n    print(float(zarr.open_array(path, mode='r')[3, 4, 5]))"
    command = [sys.executable, "-c", text, str(tmp_path / "2"), str(tmp_path / "3")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert all(abs(float(line) - float(values[3, 4, 5])) <= 0.01 for line in done.stdout.split())
