# SPDX-License-Identifier: BSD-3-Clause
"""The look of the charts: colours of codecs, figures, bars, and the line with the origin of the figures."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

from benchmarks.result import Result

#: colour-blind safe (Okabe and Ito); the programs of others are grey
COLOURS = {
    "Cuszp2": "#D55E00",
    "HierarchicalDelta": "#E69F00",
    "Lorenzo": "#0072B2",
    "Adaptive": "#009E73",
    "Progressive": "#CC79A7",
    "Lossless": "#56B4E9",
}
OTHERS = "0.55"
LOOK = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "sans-serif"],
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "0.92",
    "axes.axisbelow": True,
    "svg.fonttype": "none",
    "svg.hashsalt": "pyfilter",
    "path.simplify": True,
}


def figure(panels: int, title: str, *, wide: bool = False) -> tuple[Any, Any]:
    """Return a figure with panels side by side, and the axes."""
    from matplotlib import pyplot as plt

    mpl.use("svg")
    mpl.rcParams.update(LOOK)
    drawing, axes = plt.subplots(1, panels, figsize=(11 if wide else 10, 4.4), layout="constrained")
    drawing.suptitle(title, x=0.01, ha="left", fontsize=13, fontweight="bold")
    return drawing, axes


def bars(axis: Any, values: Mapping[str, float], pattern: str, colours: Mapping[str, str] | None = None) -> None:
    """Draw a horizontal bar for each value, with its number behind it."""
    shown = [(colours or {}).get(name, COLOURS.get(re.split("[,:]", name)[0], OTHERS)) for name in values]
    drawn = axis.barh(list(values), list(values.values()), color=shown, height=0.7)
    axis.bar_label(drawn, [pattern.format(value) for value in values.values()], padding=3, fontsize=8)
    axis.grid(visible=False, axis="y")
    axis.tick_params(axis="y", length=0)
    axis.margins(x=0.14)


#: offset of a name from its point, in points, and the name's end that is there
PLACES: Mapping[str, tuple[tuple[int, int], str]] = {
    "above": ((6, 4), "left"),
    "below": ((6, -12), "left"),
    "before": ((-6, -3), "right"),
    "over": ((4, 10), "center"),
}


def label(axis: Any, name: str, x: float, y: float, colour: str, place: str) -> None:
    """Write a name beside a point, at one of `PLACES`."""
    colour = "0.3" if colour == OTHERS else colour
    offset, side = PLACES[place]
    axis.annotate(name, (x, y), xytext=offset, textcoords="offset points", ha=side, fontsize=8, color=colour)


def plain_ticks(axis: Any, xs: Sequence[float] = (), ys: Sequence[float] = ()) -> None:
    """Put plain numbers at a logarithmic axis instead of powers of ten."""
    for place, values in ((axis.xaxis, xs), (axis.yaxis, ys)):
        if values:
            place.set_ticks(values, [f"{value:g}" for value in values])
            place.set_ticks([], minor=True)


def legend(axis: Any, place: str) -> None:
    """Draw a legend without a frame."""
    axis.legend(loc=place, frameon=False, fontsize=8)


def machine(result: Result) -> str:
    """Return processor and device of a result in a few words."""
    cpu = result.machine.get("CPU", "")
    name = " ".join(re.sub(r"\(R\)|Processor|\(cpu family.*?\)", "", cpu).split(",")[0].split())
    model = re.search(r"cpu family (\d+), model (\d+)", cpu)
    cores = re.search(r"(\d+) cores", cpu)
    name += (f" ({model[1]}/{model[2]})" if model else "") + (f", {cores[1]} cores" if cores else "")
    device = result.machine.get("GPU") or result.machine.get("GPUs") or ""
    return "; ".join(part for part in (device.split(";")[0], name) if part)


def finish(drawing: Any, path: Path, names: Sequence[str], text: str) -> None:
    """Write a caption below the chart, with the machine and date of each result; save it as SVG."""
    from matplotlib import pyplot as plt

    origins: dict[str, list[str]] = {}
    for name in names:
        result = Result.load(name)
        origins.setdefault(machine(result), []).append(f"{name} {result.date.split()[0]}")
    lines = textwrap.wrap(text, 160)
    for place, dates in origins.items():
        lines += textwrap.wrap(f"{place}: {', '.join(dates)}", 150)
    drawing.supxlabel("\n".join(lines), x=0.01, ha="left", fontsize=8, color="0.35")
    drawing.savefig(path, metadata={"Date": None}, facecolor="white")
    plt.close(drawing)
    # trailing spaces would be noise in the repository
    path.write_text("\n".join(line.rstrip() for line in path.read_text().splitlines()) + "\n")
