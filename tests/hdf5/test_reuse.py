# SPDX-License-Identifier: BSD-3-Clause
"""set_local is fed what it stored: by reused property lists, h5repack, nccopy. Settings stay, the rest is made anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from .support import FILTER_ID, RELATIVE, cd_values, compressed, field, frames, largest_error, lossless, stored, words

Tool = Callable[..., str]
USER = words(1e-3, parameters=1)
FILTER = ",".join(map(str, words(1e-3)))
FILL = 0x60AD78EC  # 1e20 in f32


def create_like(file: h5py.File, name: str, plist: Any, values: np.ndarray[Any, Any]) -> h5py.Dataset:
    space = h5py.h5s.create_simple(values.shape)
    dataset = h5py.Dataset(h5py.h5d.create(file.id, name.encode(), h5py.h5t.py_create(values.dtype), space, plist))
    dataset[...] = values
    return dataset


def test_property_list_of_a_dataset(tmp_path: Path) -> None:
    """Given back as it is, and for another chunk shape, type, byte order and fill value."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=field((20, 30)), chunks=(10, 15), fillvalue=1e20, **compressed(USER))
        plist = file["x"].id.get_create_plist()
        create_like(file, "same", plist, field((20, 30), seed=1))
        plist.set_chunk((5, 30))
        create_like(file, "chunk", plist, field((20, 30)))
        create_like(file, "type", plist, field((20, 30), ">f8"))
        plist.set_fill_value(np.array(0, "f4"))
        create_like(file, "fill", plist, field((20, 30)))
        plist.set_chunk((2, 3, 4))
        create_like(file, "rank", plist, field((4, 6, 8)))
    double_fill = 0x4415AF1D80000000  # of the f32 that is nearest to 1e20
    with h5py.File(tmp_path / "a.h5") as file:
        assert cd_values(file["same"]) == cd_values(file["x"]) == stored(USER, "f4", (10, 15), fill=FILL)
        assert cd_values(file["chunk"]) == stored(USER, "f4", (5, 30), fill=FILL)
        assert cd_values(file["type"]) == stored(USER, "f8", (5, 30), big_endian=True, fill=double_fill)
        assert cd_values(file["fill"]) == stored(USER, "f4", (5, 30))
        assert cd_values(file["rank"]) == stored(USER, "f4", (2, 3, 4))
        for name in file:
            assert largest_error(file[name][...], field(file[name].shape, seed=int(name == "same"))) <= 1e-3
            assert frames(file[name])


def test_stored_form_is_checked_for_the_new_dataset(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=field((20, 30)), chunks=(10, 15), **compressed(words(parameters=0x200)))
        plist = file["x"].id.get_create_plist()
        with pytest.raises(ValueError, match="cannot compress dtype i32"):
            create_like(file, "type", plist, np.zeros((20, 30), "i4"))
        plist.set_chunk((10,))
        with pytest.raises(ValueError, match="block_dims 2 needs data of at least that rank, this has rank 1"):
            create_like(file, "rank", plist, field((20,)))


def test_stored_form_given_by_hand(tmp_path: Path) -> None:
    """As from h5dump's output, for a dataset of another kind."""
    given = stored(USER, "f8", (7, 7, 7), fill=5)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=field((20, 30)), chunks=(10, 15), **compressed(given))
        assert cd_values(file["x"]) == stored(USER, "f4", (10, 15))


@pytest.fixture
def hdf5_file(tmp_path: Path) -> Path:
    """Ours, ours in big-endian, integers, and one without a filter."""
    path = tmp_path / "in.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=field((40, 30)), chunks=(10, 15), fillvalue=1e20, **compressed(USER))
        file.create_dataset("big", data=field((40, 30), ">f8"), chunks=(10, 15), **compressed(words(1e-3, RELATIVE)))
        file.create_dataset("int", data=np.arange(1200, dtype="i2"), chunks=(100,), **compressed(lossless()))
        file.create_dataset("plain", data=field((40, 30)))
    return path


