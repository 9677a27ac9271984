# SPDX-License-Identifier: BSD-3-Clause
"""Regions keep their tighter bound, in arrays that Python writes and in files; what cannot hold is refused or named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import pyfilter
from pyfilter import Adaptive, Cuszp2, Guarantee, HierarchicalDelta, Lorenzo, Region, netcdf
from pyfilter.errors import InvalidArgument, Unsupported
from pyfilter.regions import parse_region
from pyfilter.rewrite import Rules, compress_file

from .support import field
from .test_cli import run

CODECS = [Cuszp2, HierarchicalDelta, Lorenzo, Adaptive]
BOX = (slice(10, 40), slice(None, 70))


def cloud() -> NDArray[Any]:
    """Return a cloud fraction: many values at both ends of [0, 1], others between."""
    noise = np.random.default_rng(3).normal(0, 0.05, (120, 160))
    return np.asarray(np.clip(0.5 + 0.9 * field((120, 160)) + noise, 0, 1), dtype="f4")


@pytest.mark.parametrize("cls", CODECS)
@pytest.mark.parametrize("tight", [0.0, 0.0004])
def test_create_dataset_keeps_regions_ranges_and_write_keeps_them_again(tmp_path: Path, cls: Any, tight: float) -> None:
    values, bound = cloud(), 0.03
    promise = Guarantee(0, 1, sign=True, regions=(Region(tight, BOX),))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        pyfilter.create_dataset(file, "clt", values, cls(absolute=bound), chunks=(50, 60), guarantee=promise)
        pyfilter.create_dataset(file, "plain", values, cls(absolute=bound), chunks=(50, 60))
    for turn in range(2):
        with h5py.File(tmp_path / "a.h5", "r+") as file:
            after = file["clt"][()]
            assert pyfilter.verify(values, after, bound).ok
            assert pyfilter.verify(values[BOX], after[BOX], tight).ok
            assert 0 <= after.min() <= after.max() <= 1
            assert not np.any(after[values == 0])
            assert not pyfilter.verify(values[80:], after[80:], 0.0004).ok  # the rest has the wide bound
            assert not pyfilter.verify(values[BOX], file["plain"][BOX], 0.0004).ok
            values = values[::-1].copy() if turn == 0 else values
            pyfilter.write(file["clt"], values)


def test_plain_slices_are_named_by_verify(tmp_path: Path) -> None:
    values = cloud()
    with h5py.File(tmp_path / "o.h5", "w") as file:
        file["clt"] = values
    with h5py.File(tmp_path / "a.h5", "w") as file:
        promise = Guarantee(regions=(Region(0.0, BOX),))
        pyfilter.create_dataset(file, "clt", values, Lorenzo(absolute=0.03), guarantee=promise)
    run("verify", tmp_path / "o.h5", tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        file["clt"][...] = values
    out = run("verify", tmp_path / "o.h5", tmp_path / "a.h5", status=1)
    assert "0 in 10:40,0:70" in out
    assert "a program that does not know of it wrote B" in out


def test_what_cannot_hold_is_refused(tmp_path: Path) -> None:
    values, promise = cloud(), Guarantee(0, 1)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        with pytest.raises(Unsupported, match="cannot be held, as HDF5 itself makes its chunks"):
            pyfilter.create_dataset(file, "a", values, Lorenzo(absolute=0.03), fletcher32=True, guarantee=promise)
        assert "a" not in file
        pyfilter.create_dataset(file, "b", values, Lorenzo(absolute=0.03), guarantee=promise)
        with pytest.raises(Unsupported, match="only for values of float32, got float64"):
            pyfilter.write(file["b"], values.astype("f8"))
        for region, reason in [
            (Region(0.1, (slice(0, 3),)), "has 2 axes"),
            (Region(0.1, (slice(500, 600), slice(None))), "has no values"),
            (Region(0.1, mask="land"), "no dataset 'land'"),
            (Region(0.1, mask="b"), "must be of integers"),
        ]:
            with pytest.raises(InvalidArgument, match=reason):
                pyfilter.create_dataset(
                    file, "c", values, Lorenzo(absolute=1.0), guarantee=Guarantee(regions=(region,))
                )
            assert "c" not in file
    for wrong in ({"bound": -1.0, "mask": "m"}, {"bound": 1.0}, {"bound": 1.0, "mask": "m", "box": ((0, 1),)}):
        with pytest.raises(InvalidArgument):
            Region(**wrong)
    with pytest.raises(InvalidArgument, match="low <= high"):
        Guarantee(1, 0)


def test_masks_and_boxes_on_the_command_line(tmp_path: Path) -> None:
    netCDF4 = pytest.importorskip("netCDF4")
    values = np.tile(np.stack([cloud(), cloud()[::-1]]) * 10, (1, 2, 2))
    land = np.zeros((240, 320), "i1")
    land[130:135, 200:] = 1
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as file:
        for name, extent in zip("tyx", values.shape, strict=True):
            file.createDimension(name, extent)
        file.createVariable("land", "i1", ("y", "x"))[:] = land
        file.createVariable("tas", "f4", ("t", "y", "x"), chunksizes=(1, 120, 160))[:] = values
    (tmp_path / "b.toml").write_text(
        '[variables]\ntas = "absolute:0.5"\n[regions]\n"ta*" = ["0.001@/land"]\nnone = []\n'
    )
    for n, how in enumerate(
        [
            ("--config", tmp_path / "b.toml"),
            ("--var", "tas=lorenzo:absolute:0.5", "--region", "tas=0.001@land", "--region", "tas=0@1:,0:5,:"),
        ]
    ):
        out = run("compress", tmp_path / "a.nc", tmp_path / "b.nc", *how)
        assert ("none" in out) == (n == 0)  # what nothing has is said
        with h5py.File(tmp_path / "b.nc") as file:
            after = file["tas"][()]
            assert "lossy_compression_regions" in file["tas"].attrs
        assert pyfilter.verify(values, after, 0.5).ok
        assert pyfilter.verify(values[:, land != 0], after[:, land != 0], 0.001).ok
        assert not pyfilter.verify(values, after, 0.1).ok
        if n:
            assert np.array_equal(values[1, :5], after[1, :5])
        run("verify", tmp_path / "a.nc", tmp_path / "b.nc")
    for text in ("tas", "tas=1", "tas=x@0:1", "tas=-1@0:1,:,:", "tas=0.1@0:1:2", "=1@land"):
        with pytest.raises(InvalidArgument, match="region must be"):
            run("compress", tmp_path / "a.nc", tmp_path / "c.nc", "--absolute", "0.5", "--region", text)


def test_files_of_xarray_and_netcdf4(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    values = cloud()
    path = tmp_path / "x.nc"
    xarray.Dataset({"clt": (("y", "x"), values), "other": (("y", "x"), values)}).to_netcdf(path, engine="h5netcdf")
    promise = {"clt": Guarantee(0, 1, regions=(Region(0.0, BOX),))}
    report = netcdf.compress_file(path, {"clt": Lorenzo(absolute=0.03)}, promise)
    assert report.ok
    with xarray.open_dataset(path, engine="h5netcdf") as found:
        after = found["clt"].values
        assert np.array_equal(found["other"].values, values)
        assert found["clt"].attrs["lossy_compression_guarantees"].startswith("valid range 0 to 1, 0 in 10:40")
    assert np.array_equal(after[BOX], values[BOX])
    assert 0 <= after.min() <= after.max() <= 1
    before = path.read_bytes()
    with pytest.raises(InvalidArgument, match="compressed with loss already"):
        netcdf.compress_file(path, {"clt": Lorenzo(absolute=0.03)}, promise)
    with pytest.raises(InvalidArgument, match="has a guarantee and no codec"):
        netcdf.compress_file(path, {}, promise)
    assert path.read_bytes() == before


def test_integers(tmp_path: Path) -> None:
    values = (cloud() * 1000).astype("i4")
    promise = Guarantee(0, 1000, regions=(Region(2.5, BOX), Region(0.5, (slice(100, 110), slice(None)))))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        pyfilter.create_dataset(file, "n", values, HierarchicalDelta(absolute=30), chunks=(20, 40), guarantee=promise)
    with h5py.File(tmp_path / "a.h5") as file:
        after = file["n"][()]
    assert np.abs(after - values).max() > 2
    assert np.abs(after - values)[BOX].max() <= 2
    assert np.array_equal(after[100:110], values[100:110])
    assert 0 <= after.min() <= after.max() <= 1000


@settings(max_examples=80, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(CODECS),
    st.sampled_from(["f4", "f8"]),
    st.floats(1e-4, 10),
    st.floats(0, 2),
    st.tuples(*[st.integers(0, 22)] * 2).map(sorted),
    st.tuples(*[st.integers(0, 32)] * 2).map(sorted),
    st.booleans(),
)
def test_every_value_is_within_the_bound_of_its_place(
    seed: int, cls: Any, dtype: str, bound: float, part: float, rows: list[int], columns: list[int], masked: bool
) -> None:
    rng = np.random.default_rng(seed)
    values = np.asarray(rng.normal(0, 10.0 ** rng.integers(-3, 4), (23, 33)).cumsum(1), dtype)
    values[rng.random(values.shape) < 0.02] = np.nan
    tight = bound * part
    inside = np.zeros(values.shape, "u1")
    inside[rows[0] : rows[1] + 1, columns[0] : columns[1] + 1] = 1
    box = ((rows[0], rows[1] + 1), (columns[0], columns[1] + 1))
    with h5py.File("any.h5", "w", driver="core", backing_store=False) as file:
        file["m"] = inside
        region = Region(tight, mask="m") if masked else Region(tight, box)
        promise = Guarantee(-5, 7, sign=True, regions=(region,))
        codec = cls(absolute=bound)
        after = pyfilter.create_dataset(file, "v", values, codec, chunks=(8, 16), guarantee=promise)[()]
        assert not promise.broken(values, after).any()
    assert pyfilter.verify(values, after, bound).ok
    assert pyfilter.verify(values[inside != 0], after[inside != 0], tight).ok


def test_texts_of_regions() -> None:
    for text in ("0.001@0:10,:,20:", "0.0@/land/mask", "1e-300@-5:"):
        assert str(parse_region(str(parse_region(text)))) == str(parse_region(text))


def test_compress_checks_regions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["clt"] = cloud()
    monkeypatch.setattr(Guarantee, "_tightest", lambda self, extents, origin: 1.0)
    rules = Rules(Lorenzo(absolute=0.03), regions={"clt": [Region(0.0, BOX)]})
    assert not compress_file(tmp_path / "a.h5", tmp_path / "b.h5", rules).ok
    assert not (tmp_path / "b.h5").exists()
