# SPDX-License-Identifier: BSD-3-Clause
"""Recommended bounds keep what is wanted of all values, are the loosest, and are what compress then takes."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray

import pyfilter
from pyfilter import Adaptive, Lorenzo, Lossless
from pyfilter.errors import InvalidArgument, Unsupported
from pyfilter.recommendation import METRICS, pieces, real_information, recommend
from pyfilter.recommendation.metrics import Setting, power
from pyfilter.recommendation.windows import similarity
from pyfilter.rewrite import bounds_file

from .test_cli import run

RNG = np.random.default_rng(11)


def rough(shape: tuple[int, ...] = (6, 96, 128)) -> NDArray[np.float32]:
    """Return planes with a spectrum like weather's."""
    wave = np.hypot(np.fft.fftfreq(shape[-2])[:, None], np.fft.rfftfreq(shape[-1])[None, :])
    wave[0, 0] = 1.0
    planes = [np.fft.irfft2(np.fft.rfft2(RNG.normal(size=shape[-2:])) / wave**1.7, shape[-2:]) for _ in range(shape[0])]
    return np.asarray(280 + np.stack(planes) / np.std(planes) * 8, dtype=np.float32)


VALUES = rough()
WANTED = {
    "ssim": 0.995, "dssim": 0.999, "information": 0.99, "psnr": 60.0, "gradient": 0.1, "spectrum": 0.01,
    "correlation": 0.99999,
}  # fmt: skip


def value_of(name: str, x: NDArray[Any], y: NDArray[Any]) -> float:
    information = real_information.of_bits([x]) if name == "information" else None
    metric = METRICS[name](0.5, Setting(x.dtype, float(np.nanmin(x)), float(np.nanmax(x)), information))
    return metric.value(metric.measure(x, y))


@pytest.mark.parametrize("name", list(METRICS))
def test_what_is_recommended_holds_for_all_values_and_twice_of_it_does_not(name: str) -> None:
    asked: dict[str, Any] = {name: WANTED[name]}
    found = recommend(VALUES, **asked)
    frames = [pyfilter.encode(VALUES, found.codec)]
    decoded = pyfilter.decode(frames[0])
    metric = METRICS[name](WANTED[name], Setting(VALUES.dtype, 0, 1))
    assert metric.holds(found.found[name])
    again = value_of(name, VALUES, decoded)  # one chunk, the whole array: as it was verified
    assert again == pytest.approx(found.found[name], rel=1e-6)
    assert found.stored_bytes == len(frames[0])
    assert found.looser is not None
    assert not metric.holds(found.looser.values[name])
    assert found.tighter is not None
    assert metric.holds(found.tighter.values[name])
    assert found.looser.ratio > found.tighter.ratio
    assert pyfilter.verify(VALUES, decoded, found.codec).max_error == found.max_error


def test_several_measures_are_all_kept_and_fast_is_lorenzo() -> None:
    found = pyfilter.recommend(VALUES, psnr=50, gradient=0.05, fast=True)
    assert isinstance(found.codec, Lorenzo)
    assert found.found["psnr"] >= 50
    assert found.found["gradient"] <= 0.05
    assert isinstance(recommend(VALUES, psnr=50).codec, (Lorenzo, Adaptive))


def test_a_sample_that_misleads_is_corrected(monkeypatch: pytest.MonkeyPatch) -> None:
    values = VALUES.copy()
    values[1:] = 280 + (values[1:] - 280) * 0.01  # all but the first plane are calm
    monkeypatch.setattr(pieces.Variable, "sample", lambda self: [values[:1]])
    found = recommend(values, gradient=0.02)
    assert found.found["gradient"] <= 0.02
    monkeypatch.setattr(pieces.Variable, "sample", lambda self: [values[1:2] * 100])
    assert recommend(values, correlation=0.99999).found["correlation"] >= 0.99999


def test_missing_values_and_files(tmp_path: Path) -> None:
    values = VALUES.copy()
    values[:, 20:40] = -999
    values[:, 50] = np.nan
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = file.create_dataset("t", data=values, fillvalue=-999, chunks=(1, 96, 128))
        file["count"] = np.arange(5000)
        file["lat"] = np.linspace(-90, 90, 5000)
        from_file = recommend(dataset, psnr=60)
    assert from_file.found == pytest.approx(recommend(values, psnr=60, fill_value=-999).found, abs=1)
    assert from_file.spread < 200
    toml = tmp_path / "bounds.toml"
    found = json.loads(run("recommend", tmp_path / "a.h5", "--psnr", "60", "--toml", toml, "--json"))
    assert list(found) == ["/t"]
    assert bounds_file.load(toml).variables == {"/t": from_file.codec}
    run("compress", tmp_path / "a.h5", tmp_path / "b.h5", "--config", toml)
    with h5py.File(tmp_path / "b.h5") as file:
        assert pyfilter.codec_of(file["t"]) == from_file.codec
        after = np.where(values == -999, np.nan, file["t"][()])
        assert value_of("psnr", np.where(values == -999, np.nan, values), after) >= 60
    text = run("recommend", f"{tmp_path / 'a.h5'}:t", "--ssim", "0.99")
    assert "at twice the bound" in text
    with pytest.raises(InvalidArgument, match="of its values are -1e\\+30, far outside all others"):
        recommend(np.where(values == -999, np.float32(-1e30), values) * np.float32(1), psnr=60).found  # noqa: B018


def test_what_no_bound_keeps_is_lossless() -> None:
    noise = RNG.integers(0, 1 << 32, 4096, dtype=np.uint32).view(np.float32)
    found = recommend(np.where(np.isfinite(noise), noise, 0).astype(np.float32), information=0.999999)
    assert (found.codec, found.table) == (Lossless(), {"codec": "lossless"})
    assert recommend(np.ones(5000, np.float32), psnr=60).codec == Lossless()
    assert recommend(np.full(5000, np.nan, np.float32), psnr=60).codec == Lossless()