def same_values(a: Path, b: Path) -> None:
    with h5py.File(a) as one, h5py.File(b) as other:
        assert set(one) == set(other)
        for name in one:
            assert one[name][...].tobytes() == other[name][...].tobytes(), name


def test_h5repack_copies_chunks_as_they_are(tmp_path: Path, hdf5_file: Path, tool: Tool) -> None:
    out = tmp_path / "out.h5"
    tool("h5repack", hdf5_file, out)
    same_values(hdf5_file, out)
    with h5py.File(hdf5_file) as one, h5py.File(out) as other:
        for name in ("x", "big", "int"):
            assert cd_values(one[name]) == cd_values(other[name])
            assert frames(one[name]) == frames(other[name])


def test_h5repack_to_another_chunk_shape(tmp_path: Path, hdf5_file: Path, tool: Tool) -> None:
    out = tmp_path / "out.h5"
    tool("h5repack", "-l", "x,big:CHUNK=20x10", "-l", "int:CHUNK=70", hdf5_file, out)
    with h5py.File(hdf5_file) as one, h5py.File(out) as other:
        assert cd_values(other["x"]) == stored(USER, "f4", (20, 10), fill=FILL)
        assert cd_values(other["big"]) == stored(words(1e-3, RELATIVE), "f8", (20, 10), big_endian=True)
        assert cd_values(other["int"]) == stored(lossless(), "i2", (70,))
        assert largest_error(one["x"][...], other["x"][...]) <= 1e-3
        assert all(frames(other[name]) for name in ("x", "big", "int"))
        assert other["int"][...].tobytes() == one["int"][...].tobytes()


def test_h5repack_adds_and_removes_the_filter(tmp_path: Path, hdf5_file: Path, tool: Tool) -> None:
    out, back = tmp_path / "out.h5", tmp_path / "back.h5"
    tool("h5repack", "-l", "plain:CHUNK=20x30", "-f", f"plain:UD={FILTER_ID},0,6,{FILTER}", hdf5_file, out)
    with h5py.File(out) as file:
        assert cd_values(file["plain"]) == stored(words(), "f4", (20, 30))
        assert largest_error(file["plain"][...], field((40, 30))) <= 1e-3
        assert frames(file["plain"])
    tool("h5repack", "-f", "NONE", out, back)
    same_values(out, back)
    with h5py.File(back) as file:
        assert not any(file[name].id.get_create_plist().get_nfilters() for name in file)


def test_h5repack_names_the_refusal(tmp_path: Path, hdf5_file: Path, tool: Tool) -> None:
    """h5repack then keeps the dataset as it was, and says so and why only if asked to."""
    command = ["--enable-error-stack", "-v", "-f", f"int:UD={FILTER_ID},0,6,{FILTER}", hdf5_file, tmp_path / "out.h5"]
    said = tool("h5repack", *command)
    assert "pyfilter: cuszp2 cannot compress dtype i16, allowed: f32, f64" in said
    assert "could not apply the filter to /int" in said
    with h5py.File(hdf5_file) as one, h5py.File(tmp_path / "out.h5") as other:
        assert cd_values(one["int"]) == cd_values(other["int"])
        assert one["int"][...].tobytes() == other["int"][...].tobytes()


CDL = """netcdf in {
dimensions: t = UNLIMITED ; y = 20 ; x = 30 ;
variables:
  float a(t, y, x) ; a:_FillValue = 1e20f ;
  double b(y, x) ;
  int k(y, x) ;
  float c(y, x) ; c:_Endianness = "big" ;
  string s(y) ;
  float scalar ;
}"""


