# SPDX-License-Identifier: BSD-3-Clause
"""Valid ranges, signs and zeros are kept besides the bound, in files that any reader reads."""

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
from pyfilter import Adaptive, Auto, Cuszp2, HierarchicalDelta, Lorenzo
from pyfilter._chunks import pipeline, transfer
from pyfilter.errors import InvalidArgument, Unsupported
from pyfilter.guarantees import Guarantee
from pyfilter.rewrite import Rules, compress_file

from .support import field
from .test_cli import run

RNG = np.random.default_rng(9)
CODECS = [Cuszp2, HierarchicalDelta, Lorenzo, Adaptive]


def cloud(dtype: str = "f4") -> NDArray[Any]:
    """Return a cloud fraction: many values at both ends of [0, 1], others between."""
    values = 0.5 + 0.9 * field((120, 160)).astype(dtype) + RNG.normal(0, 0.05, (120, 160))
    return np.asarray(np.clip(values, 0, 1), dtype=dtype)


@pytest.mark.parametrize("cls", CODECS)
@pytest.mark.parametrize("dtype", ["f4", "f8", ">f4"])
@pytest.mark.parametrize("bound", [0.03, 0.0007])
def test_a_stated_range_is_kept(tmp_path: Path, cls: Any, dtype: str, bound: float) -> None:
    values = cloud(dtype)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("clt", data=values, chunks=(50, 60))
        file["clt"].attrs["valid_range"] = np.array([0, 1], "f4")
    report = compress_file(tmp_path / "a.h5", tmp_path / "b.h5", Rules(cls(absolute=bound), valid_range=True))
    assert report.ok
    with h5py.File(tmp_path / "b.h5") as file:
        after = file["clt"][()]
        assert pyfilter.verify(values, after, bound).ok
        assert pyfilter.codec_of(file["clt"]) == cls(absolute=bound)
    assert (after.min(), after.max()) >= (0, 0)
    assert after.max() <= 1
    without = compress_file(tmp_path / "a.h5", tmp_path / "c.h5", Rules(cls(absolute=bound)))
    assert report.rows[0].bytes_out < 1.6 * without.rows[0].bytes_out


def test_without_it_values_leave_their_range(tmp_path: Path) -> None:
    values = cloud()
    decoded = pyfilter.decode(pyfilter.encode(values, Lorenzo(absolute=0.03)))
    assert decoded.max() > 1  # else the tests above would show nothing
    assert Guarantee(0.0, 1.0).broken(values, decoded).any()


@pytest.mark.parametrize("cls", CODECS)
def test_signs_and_zeros_are_kept(tmp_path: Path, cls: Any) -> None:
    values = field((120, 160)) * 0.1
    values[40:60] = 0
    values[61::7] = RNG.normal(0, 0.01, values[61::7].shape)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["u"] = values
    report = compress_file(tmp_path / "a.h5", tmp_path / "b.h5", Rules(cls(absolute=0.02), keep_sign=True))
    assert report.ok
    with h5py.File(tmp_path / "b.h5") as file:
        after = file["u"][()]
    assert not np.any(after * values < 0)
    assert not np.any(after[values == 0])
    assert np.abs(after.astype("f8") - values).max() <= 0.02


def test_missing_values_and_values_outside_are_as_before(tmp_path: Path) -> None:
    values = cloud()
    values[3:9, 5:50] = -999
    values[20, 20:30] = np.nan
    values[30, 30] = 1.5  # outside already: it keeps the bound
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("clt", data=values, fillvalue=-999)
        file["clt"].attrs["valid_min"], file["clt"].attrs["valid_max"] = 0.0, 1.0
    report = compress_file(
        tmp_path / "a.h5", tmp_path / "b.h5", Rules(Auto(absolute=0.01), choose=True, valid_range=True)
    )
    assert report.ok
    with h5py.File(tmp_path / "b.h5") as file:
        after = file["clt"][()]
    assert np.all(after[3:9, 5:50] == -999)
    assert np.all(np.isnan(after[20, 20:30]))
    assert after[30, 30] == pytest.approx(1.5, abs=0.01)
    others = np.isfinite(values) & (values != -999) & (values <= 1)
    assert 0 <= after[others].min() <= after[others].max() <= 1


