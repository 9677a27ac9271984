# SPDX-License-Identifier: BSD-3-Clause
"""Auto: what it chooses, and that it is what it says in files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray

import pyfilter

RNG = np.random.default_rng(3)
SMOOTH = np.add.outer(np.sin(np.arange(192) / 30), np.cos(np.arange(256) / 25)).astype(np.float32)
WALK = np.cumsum(RNG.normal(size=50_000)).astype(np.float32)
NOISE = RNG.normal(size=50_000).astype(np.float32)


def chosen(values: NDArray[Any]) -> dict[str, Any]:
    info = pyfilter.frame_info(pyfilter.encode(values, pyfilter.Auto(relative=1e-3, objective="speed")))
    return dict(info.parameters)


def test_speed_takes_the_chain_unless_another_saves_a_quarter() -> None:
    rough = (SMOOTH + 0.02 * RNG.normal(size=SMOOTH.shape)).astype(np.float32)
    assert chosen(rough)["predictor"] == "chain"
    assert chosen(SMOOTH)["predictor"] == "lorenzo2d"
    assert chosen(WALK) == {"predictor": "chain", "outliers": "off", "order": 1}
    for values in (rough, SMOOTH, WALK, NOISE):
        chain = len(pyfilter.encode(values, pyfilter.HierarchicalDelta(relative=1e-3, predictor="chain")))
        speed = len(pyfilter.encode(values, pyfilter.Auto(relative=1e-3, objective="speed")))
        assert speed == chain or speed < 0.8 * chain  # what the sample says holds for these fields as a whole


def test_ratio_is_the_smallest_of_all() -> None:
    for values in (SMOOTH, WALK, NOISE, NOISE[:200], NOISE[:1], SMOOTH.astype(np.float64)):
        ratio = pyfilter.encode(values, pyfilter.Auto(relative=1e-3))
        for codec in (pyfilter.HierarchicalDelta, pyfilter.Lorenzo, pyfilter.Adaptive, pyfilter.Cuszp2):
            assert len(ratio) <= len(pyfilter.encode(values, codec(relative=1e-3)))


@pytest.mark.parametrize("objective", ["speed", "ratio"])
@pytest.mark.parametrize("dtype", ["i2", "u4", "i8"])
def test_integers(tmp_path: Path, dtype: str, objective: str) -> None:
    values = (WALK * 10 + 5000).astype(dtype)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        codec = pyfilter.Auto(absolute=3, objective=objective)
        dataset = pyfilter.create_dataset(file, "x", values, codec, chunks=(20_000,))
        assert pyfilter.verify(values, dataset[...], codec).ok
        dataset[100:200] = 7  # decodes the chunk and encodes it again
        assert np.all(np.abs(dataset[100:200].astype(float) - 7) <= 3)
    info = pyfilter.frame_info(pyfilter.encode(values, codec))
    assert info.codec == "hierarchical_delta"


@pytest.mark.parametrize("objective", ["speed", "ratio"])
@pytest.mark.parametrize("bound", [{"absolute": 0.01}, {"relative": 1e-3}, {"pointwise_relative": 1e-3}, {"psnr": 60}])
def test_in_a_file(tmp_path: Path, bound: dict[str, Any], objective: str) -> None:
    codec = pyfilter.Auto(**bound, objective=objective)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("direct", data=SMOOTH, chunks=(96, 128), **codec)
        pyfilter.create_dataset(file, "helper", SMOOTH, codec, chunks=(96, 128))
    with h5py.File(tmp_path / "a.h5") as file:
        for name in ("direct", "helper"):
            stored = pyfilter.codec_of(file[name])
            if objective == "speed":
                assert isinstance(stored, pyfilter.HierarchicalDelta)
                assert stored.predictor == "fast"
            else:
                assert isinstance(stored, pyfilter.Adaptive)
            values = file[name][...]
            if "pointwise_relative" in bound:
                assert np.all(np.abs(values - SMOOTH) <= 1e-3 * np.abs(SMOOTH))
            else:
                assert np.abs(values - SMOOTH).max() <= 0.01


def test_as_a_value() -> None:
    codec = pyfilter.Auto(relative=1e-3)
    speed = pyfilter.Auto(psnr=60, objective="speed")
    assert repr(codec) == "Auto(relative=0.001)"
    assert repr(speed) == "Auto(psnr=60.0, objective='speed')"
    assert codec == pyfilter.Auto(relative=1e-3, objective="ratio") != pyfilter.Auto(relative=1e-3, objective="speed")
    assert codec.filter_options == pyfilter.Adaptive(relative=1e-3).filter_options
    with pytest.raises(ValueError, match="objective must be one of 'ratio', 'speed'; got 'best'"):
        pyfilter.Auto(relative=1e-3, objective="best")
    with pytest.raises(ValueError, match="exactly one of absolute=, relative=, pointwise_relative= or psnr="):
        pyfilter.Auto()
