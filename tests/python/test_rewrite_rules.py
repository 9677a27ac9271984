# SPDX-License-Identifier: BSD-3-Clause
"""Whole files compressed: which dataset gets what, missing values, and nothing left behind where it fails."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import pyfilter
from pyfilter import Cuszp2, Lossless
from pyfilter.rewrite import Rules, compress_file, job
from pyfilter.rewrite import plan as plans
from pyfilter.rewrite.copy import FileCopy

from .rewriting import BOUND, compress, rows
from .support import clean_environment, field

RELATIVE = Cuszp2(relative=1e-3)


def test_named_datasets_and_rules(everything: Path) -> None:
    named = {"zebra": Lossless(), "/group/inner/small": RELATIVE, "group/inner/integers": Lossless(), "sums": None}
    _, report = compress(everything, Rules(BOUND, named))
    found = rows(report)
    assert found["/zebra"].codec == "Lossless()"
    assert found["/group/inner/small"].codec is not None
    assert found["/group/inner/small"].bound == pytest.approx(1e-3)
    assert found["/group/inner/integers"].codec == "Lossless()"
    assert (found["/group/inner/sums"].codec, found["/group/inner/sums"].note) == (None, "left as it is")
    assert found["/apple"].codec == repr(BOUND)
    _, only = compress(everything, Rules(named={"apple": BOUND}))
    assert [row.path for row in only.compressed] == ["/apple"]


@pytest.mark.parametrize(
    ("name", "codec", "error", "text"),
    [
        ("nothing", BOUND, ValueError, "no dataset 'nothing'"),
        ("scalar", BOUND, TypeError, "scalar"),
        ("none", BOUND, TypeError, "no values"),
        ("integers", BOUND, TypeError, "int64"),
        ("flags", Lossless(), TypeError, "bool"),
        ("strings", Lossless(), TypeError, "type"),
    ],
)
def test_named_datasets_that_cannot_be_compressed(
    everything: Path, name: str, codec: pyfilter.Codec, error: type[Exception], text: str
) -> None:
    target = everything.with_name("out.h5")
    with pytest.raises(error, match=text):
        compress_file(everything, target, Rules(named={name: codec}))
    assert sorted(item.name for item in everything.parent.iterdir()) == ["everything.h5"]


def test_a_name_that_means_several_needs_a_path(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["one/t"] = field((50, 50))
        file["two/t"] = field((50, 50))
    with pytest.raises(ValueError, match="'t' means 2 datasets"):
        compress_file(tmp_path / "a.h5", tmp_path / "b.h5", Rules(named={"t": BOUND}))
    _, report = compress(tmp_path / "a.h5", Rules(named={"two/t": BOUND}))
    assert [row.path for row in report.compressed] == ["/two/t"]


@pytest.mark.parametrize("chunks", [None, (7, 100), (64, 64)])
@pytest.mark.parametrize("filters", [{}, {"compression": "lzf"}, {"compression": BOUND}])
def test_any_storage_is_read(tmp_path: Path, chunks: Any, filters: dict[str, Any]) -> None:
    values = field((300, 400))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("a", data=values, chunks=chunks, **filters)
    with h5py.File(tmp_path / "a.h5") as file:
        stored = file["a"][()]
    target, _ = compress(tmp_path / "a.h5")
    with h5py.File(target) as file:
        assert pyfilter.verify(stored, file["a"], BOUND).ok


def test_external_virtual_and_sparse_datasets(tmp_path: Path) -> None:
    values = field((60, 70))
    values.tofile(tmp_path / "raw.bin")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset(
            "external", (60, 70), "f4", external=[(str(tmp_path / "raw.bin"), 0, h5py.h5f.UNLIMITED)], fillvalue=5.0
        )
        file["plain"] = values
        layout = h5py.VirtualLayout((60, 70), "f4")
        layout[:] = h5py.VirtualSource(file["plain"])
        file.create_virtual_dataset("virtual", layout, fillvalue=-1.0)
        sparse = file.create_dataset("sparse", (1000, 1000), "f4", chunks=(100, 100), fillvalue=-7.0)
        sparse[150:160, 150:160] = values[:10, :10]
    target, report = compress(tmp_path / "a.h5")
    assert {row.path for row in report.compressed} == {"/external", "/plain", "/virtual", "/sparse"}
    with h5py.File(target) as file:
        for name in ("external", "virtual", "plain"):
            assert pyfilter.verify(values, file[name], BOUND).ok
        assert (file["external"].fillvalue, file["virtual"].fillvalue, file["sparse"].fillvalue) == (5, -1, -7)
        assert np.all(file["sparse"][:150] == -7.0)


@pytest.mark.parametrize("attribute", ["_FillValue", "missing_value"])
def test_declared_missing_values_become_the_fill_value(tmp_path: Path, attribute: str) -> None:
    values = field((100, 90))
    values[20:40] = -999
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["a"] = values
        file["a"].attrs[attribute] = np.float32(-999)
    target, report = compress(tmp_path / "a.h5", Rules(RELATIVE))
    real = values[values > -100]
    assert rows(report)["/a"].bound == pytest.approx(float(np.ptp(real)) * 1e-3, rel=1e-5)
    with h5py.File(target) as file:
        assert file["a"].fillvalue == -999
        assert np.all(file["a"][20:40] == -999)


def test_a_missing_value_takes_the_place_of_a_fill_value_not_in_use(tmp_path: Path) -> None:
    values = field((100, 90))
    values[20:40] = -999
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("a", data=values, fillvalue=9.96921e36)
        file["a"].attrs["missing_value"] = [-999.0]
        file.create_dataset("b", data=values, fillvalue=9.96921e36)
        file["b"].attrs["missing_value"] = -999.0
        file["b"].attrs["_FillValue"] = np.float32(9.96921e36)
        file.create_dataset("c", data=values, fillvalue=9.96921e36)
        file["c"].attrs["missing_value"] = "none"
    target, report = compress(tmp_path / "a.h5", Rules(RELATIVE))
    with h5py.File(target) as file:
        assert file["a"].fillvalue == -999
        assert np.all(file["a"][20:40] == -999)
        assert np.all(file["b"][20:40] == -999)
        assert file["b"].fillvalue == np.float32(9.96921e36)
    assert "missing_value" in rows(report)["/b"].note
    assert rows(report)["/b"].codec == "Lossless()"
    assert rows(report)["/c"].note == ""


def test_a_field_without_a_range_is_kept_lossless(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["constant"] = np.full((100, 90), 273.0)
        file["nothing"] = np.full((100, 90), np.nan)
        file["noise"] = np.random.default_rng(1).normal(size=(100, 90))
    target, report = compress(tmp_path / "a.h5", Rules(RELATIVE))
    for name in ("constant", "nothing"):
        assert rows(report)[f"/{name}"].codec == "Lossless()"
        assert "equal or missing" in rows(report)[f"/{name}"].note
    with h5py.File(target) as file:
        assert np.all(file["constant"][()] == 273.0)
        assert np.all(np.isnan(file["nothing"][()]))


def test_the_input_itself_is_refused_as_output(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["a"] = field((50, 50))
    (tmp_path / "b.h5").symlink_to(tmp_path / "a.h5")
    for name in ("a.h5", "b.h5"):
        with pytest.raises(ValueError, match="input itself"):
            compress_file(tmp_path / "a.h5", tmp_path / name, Rules(BOUND))


def test_what_is_no_such_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("no data", encoding="utf-8")
    with pytest.raises(OSError, match="signature"):
        compress_file(tmp_path / "a.txt", tmp_path / "b.h5", Rules(BOUND))
    with pytest.raises(FileNotFoundError):
        compress_file(tmp_path / "nothing.h5", tmp_path / "b.h5", Rules(BOUND))
    assert [item.name for item in tmp_path.iterdir()] == ["a.txt"]


def test_a_broken_bound_leaves_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["a"] = field((100, 90))
    (tmp_path / "b.h5").write_bytes(b"older result")
    honest = plans.make_plan

    def too_tight(file: h5py.File, rules: Rules) -> list[plans.Decision]:
        decisions = honest(file, Rules(Cuszp2(absolute=1e-2)))
        file_copy = FileCopy.run

        def run_and_claim_more(self: FileCopy) -> None:
            """Write with a bound of 1e-2 and then check 1e-3."""
            file_copy(self)
            decisions[:] = honest(file, rules)

        monkeypatch.setattr(FileCopy, "run", run_and_claim_more)
        return decisions

    monkeypatch.setattr("pyfilter.rewrite.job.make_plan", too_tight)
    report = compress_file(tmp_path / "a.h5", tmp_path / "b.h5", Rules(BOUND))
    assert not report.ok
    assert (tmp_path / "b.h5").read_bytes() == b"older result"
    assert sorted(item.name for item in tmp_path.iterdir()) == ["a.h5", "b.h5"]


def start(tmp_path: Path) -> subprocess.Popen[bytes]:
    """Start a run that takes a while, and wait until it is writing."""
    if not (tmp_path / "a.h5").exists():
        with h5py.File(tmp_path / "a.h5", "w") as file:
            for index in range(8):
                file[f"v{index}"] = field((1000, 1000), seed=index)
        (tmp_path / "b.h5").write_bytes(b"older result")
    names = [str(tmp_path / name) for name in ("a.h5", "b.h5")]
    command = [sys.executable, "-m", "pyfilter", "compress", *names, "--absolute", "1e-6"]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # the child's, where this process ignores it
    try:
        process = subprocess.Popen(command, env=clean_environment(), stdout=subprocess.DEVNULL)
    finally:
        signal.signal(signal.SIGINT, before)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob(".b.h5.*/result")) and time.monotonic() < deadline:
        time.sleep(0.005)
    return process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_ended_run_leaves_nothing(tmp_path: Path, number: int) -> None:
    process = start(tmp_path)
    process.send_signal(number)
    assert process.wait(60) == -number
    assert (tmp_path / "b.h5").read_bytes() == b"older result"
    assert sorted(item.name for item in tmp_path.iterdir()) == ["a.h5", "b.h5"]


def test_a_killed_run_leaves_the_old_result_and_a_later_one_cleans_up(tmp_path: Path) -> None:
    process = start(tmp_path)
    process.send_signal(signal.SIGKILL)
    process.wait(60)
    assert (tmp_path / "b.h5").read_bytes() == b"older result"
    (left,) = tmp_path.glob(".b.h5.*.tmp")
    other = tmp_path / ".b.h5.busy.tmp"
    other.mkdir()
    for folder in (left, other):
        os.utime(folder, (0, 0))
    with job._locked(other):
        compress_file(tmp_path / "a.h5", tmp_path / "b.h5", Rules(None, {"v0": BOUND}))
    assert sorted(item.name for item in tmp_path.iterdir()) == [other.name, "a.h5", "b.h5"]
