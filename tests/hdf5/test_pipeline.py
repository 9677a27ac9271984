# SPDX-License-Identifier: BSD-3-Clause
"""Ours among other filters, and where HDF5 calls a filter for what is not numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from .support import FILTER_ID, compressed, field, frames, largest_error, words

Script = Callable[..., str]


def create(file: h5py.File, *after: tuple[int, tuple[int, ...]]) -> Any:
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk((16, 16))
    for number, values in ((FILTER_ID, words()), *after):
        plist.set_filter(number, h5py.h5z.FLAG_OPTIONAL, values)
    space = h5py.h5s.create_simple((40, 50))
    dataset = h5py.Dataset(h5py.h5d.create(file.id, b"x", h5py.h5t.IEEE_F32LE, space, plist))
    dataset[...] = field((40, 50))
    return dataset


def check(path: Path) -> None:
    with h5py.File(path) as file:
        assert largest_error(file["x"][...], field((40, 50))) <= 1e-3
        assert frames(file["x"])


@pytest.mark.parametrize("after", [(2, (4,)), (1, (4,)), (3, ())], ids=["shuffle", "deflate", "fletcher32"])
def test_filters_of_hdf5_after_ours(tmp_path: Path, after: tuple[int, tuple[int, ...]]) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        create(file, after)
    check(tmp_path / "a.h5")


def test_zstd_and_fletcher32_after_ours(tmp_path: Path) -> None:
    hdf5plugin = pytest.importorskip("hdf5plugin")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        create(file, (hdf5plugin.Zstd.filter_id, (3,)), (3, ()))
    check(tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5") as file:
        assert list(file["x"]._filters) == [str(FILTER_ID), str(hdf5plugin.Zstd.filter_id), "fletcher32"]


def test_h5py_fletcher32_stands_after_ours(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=field((40, 50)), chunks=(16, 16), fletcher32=True, **compressed())
        assert list(file["x"]._filters) == [str(FILTER_ID), "fletcher32"]
    check(tmp_path / "a.h5")


def test_netcdf_fletcher32_stands_before_ours_and_is_refused(tmp_path: Path, script: Script) -> None:
    """Its checksum would be of the values before rounding, and every read would fail."""
    pytest.importorskip("netCDF4")
    said = script(
        """
import netCDF4
dataset = netCDF4.Dataset(sys.argv[1], "w")
dataset.createDimension("x", 100)
variable = dataset.createVariable("x", "f4", ("x",), fletcher32=True)
print("filter", nc_compress(variable, words()))
try:
    variable[:] = 1
    dataset.sync()
    print("written")
except RuntimeError as error:
    print("refused:", error)
library = ctypes.CDLL(loaded("libh5pyfilter"))
library.pyf_last_error.restype = ctypes.c_char_p
print(library.pyf_last_error().decode())
sys.stdout.flush()
os._exit(0)  # netCDF cannot close a file whose variable could not be made
""",
        tmp_path / "a.nc",
    )
    assert "filter 0" in said
    assert "refused: NetCDF: HDF error" in said
    assert "filter 'fletcher32' (id 3) stands before pyfilter" in said


@pytest.mark.parametrize("kind", ["strings", "arrays", "references"])
def test_variable_length_data_is_left_alone(tmp_path: Path, kind: str) -> None:
    """HDF5 up to 2.0 asks neither can_apply nor set_local for it, but calls the filter on references into the heap."""
    kinds: dict[str, tuple[Any, list[Any]]] = {
        "strings": (h5py.string_dtype(), [f"text {i}" * i for i in range(40)]),
        "arrays": (h5py.vlen_dtype("f4"), [np.arange(i + 1, dtype="f4") for i in range(40)]),
        "references": (h5py.vlen_dtype("i8"), [np.arange(3) + i for i in range(40)]),
    }
    dtype, values = kinds[kind]
    with h5py.File(tmp_path / "a.h5", "w") as file:
        if h5py.version.hdf5_version_tuple >= (2, 1):  # asks
            with pytest.raises(ValueError, match=r"the dataset's type \((string|variable-length)"):
                file.create_dataset("x", (40,), dtype, chunks=(7,), **compressed())
            return
        dataset = file.create_dataset("x", (40,), dtype, chunks=(7,), **compressed())
        for index, value in enumerate(values):
            dataset[index] = value
    with h5py.File(tmp_path / "a.h5") as file:
        back = file["x"].asstr()[...] if kind == "strings" else file["x"][...]
        assert [list(one) for one in back] == [list(one) for one in values]
        assert file["x"]._filters[str(FILTER_ID)] == words()


def test_single_writer_multiple_readers(tmp_path: Path, script: Script) -> None:
    values = field((60, 50))
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as file:
        dataset = file.create_dataset("x", (0, 50), "f4", chunks=(10, 50), maxshape=(None, 50), **compressed())
        file.swmr_mode = True
        for rows in (20, 60):
            dataset.resize(rows, axis=0)
            dataset[:] = values[:rows]
            dataset.flush()
            said = script(
                """
import h5py
file = h5py.File(sys.argv[1], libver="latest", swmr=True)
print(file["x"].shape[0], largest_error(file["x"][...], field((60, 50))[: file["x"].shape[0]]) <= 2e-3)
""",
                tmp_path / "a.h5",
            )
            assert said.split() == [str(rows), "True"]


@pytest.mark.parametrize("dtype", ["f4", ">f4", "f8"])
@pytest.mark.parametrize("fill", [None, 1e20])
def test_rewriting_parts_of_chunks_adds_no_error(tmp_path: Path, dtype: str, fill: float | None) -> None:
    """Every value stays within the bound of what was written, however often its chunk is decoded and encoded again."""
    rng = np.random.default_rng(7)
    written = (field((90, 70), dtype) + 273.15).astype(dtype)
    written[20:30, 5:25] = 1e20 if fill else np.nan
    with h5py.File(tmp_path / "a.h5", "w") as file:
        keywords = {"chunks": (40, 40), "fillvalue": fill, "maxshape": (None, 70), **compressed(words(1e-3))}
        file.create_dataset("x", data=written, **keywords)
    for _ in range(25):
        part = tuple(slice(first, first + rng.integers(1, 30)) for first in rng.integers(0, (80, 60)))
        written[part] = (rng.normal(0, 10 ** rng.uniform(-3, 4), written[part].shape)).astype(dtype)
        with h5py.File(tmp_path / "a.h5", "r+") as file:
            file["x"][part] = written[part]
        with h5py.File(tmp_path / "a.h5") as file:
            stored = file["x"][...]
        ordinary = np.abs(written) < 1e19
        assert np.abs(stored[ordinary].astype("f8") - written[ordinary].astype("f8")).max() <= 1e-3
        assert stored[~ordinary].tobytes() == written[~ordinary].tobytes()
