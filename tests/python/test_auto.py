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


def chosen(values: NDArray[Any], **how: Any) -> dict[str, Any]:
    info = pyfilter.frame_info(pyfilter.encode(values, pyfilter.Auto(relative=1e-3, **how)))
    return dict(info.parameters)


def test_speed_takes_the_chain_unless_another_saves_a_quarter() -> None:
    rough = (SMOOTH + 0.02 * RNG.normal(size=SMOOTH.shape)).astype(np.float32)
    assert chosen(rough)["predictor"] == "chain"
    assert chosen(SMOOTH)["predictor"] == "lorenzo2d"
    assert chosen(WALK) == {"predictor": "chain", "outliers": "off", "order": 1}
    for values in (rough, SMOOTH, WALK, NOISE):
        chain = len(pyfilter.encode(values, pyfilter.HierarchicalDelta(relative=1e-3, predictor="chain")))
        speed = len(pyfilter.encode(values, pyfilter.Auto(relative=1e-3)))
        assert speed == chain or speed < 0.8 * chain  # what the sample says holds for these fields as a whole


def test_ratio_is_the_smallest_of_all() -> None:
    for values in (SMOOTH, WALK, NOISE):
        best = min(
            len(pyfilter.encode(values, pyfilter.HierarchicalDelta(relative=1e-3, predictor=predictor)))
            for predictor in ("chain", *(("lorenzo2d", "columns") if values.ndim > 1 else ()))
        )
        assert len(pyfilter.encode(values, pyfilter.Auto(relative=1e-3, objective="ratio"))) <= best


@pytest.mark.parametrize("bound", [{"absolute": 0.01}, {"relative": 1e-3}, {"pointwise_relative": 1e-3}, {"psnr": 60}])
def test_in_a_file(tmp_path: Path, bound: dict[str, Any]) -> None:
    codec = pyfilter.Auto(**bound)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("direct", data=SMOOTH, chunks=(96, 128), **codec)
        pyfilter.create_dataset(file, "helper", SMOOTH, codec, chunks=(96, 128))
    with h5py.File(tmp_path / "a.h5") as file:
        for name in ("direct", "helper"):
            stored = pyfilter.codec_of(file[name])
            assert isinstance(stored, pyfilter.HierarchicalDelta)
            assert stored.predictor == "fast"
            values = file[name][...]
            if "pointwise_relative" in bound:
                assert np.all(np.abs(values - SMOOTH) <= 1e-3 * np.abs(SMOOTH))
            else:
                assert np.abs(values - SMOOTH).max() <= 0.01


def test_as_a_value() -> None:
    codec = pyfilter.Auto(relative=1e-3, objective="ratio")
    assert repr(codec) == "Auto(relative=0.001, objective='ratio')"
    assert codec == pyfilter.Auto(relative=1e-3, objective="ratio") != pyfilter.Auto(relative=1e-3)
    assert codec.filter_options == pyfilter.HierarchicalDelta(relative=1e-3).filter_options
    with pytest.raises(ValueError, match="objective must be one of 'speed', 'ratio'; got 'best'"):
        pyfilter.Auto(relative=1e-3, objective="best")
    with pytest.raises(ValueError, match="exactly one of absolute=, relative=, pointwise_relative= or psnr="):
        pyfilter.Auto()
