# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of a comparison, by matplotlib: rate against distortion, and a slice with its error maps."""

from __future__ import annotations

import io
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pyfilter.compare.candidates import OURS
from pyfilter.errors import missing_extra

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from pyfilter.compare.run import Outcome
    from pyfilter.compare.sample import Sample

_MOST = 1024  # values of a slice along an axis
NARROW = 16  # fewer values in a row are no picture
_MARKERS = "osD^vP*X<>"
_DPI = 144


@dataclass(frozen=True)
class Story:
    """The data to draw.

    Attributes
    ----------
    sample : Sample
        The values.
    bound : float
        The absolute bound (or a fraction of each value) that all had to keep.
    outcomes : sequence of Outcome
        At that bound.
    curves : mapping
        By candidate name: its outcomes at several bounds, that one among them.
    index : tuple
        Which part of the sample the slices of outcomes are.
    """

    sample: Sample
    bound: float
    outcomes: Sequence[Outcome]
    curves: Mapping[str, Sequence[Outcome]]
    index: tuple[Any, ...]


def require() -> Any:
    """Return matplotlib, or say which extra installs it."""
    try:
        import matplotlib.figure
    except ImportError as error:
        raise missing_extra("matplotlib", "compare") from error
    return matplotlib


def slice_of(sample: Sample) -> tuple[Any, ...]:
    """Return the index of a part to look at: a plane of the last two dimensions, or a row, from the middle."""
    shape = sample.values.shape
    limits = shape if sample.share >= 1.0 else sample.chunk  # where chunks are joined there would be a seam
    plane = len(shape) > 1 and min(limits[-2:]) >= NARROW
    kept = 2 if plane else 1
    axis = len(shape) - kept if plane or shape[-1] >= NARROW else 0  # columns of (N, 3): along the first
    middle: list[Any] = [limit // 2 for limit in limits]
    for place in range(axis, axis + kept):
        start = max(limits[place] - _MOST, 0) // 2
        middle[place] = slice(start, start + min(limits[place], _MOST), 1)
    return tuple(middle)


def shown(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return whose error maps to show: of ours and of the others the smallest lossy one that brought figures."""
    found = []
    for mine in (True, False):
        group = [item for item in outcomes if (item.candidate.source == OURS) is mine and not item.candidate.lossless]
        good = [item for item in group if item.ok] or [item for item in group if not item.problem]
        found += sorted(good, key=lambda item: -item.ratio)[:1]
    return found


def save(story: Story, path: Path) -> None:
    """Write one picture with everything; the name's ending says the format (png, pdf, svg).

    Raises
    ------
    MissingExtra
        If matplotlib is not installed.
    ValueError
        If matplotlib does not know the ending.
    """
    figure = new(11, 9)
    top, bottom = figure.subfigures(2, 1, height_ratios=(1.15, 1))
    _draw_rate(top, story)
    _draw_slices(bottom, story)
    figure.savefig(path, dpi=_DPI)


def rate_png(story: Story) -> bytes:
    """Return the picture of rate against distortion."""
    figure = new(8, 4.8)
    _draw_rate(figure, story)
    return png(figure)


def slices_png(story: Story) -> bytes:
    """Return the picture of a slice and its errors."""
    figure = new(11, 3.9)
    _draw_slices(figure, story)
    return png(figure)


def new(width: float, height: float) -> Any:
    """Return an empty figure; sizes in inches."""
    return require().figure.Figure(figsize=(width, height), layout="constrained")


def png(figure: Any) -> bytes:
    """Return a figure as a PNG file."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=_DPI)
    return buffer.getvalue()


def _draw_rate(figure: Any, story: Story) -> None:
    axes = figure.subplots()
    for number, (name, outcomes) in enumerate(story.curves.items()):
        points = sorted(
            (item.bits_per_value, item.psnr) for item in outcomes if not item.problem and math.isfinite(item.psnr)
        )
        if not points:
            continue
        style = "-" if outcomes[0].candidate.source == OURS else "--"
        axes.plot(*zip(*points, strict=True), style, marker=_MARKERS[number % len(_MARKERS)], markersize=5, label=name)
    for item in story.outcomes:
        if item.candidate.name in story.curves and not item.problem and math.isfinite(item.psnr):
            axes.plot(item.bits_per_value, item.psnr, "o", markersize=11, fillstyle="none", color="black", zorder=5)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("{x:g}")
    axes.set_xlabel("bits per value")
    axes.set_ylabel("PSNR / dB")
    axes.set_title(f"{story.sample.name}: rate against distortion (circled: bound {story.bound:.4g})", fontsize=10)
    axes.grid(visible=True, which="both", alpha=0.25)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=8)


def _draw_slices(figure: Any, story: Story) -> None:
    original = _ordinary(story.sample.values[story.index], story.sample)
    outcomes = [item for item in shown(story.outcomes) if item.slice is not None]
    panels = figure.subplots(1, 1 + len(outcomes), squeeze=False)[0]
    panel(figure, panels[0], original, None, f"{story.sample.name} {_where(story.index)}")
    largest = [float(np.nanmax(np.abs(_errors(item, original)), initial=0.0)) for item in outcomes]
    scale = max([story.bound if not item.candidate.pointwise else 0.0 for item in outcomes] + largest, default=1.0)
    for axes, item in zip(panels[1:], outcomes, strict=True):
        title = f"error of {item.candidate.name}\nratio {item.ratio:.2f}, largest {item.max_error:.3g}"
        panel(figure, axes, _errors(item, original), scale or 1.0, title)


def panel(figure: Any, axes: Any, values: NDArray[Any], scale: float | None, title: str) -> None:
    """Draw a plane or a row; errors where ``scale`` says how large they may be."""
    axes.set_title(title, fontsize=9)
    if values.ndim == 1:
        axes.plot(values, linewidth=0.7)
        if scale is not None:
            axes.set_ylim(-1.1 * scale, 1.1 * scale)
        return
    axes.set_facecolor("lightgrey")  # where values are missing
    colours = {"cmap": "viridis"} if scale is None else {"cmap": "RdBu_r", "vmin": -scale, "vmax": scale}
    image = axes.imshow(values, origin="lower", aspect="auto", interpolation="nearest", **colours)
    figure.colorbar(image, ax=axes, shrink=0.9)


def _ordinary(values: NDArray[Any], sample: Sample) -> NDArray[np.float64]:
    """Return values as float64, with NaN in place of missing ones."""
    found = np.array(values, dtype=np.float64)
    for special in sample.specials:
        found[values == special] = np.nan
    found[~np.isfinite(found)] = np.nan
    return found


def _errors(outcome: Outcome, original: NDArray[np.float64]) -> NDArray[np.float64]:
    stored = np.asarray(outcome.slice, dtype=np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        errors = stored - original
    errors[~np.isfinite(errors)] = np.nan
    return errors


def _where(index: tuple[Any, ...]) -> str:
    parts = [":" if isinstance(item, slice) else str(item) for item in index]
    return f"[{', '.join(parts)}]"