def test_what_cannot_be_moved_is_stored_bit_for_bit(tmp_path: Path) -> None:
    values = np.linspace(0, 1, 5000, dtype="f4")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["v"] = values
        file.create_dataset("n", data=np.arange(5000) % 7, chunks=(5000,))
    # a range narrower than the bound, and integers
    named = {"v": Lorenzo(absolute=3.0), "n": HierarchicalDelta(absolute=3)}
    rules = Rules(named=named, ranges={"v": (0.0, 1.0), "n": (0.0, 6.0)})
    report = compress_file(tmp_path / "a.h5", tmp_path / "b.h5", rules)
    assert report.ok
    with h5py.File(tmp_path / "b.h5") as file:
        assert 0 <= file["v"][()].min() <= file["v"][()].max() <= 1
        assert 0 <= file["n"][()].min() <= file["n"][()].max() <= 6


def test_a_broken_guarantee_is_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["clt"] = cloud()
    honest = transfer.encode_chunk
    monkeypatch.setattr(Guarantee, "encode", lambda self, how, values, origin: honest(how, values))
    rules = Rules(Lorenzo(absolute=0.03), ranges={"clt": (0.0, 1.0)})
    assert not compress_file(tmp_path / "a.h5", tmp_path / "b.h5", rules).ok
    assert not (tmp_path / "b.h5").exists()


def test_checksums_are_refused_by_name(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("clt", data=cloud(), chunks=(120, 160), fletcher32=True)
    rules = Rules(Lorenzo(absolute=0.03), ranges={"clt": (0.0, 1.0)})
    with pytest.raises(Unsupported, match="/clt: valid range 0 to 1 cannot be held"):
        compress_file(tmp_path / "a.h5", tmp_path / "b.h5", rules)


def test_on_the_command_line(tmp_path: Path) -> None:
    netCDF4 = pytest.importorskip("netCDF4")
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as file:
        file.createDimension("y", 120)
        file.createDimension("x", 160)
        file.createVariable("clt", "f4", ("y", "x"))[:] = cloud()
    paths = tmp_path / "a.nc", tmp_path / "b.nc"
    run("compress", *paths, "--absolute", "0.03", "--codec", "lorenzo", "--range", "clt=:1", "--keep-sign")
    with netCDF4.Dataset(tmp_path / "b.nc") as file:
        assert file["clt"].lossy_compression_guarantees == "valid range -inf to 1, signs and zeros"
        assert 0 <= file["clt"][:].min() <= file["clt"][:].max() <= 1
    for text in ("clt", "clt=1", "=0:1", "clt=2:1", "clt=a:1"):
        with pytest.raises(InvalidArgument, match="--range must be NAME=LOW:HIGH"):
            run("compress", *paths, "--absolute", "0.03", "--range", text)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=200),
    st.floats(1e-5, 1e3),
    st.tuples(st.floats(-1e5, 1e5), st.floats(0, 1e5)),
    st.sampled_from(CODECS),
    st.booleans(),
)
def test_any_values_keep_it(
    values: list[float], bound: float, range_: tuple[float, float], cls: Any, sign: bool
) -> None:
    array = np.array(values, dtype="f4")
    guarantee = Guarantee(range_[0], range_[0] + range_[1], sign)
    with h5py.File("any.h5", "w", driver="core", backing_store=False) as file:
        dataset = file.create_dataset("v", data=array, chunks=array.shape, **cls(absolute=bound))
        how = pipeline.chunk_codec(dataset)
        assert how is not None
        decoded = pyfilter.decode(guarantee.encode(how, array, (0,)))
    assert not guarantee.broken(array, decoded).any()
    assert pyfilter.verify(array, decoded, bound).ok