def test_a_bound_of_each_value() -> None:
    values = np.exp((VALUES - 280) / 8)
    found = recommend(values, mode="pointwise_relative", ssim=0.9999)
    assert found.codec.bound[0] == "pointwise_relative"
    assert 1e-4 < found.codec.bound[1] < 0.25


@pytest.mark.parametrize(
    ("values", "wanted", "error", "text"),
    [
        (VALUES, {}, InvalidArgument, "give at least one measure to keep, of ssim, .*; none is given"),
        (VALUES, {"ssym": 0.9}, InvalidArgument, "unknown: 'ssym'"),
        (VALUES, {"ssim": 1.0}, InvalidArgument, "ssim must be above 0 and below 1; got 1.0"),
        (VALUES, {"psnr": 50, "mode": "relative"}, InvalidArgument, "mode must be one of absolute, pointwise_relative"),
        (np.arange(5), {"psnr": 50}, Unsupported, "arrays of float32 or float64; got int64"),
        (np.zeros((0, 3), "f4"), {"psnr": 50}, Unsupported, r"shape \(0, 3\)"),
    ],
)
def test_what_cannot_be_asked(values: Any, wanted: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        recommend(values, **wanted)


def test_the_command_asks_for_a_measure(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", VALUES)
    with pytest.raises(InvalidArgument, match="give at least one measure to keep: --ssim X, --dssim X"):
        run("recommend", tmp_path / "a.npy")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["lat"] = np.linspace(-90, 90, 5000)
    with pytest.raises(InvalidArgument, match="no floating-point variable besides coordinates"):
        run("recommend", tmp_path / "a.h5", "--psnr", "60")


def test_the_page(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("jinja2")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["t"] = VALUES
        file["line"] = VALUES[0, :40].reshape(-1)
    run("recommend", tmp_path / "a.h5", "--ssim", "0.99", "--html", tmp_path / "a.html")
    text = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert text.count("data:image/png") == 2
    assert "at twice the bound" in text


# -- the measures by themselves


def test_rounding_to_mantissa_bits_keeps_just_these() -> None:
    x = np.linspace(256, 511, 100_003, dtype=np.float32)
    for bits in (0, 3, 10, 22):
        shift = 23 - bits
        half = np.uint32(1 << (shift - 1))
        rounded = ((x.view(np.uint32) + half) & np.uint32((0xFFFFFFFF << shift) & 0xFFFFFFFF)).view(np.float32)
        kept = real_information.kept_bits(x.astype("f8"), rounded.astype("f8") - x, x.dtype)
        assert kept.min() == 1 + bits
    kept = real_information.kept_bits(np.array([1.0, 1.0, 0.0, 1.0, 4.0]), np.array([0.5, 0, 1e-9, 4, 0.25]), x.dtype)
    assert kept.tolist() == [1, 24, 0, 0, 4]


def test_information_is_where_the_signal_is() -> None:
    found = real_information.of_bits([VALUES])
    assert found.shape == (32,)
    assert found[12:16].sum() > 10 * found[24:].sum()
    assert real_information.of_bits([RNG.integers(0, 1 << 30, 100_000, dtype="u4").view("f4")])[9:].sum() < 0.01
    assert real_information.up_to(found, np.dtype("f4"))[-1] == pytest.approx(found.sum())


def test_similarity_is_that_of_the_definition() -> None:
    x, y = VALUES[0, :30, :40].astype("f8") / 300, VALUES[1, :30, :40].astype("f8") / 300
    weights = np.exp(-(np.arange(-5, 6) ** 2) / 4.5)
    window = np.outer(weights, weights) / weights.sum() ** 2
    expected = []
    for row in range(20):
        for column in range(30):
            a, b = x[row : row + 11, column : column + 11], y[row : row + 11, column : column + 11]
            mean_a, mean_b = (a * window).sum(), (b * window).sum()
            spread_a, spread_b = (a * a * window).sum() - mean_a**2, (b * b * window).sum() - mean_b**2
            joint = (a * b * window).sum() - mean_a * mean_b
            upper = (2 * mean_a * mean_b + 1e-4) * (2 * joint + 9e-4)
            expected.append(upper / ((mean_a**2 + mean_b**2 + 1e-4) * (spread_a + spread_b + 9e-4)))
    assert similarity(x, y, 1e-4, 9e-4) == pytest.approx(np.array(expected), abs=1e-9)
    assert np.all(similarity(x, x, 1e-4, 9e-4) == pytest.approx(1))


def test_power_is_that_of_the_waves() -> None:
    plane = np.sin(2 * np.pi * np.arange(64) / 8)[None, :] * np.ones((64, 1))
    found = power(plane)
    assert int(np.argmax(found)) == 8  # a quarter of the highest wavenumber of 32 shells
    assert found.sum() == pytest.approx(plane.size * (plane**2).sum())
    assert power(plane[0]).argmax() == 8


def test_correlation_and_psnr_are_the_textbooks() -> None:
    y = VALUES + RNG.normal(size=VALUES.shape).astype("f4")
    assert value_of("correlation", VALUES, y) == pytest.approx(np.corrcoef(VALUES.ravel(), y.ravel())[0, 1], abs=1e-6)
    noise = np.sqrt(np.mean((y.astype("f8") - VALUES) ** 2))
    assert value_of("psnr", VALUES, y) == pytest.approx(20 * math.log10(np.ptp(VALUES) / noise), abs=1e-4)
    assert value_of("psnr", VALUES, VALUES) == math.inf
    assert value_of("gradient", VALUES, VALUES) == 0
