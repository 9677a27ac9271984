# SPDX-License-Identifier: BSD-3-Clause
"""codec_of and check: what is stored, and what went wrong in silence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import pyfilter
from pyfilter import Cuszp2, HierarchicalDelta, Lossless

from .support import clean_environment, field, run_script

BOUND = Cuszp2(absolute=1e-3)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with one healthy dataset and two that are none of ours."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        pyfilter.create_dataset(file, "group/good", field((100, 90)), BOUND, chunks=(32, 40), maxshape=(None, 90))
        file.create_dataset("gzip", data=field((100, 90)), compression="gzip")
        file["scalar"] = 1.0
        file["link"] = file["group/good"]
    return tmp_path / "a.h5"


def problems(target: Any) -> list[tuple[str, str, int]]:
    return [(item.dataset, item.problem, item.chunks) for item in pyfilter.check(target)]


@pytest.mark.parametrize(
    "codec",
    [
        BOUND,
        Cuszp2(relative=0.5, mode="fixed", block_dims=2),
        HierarchicalDelta(relative=0.5, predictor="columns", outliers="off"),
        Lossless(block_dims=2),
    ],
)
def test_codec_of_gives_the_codec_back(tmp_path: Path, codec: pyfilter.Codec) -> None:
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file.create_dataset("a", data=field((30, 40)), compression=codec)
        assert pyfilter.codec_of(file["a"]) == codec


def test_codec_of_others_is_none(path: Path) -> None:
    with h5py.File(path) as file:
        assert pyfilter.codec_of(file["gzip"]) is None
        assert pyfilter.codec_of(file["scalar"]) is None


@pytest.mark.parametrize("thing", [None, "a", np.zeros(3)])
def test_codec_of_needs_a_dataset(thing: Any) -> None:
    with pytest.raises(TypeError, match=r"h5py\.Dataset, h5netcdf"):
        pyfilter.codec_of(thing)


def test_a_healthy_file_has_no_findings(path: Path) -> None:
    assert pyfilter.check(path) == []
    assert pyfilter.check(str(path)) == []
    with h5py.File(path) as file:
        assert pyfilter.check(file) == pyfilter.check(file["group"]) == pyfilter.check(file["group/good"]) == []


def test_chunks_written_past_the_filter_are_found(path: Path) -> None:
    with h5py.File(path, "r+") as file:  # as other programs may: HDF5 itself refuses to write without the filter
        dataset = file["group/good"]
        dataset.resize((164, 90))
        raw = np.full(dataset.chunks, 1.5, dataset.dtype).tobytes()
        for row in range(128, 164, dataset.chunks[0]):
            for column in range(0, 90, dataset.chunks[1]):
                dataset.id.write_direct_chunk((row, column), raw, 1)
    found = problems(path)
    assert found == [("/group/good", "stored raw", 6)]
    assert "6 chunks" in str(pyfilter.check(path)[0])
    with h5py.File(path) as file:  # the values are right all the same
        assert np.all(file["group/good"][128:] == 1.5)
        assert np.all(pyfilter.read(file["group/good"])[128:] == 1.5)


def test_a_dataset_made_without_the_plugin_is_found(tmp_path: Path) -> None:
    script = """
import sys, h5py, numpy as np
from h5py import h5d, h5p, h5s, h5t, h5z
words = tuple(map(int, sys.argv[2:]))
with h5py.File(sys.argv[1], "w") as file:
    for name, first in (("plain", False), ("shuffled", True)):
        dcpl = h5p.create(h5p.DATASET_CREATE)
        dcpl.set_chunk((10,))
        if first:
            dcpl.set_shuffle()
        dcpl.set_filter(52907, h5z.FLAG_OPTIONAL, words)
        made = h5d.create(file.id, name.encode(), h5t.IEEE_F32LE, h5s.create_simple((20,)), dcpl)
        h5py.Dataset(made)[...] = np.arange(20)
"""
    run_script(script, tmp_path / "b.h5", *map(str, BOUND.filter_options))
    assert problems(tmp_path / "b.h5") == [
        ("/plain", "stored raw", 2),
        ("/plain", "not configured", 0),
        ("/shuffled", "stored raw", 2),
        ("/shuffled", "filter order", 0),
        ("/shuffled", "not configured", 0),
    ]
    assert "shuffle comes before pyfilter" in str(pyfilter.check(tmp_path / "b.h5")[3])


def test_settings_of_another_release_are_found(tmp_path: Path) -> None:
    script = """
import sys, h5py
with h5py.File(sys.argv[1], "w") as file:
    file.create_dataset("a", (20,), "f4", chunks=(10,), compression=52907, compression_opts=(99, 1, 1),
                        allow_unknown_filter=True)
"""
    run_script(script, tmp_path / "b.h5")
    assert ("/a", "unreadable settings", 0) in problems(tmp_path / "b.h5")


def test_filters_of_others_are_looked_at(tmp_path: Path) -> None:
    """A lossy one behind shuffle, chunks that it did not get, and one that is nowhere to be found."""
    with h5py.File(tmp_path / "b.h5", "w") as file:
        dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        dcpl.set_chunk((10,))
        dcpl.set_shuffle()
        dcpl.set_filter(32028, h5py.h5z.FLAG_OPTIONAL, (1,))
        space = h5py.h5s.create_simple((20,))
        made = h5py.h5d.create(file.id, b"sperr", h5py.h5t.IEEE_F32LE, space, dcpl)
        made.write_direct_chunk((0,), bytes(40), 2)
        dcpl.remove_filter(0)
        dcpl.set_filter(400, h5py.h5z.FLAG_OPTIONAL, (1,))
        h5py.h5d.create(file.id, b"unknown", h5py.h5t.IEEE_F32LE, space, dcpl)
    found = {str(item) for item in pyfilter.check(tmp_path / "b.h5")}
    assert {text.split(":")[0] for text in found} == {"/sperr", "/unknown"}
    assert any("stored raw (1 chunks): written without sperr" in text for text in found)
    assert any("shuffle comes before sperr" in text for text in found)
    assert any("/unknown: filter missing: filter 400 is not known to h5py's HDF5" in text for text in found)


def test_a_process_without_the_library_says_that_the_filter_is_missing(path: Path) -> None:
    script = """
import sys, warnings
warnings.simplefilter("ignore")
from pyfilter import checking, plugin
plugin.refresh = lambda: None  # the library is what is missing here
print([(item.dataset, item.problem) for item in checking.check(sys.argv[1])])
"""
    result = run_script(script, path, env=clean_environment(PYFILTER_LIBRARY="/nonexistent"))
    assert "[('/group/good', 'filter missing')]" in result.stdout


@pytest.mark.parametrize("thing", [None, 5, np.zeros(3)])
def test_check_needs_a_file_or_a_dataset(thing: Any) -> None:
    with pytest.raises(TypeError, match="path"):
        pyfilter.check(thing)


def test_check_of_no_file() -> None:
    with pytest.raises(OSError, match="nothing"):
        pyfilter.check("nothing.h5")
