# SPDX-License-Identifier: BSD-3-Clause
"""What compress chooses by itself: never larger than the input or than `nccopy -d5 -s`, each bound kept, and said."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
from numpy.typing import NDArray

import pyfilter
from pyfilter import Adaptive, Auto, Cuszp2, Lossless
from pyfilter.rewrite import Report, Rules, alternatives, compress_file
from pyfilter.rewrite.alternatives import Choice, ShuffleDeflate

from .support import field

CHOOSE = Rules(Auto(relative=1e-3), choose=True)
RNG = np.random.default_rng(5)


def grid(path: Path, values: NDArray[Any], **how: Any) -> None:
    """Write a netCDF-4 file of one variable in time, with its coordinates."""
    with netCDF4.Dataset(path, "w", format=how.pop("format", "NETCDF4")) as file:
        for name, extent in zip(("time", "y", "x"), values.shape, strict=True):
            file.createDimension(name, extent)
        axis = file.createVariable("time", "f8", ("time",))
        axis.units = "days since 2000-1-1"
        axis[:] = np.arange(values.shape[0]) / 4
        file.createVariable("v", values.dtype, ("time", "y", "x"), **how)[:] = values


def smooth(path: Path) -> None:
    grid(path, np.cumsum(field((30, 96, 128)), axis=0, dtype="f4"))


def deflated_smooth(path: Path) -> None:
    grid(path, np.repeat(field((10, 96, 128)), 3, axis=0), zlib=True, complevel=9)


def rounded(path: Path) -> None:
    grid(path, np.round(RNG.normal(280, 10, (20, 96, 128)), 1).astype("f4"))


def sparse(path: Path) -> None:
    rain = np.zeros((40, 96, 128), "f4")
    rain[7, 30:40, 50:70] = RNG.gamma(1, 3, (10, 20))
    grid(path, rain, format="NETCDF3_64BIT_OFFSET")


def counters(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["steps"] = np.arange(200_000, dtype="i8")
        file["mask"] = (field((300, 300)) > 0.3).astype("u1")
        file["points"] = np.zeros(5000, [("x", "f4"), ("id", "i4")])


def noise(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["v"] = RNG.integers(0, 1 << 32, 5000, dtype="u4").view("f4")
        file["text"] = "what it is"


MADE = [smooth, deflated_smooth, rounded, sparse, counters, noise]


def run(source: Path, rules: Rules = CHOOSE) -> tuple[Path, Report]:
    target = source.with_name(f"out_{source.name}")
    report = compress_file(source, target, rules, history=True)
    assert report.ok
    return target, report


@pytest.mark.parametrize("make", MADE)
@pytest.mark.parametrize("fast", [False, True])
def test_nothing_is_larger_than_it_was_or_than_deflate(
    tmp_path: Path, make: Callable[[Path], None], fast: bool
) -> None:
    source = tmp_path / "a.nc"
    make(source)
    target, report = run(source, Rules(Auto(relative=1e-3), choose=True, fast=fast))
    assert report.file_bytes_out == target.stat().st_size <= source.stat().st_size
    old = compress_file(source, tmp_path / "old.nc", Rules(Cuszp2(relative=1e-3)), history=True)
    assert target.stat().st_size <= old.file_bytes_out
    if shutil.which("nccopy") and make not in (counters, noise):  # it leaves out what netCDF has no type for
        subprocess.run(["nccopy", "-d5", "-s", source, tmp_path / "z.nc"], check=True)
        assert target.stat().st_size <= (tmp_path / "z.nc").stat().st_size


def test_what_each_kind_gets(tmp_path: Path) -> None:
    """HDF5's filters, or Lossless where it saves more than a few percent."""
    counters(tmp_path / "a.h5")
    target, report = run(tmp_path / "a.h5")
    rows = {row.path: row for row in report.rows}
    ours = repr(pyfilter.Lossless(effort="ratio"))
    assert {row.codec for row in rows.values()} == {repr(ShuffleDeflate()), ours}
    assert rows["/steps"].ratio > 50
    with h5py.File(tmp_path / "a.h5") as before, h5py.File(target) as after:
        for path, row in rows.items():
            assert np.array_equal(before[path][()], after[path][()])
            assert (after[path].compression == "gzip") == (row.codec != ours)
    _, fast = run(tmp_path / "a.h5", Rules(Auto(relative=1e-3), choose=True, fast=True))
    assert {row.codec for row in fast.rows} == {repr(ShuffleDeflate())}


