# SPDX-License-Identifier: BSD-3-Clause
"""Datasets without values, and selections without values, of every codec."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hdf5 import support

import pyfilter
from pyfilter.errors import InvalidArgument

CODECS = [
    pyfilter.Cuszp2(absolute=0.1),
    pyfilter.Cuszp2(relative=1e-3),
    pyfilter.HierarchicalDelta(absolute=0.1),
    pyfilter.HierarchicalDelta(pointwise_relative=1e-3),
    pyfilter.Lorenzo(psnr=60),
    pyfilter.Particles(absolute=0.1),
    pyfilter.Progressive(),
    pyfilter.Auto(relative=1e-3),
    pyfilter.Lossless(),
]
every_codec = pytest.mark.parametrize("codec", CODECS, ids=repr)
#: what `codec_of` says of a dataset that was made with Auto
CHOOSING = pyfilter.Adaptive(relative=1e-3)
NAMED = [CHOOSING if isinstance(codec, pyfilter.Auto) else codec for codec in CODECS]
FULL = np.linspace(0, 9, 60, dtype="f4").reshape(20, 3)


@every_codec
@pytest.mark.parametrize("dtype", ["<f4", ">f8"])
@pytest.mark.parametrize("libver", [None, "latest"])
@pytest.mark.parametrize(
    ("shape", "maxshape", "chunks"),
    [
        ((0,), None, None),
        ((0,), (0,), (1000,)),
        ((0,), (None,), None),
        ((0,), True, (7,)),
        ((0,), (10,), (10,)),
        ((0, 5), None, None),
        ((0, 5), None, (40, 5)),
        ((0, 5), (0, None), (40, 50)),
        ((0, 5), (None, 5), True),
        ((5, 0), None, True),
        ((5, 0), (5, None), (2, 30)),
        ((0, 0, 3), None, (2, 2, 3)),
    ],
)
def test_dataset_without_values(
    tmp_path: Path, codec: pyfilter.Codec, dtype: str, libver: str | None, shape: Any, maxshape: Any, chunks: Any
) -> None:
    values = np.zeros(shape, dtype)
    with h5py.File(tmp_path / "a.h5", "w", libver=libver) as file:
        made = pyfilter.create_dataset(
            file, "g/x", values, codec, maxshape=maxshape, chunks=chunks, fillvalue=-1, attributes={"units": "K"}
        )
        pyfilter.write(made, values)
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        found = file["g/x"]
        assert found.shape == shape
        assert found.dtype == dtype
        limits = (None,) * len(shape) if maxshape is True else maxshape
        assert found.maxshape == (shape if limits is None else limits)
        assert not isinstance(chunks, tuple) or found.chunks == chunks
        assert pyfilter.codec_of(found) == NAMED[CODECS.index(codec)]
        assert found.fillvalue == -1
        assert found.attrs["units"] == "K"
        assert pyfilter.check(file) == []
        for selection in (np.s_[...], np.s_[0:0], np.s_[..., :0]):
            assert pyfilter.read(found, selection).shape == found[selection].shape
        out = np.empty(shape, dtype)
        assert pyfilter.read(found, out=out) is out
        assert pyfilter.verify(values, found).ok
        if maxshape is True:
            more = FULL[:, 0].astype(dtype)
            found.resize(more.shape)
            pyfilter.write(found, more)
            assert pyfilter.verify(more, found).ok


@every_codec
@pytest.mark.parametrize(
    "selection",
    [np.s_[0:0], np.s_[5:5, 1], np.s_[3:2], np.s_[:, 3:], np.s_[:0:2], [], np.zeros(20, bool)],
    ids=["none", "row", "behind", "columns", "step", "list", "mask"],
)
def test_selections_without_values(tmp_path: Path, codec: pyfilter.Codec, selection: Any) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = pyfilter.create_dataset(file, "x", FULL, codec)
        expected = dataset[selection]
        found = pyfilter.read(dataset, selection)
        assert found.shape == expected.shape
        assert found.dtype == expected.dtype
        assert pyfilter.read(dataset, selection, out=np.empty_like(expected)).size == 0
        assert pyfilter.verify(FULL, dataset).ok


def test_other_ways_there(tmp_path: Path) -> None:
    """Data from a dataset, another type, fletcher32, and no name."""
    with h5py.File(tmp_path / "a.h5", "w", track_order=True) as file:
        codec = pyfilter.Cuszp2(absolute=0.1)
        first = pyfilter.create_dataset(file, "a", FULL[:0], codec, dtype=">f8", fletcher32=True, track_order=True)
        assert (first.dtype, first.fletcher32, first.shape) == (">f8", True, (0, 3))
        second = pyfilter.create_dataset(file, "b", first, codec)
        assert (second.dtype, second.shape) == (">f8", (0, 3))
        pyfilter.write(second, first)
        assert pyfilter.create_dataset(file, None, FULL[:0], codec).name is None
        assert list(file) == ["a", "b"]


def test_refusals(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        codec = pyfilter.Cuszp2(absolute=0.1)
        dataset = pyfilter.create_dataset(file, "a", FULL[:0], codec)
        with pytest.raises(InvalidArgument, match="/ has 'a' already: give another name"):
            pyfilter.create_dataset(file, "a", FULL[:0], codec)
        with pytest.raises(ValueError, match=r"\(4, 4\) is not compatible with \(0, 3\)"):
            pyfilter.create_dataset(file, "b", FULL[:0], codec, chunks=(4, 4))
        with pytest.raises(InvalidArgument, match="shape"):
            pyfilter.write(dataset, np.zeros(0, "f4"))
        assert list(file) == ["a"]


def test_programs_read_and_copy_it(tmp_path: Path) -> None:
    env = support.environment(pyfilter.PLUGIN_PATH)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for number, codec in enumerate(CODECS):
            pyfilter.create_dataset(file, f"x{number}", FULL[:0], codec, chunks=(40, 3))
    assert "DATASPACE  SIMPLE { ( 0, 3 ) / ( 0, 3 ) }" in support.run_tool("h5dump", tmp_path / "a.h5", env=env)
    support.run_tool("h5repack", tmp_path / "a.h5", tmp_path / "b.h5", env=env)
    with h5py.File(tmp_path / "b.h5") as file:
        assert [pyfilter.codec_of(dataset) for dataset in file.values()] == NAMED
        assert {dataset.chunks for dataset in file.values()} == {(40, 3)}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "pyfilter", "compress", "a.h5", "c.h5", "--relative", "1e-3"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    with h5py.File(tmp_path / "c.h5") as file:
        assert {dataset.shape for dataset in file.values()} == {(0, 3)}