@pytest.fixture
def netcdf_file(tmp_path: Path, tool: Tool) -> Path:
    netcdf = pytest.importorskip("netCDF4")
    (tmp_path / "in.cdl").write_text(CDL)
    tool("ncgen", "-4", "-o", tmp_path / "in.nc", tmp_path / "in.cdl")
    with netcdf.Dataset(tmp_path / "in.nc", "a") as dataset:
        a = np.ma.masked_array(field((3, 20, 30)), np.indices((3, 20, 30)).sum(0) % 7 == 0)
        dataset["a"][:] = a
        dataset["b"][:] = field((20, 30), "f8")
        dataset["k"][:] = np.arange(600).reshape(20, 30)
        dataset["c"][:] = field((20, 30))
        dataset["s"][:] = np.array([f"text {i}" for i in range(20)], object)
        dataset["scalar"][:] = 3
    return tmp_path / "in.nc"


def check_netcdf(original: Path, copy: Path) -> None:
    with h5py.File(original) as one, h5py.File(copy) as other:
        masked = one["a"][...] == np.float32(1e20)
        assert 0 < masked.sum() < masked.size
        assert ((other["a"][...] == np.float32(1e20)) == masked).all()
        assert largest_error(one["a"][...][~masked], other["a"][...][~masked]) <= 1e-3
        for name in ("b", "c"):
            assert largest_error(one[name][...], other[name][...]) <= 1e-3
        for name in ("k", "s", "scalar"):
            assert np.array_equal(one[name][()], other[name][()])


def test_nccopy_with_and_without_the_filter_option(tmp_path: Path, netcdf_file: Path, tool: Tool) -> None:
    """-F puts the filter on, nccopy alone feeds the stored form back, -c asks for other chunks."""
    copies = [tmp_path / f"{i}.nc" for i in range(3)]
    options = [part for name in "abc" for part in ("-F", f"{name},{FILTER_ID},1,1,1,0.001d")]
    tool("nccopy", *options, "-F", f"k,{FILTER_ID},1,2,0", netcdf_file, copies[0])
    tool("nccopy", copies[0], copies[1])
    tool("nccopy", "-c", "a:3,10,10", copies[1], copies[2])
    user = words()[:5]
    expected = {
        "a": stored(user, "f4", (1, 20, 30)),
        "b": stored(user, "f8", (20, 30)),
        "c": stored(user, "f4", (20, 30), big_endian=True),
        "k": stored(lossless(), "i4", (20, 30)),
    }
    for copy, chunk in zip(copies, [(1, 20, 30), (1, 20, 30), (3, 10, 10)], strict=True):
        expected["a"] = stored(user, "f4", chunk)
        check_netcdf(netcdf_file, copy)
        with h5py.File(copy) as file:
            assert {name: cd_values(file[name]) for name in expected} == expected
            assert all(frames(file[name]) for name in expected)


@pytest.mark.parametrize(
    "option",
    [
        f"a,{FILTER_ID},1,1,1,0.001",  # no d: parsed as the integer 0
        f"k,{FILTER_ID},1,1,1,0.001d",
        f"a,{FILTER_ID},1,99,1,0.001d",
        f"b,{FILTER_ID},1,1,1,-1d",
        f"a,{FILTER_ID},1,1,1,nand",
        f"a,{FILTER_ID},1,1,1,infd",
    ],
)
def test_nccopy_fails_where_the_filter_refuses(tmp_path: Path, netcdf_file: Path, tool: Tool, option: str) -> None:
    said = tool("nccopy", "-F", option, netcdf_file, tmp_path / "out.nc", check=False)
    assert "HDF error" in said


def test_netcdf_typed_parameters_make_the_same_words(tmp_path: Path, netcdf_file: Path, tool: Tool) -> None:
    """0.001d is [low, high], as our layout has it."""
    tool("nccopy", "-F", f"b,{FILTER_ID},1,1,1,0.001d,0", netcdf_file, tmp_path / "out.nc")
    with h5py.File(tmp_path / "out.nc") as file:
        assert cd_values(file["b"]) == stored(words(1e-3), "f8", (20, 30))