def test_adaptive_is_chosen_where_it_is_worth_its_time(tmp_path: Path) -> None:
    noisy = np.cumsum(np.cumsum(RNG.normal(size=(128, 1024)), axis=0), axis=1).astype("f4")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["v"] = noisy + 100 * field((128, 1024))
    target, report = run(tmp_path / "a.h5")
    with h5py.File(target) as file:
        assert isinstance(pyfilter.codec_of(file["v"]), Adaptive)
    _, fast = run(tmp_path / "a.h5", Rules(Auto(relative=1e-3), choose=True, fast=True))
    assert "Adaptive" not in str(fast.rows[0].codec)
    assert fast.rows[0].bytes_out > report.rows[0].bytes_out


def test_what_a_file_has_is_kept_where_nothing_is_smaller(tmp_path: Path) -> None:
    values = np.tile(RNG.normal(size=500), 200).astype("f4")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", data=values, chunks=(50_000,), compression="gzip", compression_opts=9, shuffle=True)
    target, report = run(tmp_path / "a.h5", Rules(Auto(relative=1e-6), choose=True))
    assert (report.rows[0].codec, report.rows[0].note) == (None, "nothing else is smaller")
    with h5py.File(tmp_path / "a.h5") as before, h5py.File(target) as after:
        assert after["v"].compression_opts == 9
        assert before["v"].id.read_direct_chunk((0,)) == after["v"].id.read_direct_chunk((0,))


def test_a_file_that_cannot_gain_is_copied_byte_for_byte(tmp_path: Path) -> None:
    noise(tmp_path / "a.h5")
    target, report = run(tmp_path / "a.h5")
    if report.unchanged:
        assert target.read_bytes() == (tmp_path / "a.h5").read_bytes()
    assert target.stat().st_size <= (tmp_path / "a.h5").stat().st_size


@pytest.mark.parametrize("misled", ["kept", "deflate"])
def test_a_sample_that_misleads_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, misled: str) -> None:
    values = np.repeat(RNG.normal(size=500), 200).astype("f4")
    how: dict[str, Any] = {"compression": "gzip", "shuffle": True} if misled == "kept" else {}
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", data=values, chunks=(50_000,), **how)
    with h5py.File(tmp_path / "a.h5") as file:
        kept = file["v"].id.get_storage_size()
    wrong = Choice(Cuszp2(absolute=1e-6), kept, 10**9 if misled == "kept" else 1000, 1)
    monkeypatch.setattr(alternatives, "choose", lambda *arguments, **named: wrong)
    target, report = run(tmp_path / "a.h5", Rules(Cuszp2(absolute=1e-6), choose=True))
    assert report.rows[0].codec is not None  # a codec that was named is not replaced
    target, report = run(tmp_path / "a.h5", Rules(Auto(absolute=1e-6), choose=True))
    assert report.rows[0].codec == (None if misled == "kept" else repr(ShuffleDeflate()))
    assert report.rows[0].bytes_out <= kept
    with h5py.File(target) as file:
        assert np.array_equal(file["v"][()], values)


def test_deflated_sizes_are_those_of_hdf5(tmp_path: Path) -> None:
    values = field((300, 400))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["v"] = values
        how = {"compression": "gzip", "compression_opts": alternatives.DEFLATE_LEVEL, "shuffle": True}
        file.create_dataset("z", data=values, chunks=(100, 200), **how)
        assert alternatives.deflated_bytes(file["v"], (100, 200)) == file["z"].id.get_storage_size()


def test_lossless_and_rounded(tmp_path: Path) -> None:
    rounded(tmp_path / "a.nc")
    _, report = run(tmp_path / "a.nc", Rules(Lossless(), choose=True))
    assert all(row.max_error in (0, None) for row in report.rows)
    _, report = run(tmp_path / "a.nc")
    assert {row.path: row.rounded for row in report.rows} == {"/time": "", "/v": "multiples of 0.1"}


def test_external_and_committed_and_big_endian(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["type"] = np.dtype([("a", ">i4"), ("b", "<f8")])
        file.create_dataset("rows", (4000,), dtype=file["type"])
        file["rows"][...] = np.array([(i, i / 2) for i in range(4000)], [("a", ">i4"), ("b", "<f8")])
        file["big"] = np.arange(5000, dtype=">i4")
        file.create_dataset("checked", data=np.arange(5000), fletcher32=True, chunks=(5000,))
        file["flags"] = np.arange(5000) % 3 == 0
    target, _ = run(tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5") as before, h5py.File(target) as after:
        assert after["rows"].id.get_type().committed()
        assert after["big"].dtype == np.dtype(">i4")
        assert after["checked"].fletcher32
        for name in ("rows", "big", "checked", "flags"):
            assert np.array_equal(before[name][()], after[name][()])
            assert after[name].compression == "gzip" or pyfilter.codec_of(after[name]) == pyfilter.Lossless(
                effort="ratio"
            )
