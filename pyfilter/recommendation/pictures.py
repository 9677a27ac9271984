# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of a recommendation, by matplotlib: a slice and its errors, spectra, and the rate against the quality."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyfilter import frames
from pyfilter.compare import figures
from pyfilter.recommendation.metrics import SHELLS, power

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyfilter.recommendation.pieces import Variable
    from pyfilter.recommendation.search import Recommendation


def draw(variable: Variable, found: Recommendation) -> bytes:
    """Return a PNG: a slice of the sample, its errors, the spectrum before and after, the ratio against each measure.

    Raises
    ------
    MissingExtra
        If matplotlib is not installed.
    """
    block = variable.sample()[0]
    original = variable.plain(block)
    decoded = frames.decode(frames.encode(block, found.codec, variable.fill))
    after = np.where(np.isfinite(original), decoded, np.nan)
    figure = figures.new(12, 7.4)
    upper, lower = figure.subfigures(2, 1, height_ratios=(1.1, 1))
    left, right = upper.subplots(1, 2)
    plane, errors = _slice(original), _slice(after) - _slice(original)
    figures.panel(upper, left, plane, None, f"{found.name}, a slice")
    scale = max(float(np.nanmax(np.abs(errors), initial=0.0)), np.finfo(np.float32).tiny)
    figures.panel(upper, right, errors, scale, f"error, at most {scale:.3g}")
    names = list(found.wanted)
    panels = lower.subplots(1, 1 + len(names), squeeze=False)[0]
    _draw_spectrum(panels[0], original, after)
    for axes, name in zip(panels[1:], names, strict=True):
        _draw_quality(axes, found, name)
    return figures.png(figure)


def _slice(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return the plane in the middle, or the row, as float64."""
    found = values
    while found.ndim > 2:
        found = found[found.shape[0] // 2]
    plane = found if found.ndim == 1 or min(found.shape) >= figures.NARROW else found[:, found.shape[1] // 2]
    return plane.astype(np.float64)


def _draw_spectrum(axes: Any, original: NDArray[Any], after: NDArray[Any]) -> None:
    shells = (np.arange(SHELLS) + 0.5) / SHELLS
    for values, style, label in ((original, "-", "before"), (after, "--", "after"), (after - original, ":", "error")):
        found = power(values)
        there = found > 0
        axes.plot(shells[there], found[there], style, label=label)
    axes.set_yscale("log")
    axes.set_xlabel("wavenumber / highest of a plane's axis")
    axes.set_title("power", fontsize=9)
    axes.axvspan(0, 0.5, color="grey", alpha=0.08)
    axes.legend(fontsize=8)
    axes.grid(visible=True, alpha=0.25)


def _draw_quality(axes: Any, found: Recommendation, name: str) -> None:
    points = [(step.ratio, step.values[name]) for step in found.curve if np.isfinite(step.values[name])]
    if points:
        axes.plot(*zip(*points, strict=True), "o-", markersize=4)
    axes.axhline(found.wanted[name], color="tab:red", linewidth=0.8, label=f"wanted {found.wanted[name]:g}")
    if name in found.found:
        axes.plot(found.ratio, found.found[name], "*", markersize=13, color="black", label="all values")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("{x:g}")
    axes.tick_params(axis="x", which="minor", labelsize=7)
    axes.set_xlabel("ratio")
    axes.set_title(name, fontsize=9)
    axes.legend(fontsize=8)
    axes.grid(visible=True, alpha=0.25)
