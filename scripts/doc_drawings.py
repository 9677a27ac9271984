# SPDX-License-Identifier: BSD-3-Clause
"""Draws docs/drawings/*.svg for docs/explanation: ``python scripts/doc_drawings.py``. Needs matplotlib.

Neighbour: doc_pictures.py, for the pictures of the tutorial.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.patches import FancyBboxPatch, Rectangle

LOOK = {
    "svg.fonttype": "none",
    "svg.hashsalt": "pyfilter",
    "font.size": 9,
    "font.sans-serif": ["DejaVu Sans", "Verdana"],
}
FOLDER = Path(__file__).resolve().parents[1] / "docs" / "drawings"
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#E69F00", "#009E73", "0.6"


def canvas(width: float, height: float) -> tuple[Any, Any]:
    """Return a figure without axes, measured in units of its own."""
    figure, axis = plt.subplots(figsize=(width, height), layout="constrained")
    axis.axis("off")
    return figure, axis


def box(
    axis: Any, x: float, y: float, text: str, *, width: float = 1.6, colour: str = BLUE, height: float = 0.8
) -> None:
    """Draw a box with a text in it; x, y are its lower left corner."""
    style = "round,pad=0.02,rounding_size=0.08"
    shape = FancyBboxPatch((x, y), width, height, style, facecolor="white", edgecolor=colour, linewidth=1.6)
    axis.add_patch(shape)
    axis.text(x + width / 2, y + height / 2, text, ha="center", va="center", fontsize=9)


def arrow(axis: Any, start: tuple[float, float], end: tuple[float, float], text: str = "") -> None:
    """Draw an arrow, and a text above its middle."""
    axis.annotate("", xy=end, xytext=start, arrowprops={"arrowstyle": "-|>", "color": "0.3", "linewidth": 1.2})
    if text:
        axis.text((start[0] + end[0]) / 2, (start[1] + end[1]) / 2 + 0.08, text, ha="center", fontsize=8, color="0.3")


def stages() -> Any:
    """Return the stages that all codecs share, and the last stage of each."""
    figure, axis = canvas(9.5, 3.9)
    names = ["chunk of values\n(HDF5)", "quantise:\nvalue to code", "predict from\nneighbours", "residuals"]
    for index, name in enumerate(names):
        box(axis, 2.1 * index, 1.2, name, colour=GREY if index == 0 else BLUE)
        if index:
            arrow(axis, (2.1 * index - 0.5, 1.6), (2.1 * index, 1.6))
    ends = [
        "bit planes\nCuszp2, HierarchicalDelta",
        "entropy coder\nLorenzo, Adaptive",
        "bit planes by level\nProgressive",
    ]
    for index, name in enumerate(ends):
        box(axis, 8.5, 2.4 - 1.2 * index, name, width=2.5, colour=(ORANGE, GREEN, "#CC79A7")[index])
        arrow(axis, (7.9, 1.6), (8.5, 2.8 - 1.2 * index))
        arrow(axis, (11.0, 2.8 - 1.2 * index), (11.5, 1.6))
    box(axis, 11.5, 1.2, "frame:\none chunk\nof the file", width=1.4, colour=GREY)
    box(axis, 2.1, -1.1, "NaN, infinities, fill value,\nvalues that would miss the bound", width=3.7, colour=GREY)
    arrow(axis, (2.9, 1.2), (2.9, -0.3))
    axis.annotate(
        "", xy=(12.2, 1.2), xytext=(5.8, -0.7),
        arrowprops={"arrowstyle": "-|>", "color": "0.3", "connectionstyle": "angle,angleA=0,angleB=90,rad=6"},
    )  # fmt: skip
    axis.text(7.0, -0.6, "stored bit for bit", fontsize=8, color="0.3")
    axis.set(xlim=(-0.1, 13.0), ylim=(-1.3, 3.4))
    return figure


def quantising() -> Any:
    """Return how values become codes."""
    figure, axis = canvas(8.5, 2.3)
    for code in range(-3, 4):
        axis.axvline(code, 0.30, 0.62, color=BLUE, linewidth=2)
        axis.text(code, 0.75, str(code), ha="center", color=BLUE, fontsize=11)
        axis.add_patch(
            Rectangle((code - 0.5, -0.28), 1, 0.56, facecolor="0.95" if code % 2 else "0.88", edgecolor="none")
        )
    axis.plot([-3.7, 3.7], [0, 0], color="0.3", linewidth=1)
    values = np.array([-2.31, -0.72, 0.12, 0.41, 1.68, 2.9])
    axis.plot(values, np.zeros_like(values), "o", color=ORANGE, zorder=3)
    for value in values:
        axis.annotate(
            "", xy=(round(value), 0.2), xytext=(value, 0.03), arrowprops={"arrowstyle": "->", "color": ORANGE}
        )
    axis.annotate("", xy=(0.5, -0.5), xytext=(1.5, -0.5), arrowprops={"arrowstyle": "<->", "color": "0.3"})
    axis.text(1.0, -0.78, "step = 2 x bound", ha="center", fontsize=9)
    axis.text(-3.75, 0.75, "code", ha="right", color=BLUE)
    axis.text(-3.75, -0.05, "value", ha="right", color=ORANGE)
    axis.set(xlim=(-4.4, 3.9), ylim=(-0.95, 1.05))
    return figure


def planes() -> Any:
    """Return a block of residuals as bit planes."""
    residuals = np.array([3, 1, 0, 2, 5, 1, 0, 0, 1, 2, 4, 1, 0, 3, 1, 0])
    figure, axis = canvas(8.5, 2.6)
    for column, value in enumerate(residuals):
        axis.text(column + 0.5, 6.6, str(value), ha="center", va="center", fontsize=10)
        for bit in range(6):
            one = bool(value >> bit & 1)
            kept = bit < 3
            axis.add_patch(
                Rectangle(
                    (column, bit), 1, 1, facecolor=(BLUE if one else "white") if kept else "0.95", edgecolor="0.7"
                )
            )
    for bit in range(6):
        note = "stored" if bit < 3 else "all zero: not stored"
        axis.text(16.3, bit + 0.5, f"plane {bit}: {note}", va="center", fontsize=8, color="0.2" if bit < 3 else "0.55")
    axis.text(-0.3, 6.6, "residuals", ha="right", va="center")
    axis.set(xlim=(-2.5, 22.5), ylim=(-0.2, 7.2))
    return figure


def predictors() -> Any:
    """Return which neighbours predict a value."""
    figure, axes = plt.subplots(1, 4, figsize=(9, 2.6), layout="constrained")
    around = [(x, y) for y in range(2) for x in range(5)] + [(0, 2), (1, 2)]
    cells = {
        "chain: 1 neighbour": {(1, 2): "+1"},
        "planes: 3 neighbours": {(1, 2): "+1", (2, 1): "+1", (1, 1): "-1"},
        "interpolation: both sides": {(0, 2): "-1", (1, 2): "+9", (3, 2): "+9", (4, 2): "-1"},
        "regression: trained weights": {(x, y): "w" for x, y in around},
    }
    for axis, (title, near) in zip(axes, cells.items(), strict=True):
        for x in range(5):
            for y in range(3):
                here = (x, y) == (2, 2)
                face = ORANGE if here else "#cfe3f2" if (x, y) in near else "white"
                axis.add_patch(Rectangle((x, 2 - y), 1, 1, facecolor=face, edgecolor="0.6"))
                text = "?" if here else near.get((x, y), "")
                axis.text(x + 0.5, 2.5 - y, text, ha="center", va="center", fontsize=10)
        axis.set(xlim=(-0.1, 5.1), ylim=(-0.1, 3.1), aspect="equal", title=title)
        axis.axis("off")
    return figure


def progressive() -> Any:
    """Return levels and bit planes, and the order in which a reader fetches them."""
    figure, axis = canvas(8.5, 3.0)
    levels = ["coarsest grid", "level 2", "level 1", "level 0 (finest)"]
    order = {(0, 5): 1, (0, 4): 2, (1, 5): 3, (1, 4): 4, (0, 3): 5, (2, 5): 6, (2, 4): 7, (3, 5): 8, (1, 3): 9}
    for x, level in enumerate(levels):
        axis.text(2.2 * x + 1, 6.4, level, ha="center", fontsize=9)
        for plane in range(6):
            number = order.get((x, plane))
            face = "#cfe3f2" if number and number <= 4 else "#fbe3c0" if number else "white"
            axis.add_patch(Rectangle((2.2 * x, plane), 2, 0.9, facecolor=face, edgecolor="0.6"))
            axis.text(2.2 * x + 1, plane + 0.45, str(number or ""), ha="center", va="center", fontsize=9)
    axis.text(-0.2, 5.45, "highest bit plane", ha="right", va="center", fontsize=8)
    axis.text(-0.2, 0.45, "lowest bit plane", ha="right", va="center", fontsize=8)
    legend = {
        "#cfe3f2": "fetched for a loose tolerance",
        "#fbe3c0": "fetched to refine it",
        "white": "left in the file",
    }
    for y, (face, text) in zip((4.6, 3.4, 2.2), legend.items(), strict=True):
        axis.add_patch(Rectangle((9.2, y), 0.6, 0.7, facecolor=face, edgecolor="0.6"))
        axis.text(10.0, y + 0.35, text, va="center", fontsize=9)
    axis.set(xlim=(-2.6, 14), ylim=(-0.2, 7))
    return figure


DRAWINGS: dict[str, Callable[[], Any]] = {
    "stages": stages,
    "quantising": quantising,
    "planes": planes,
    "predictors": predictors,
    "progressive": progressive,
}


def main() -> None:
    """Draw all."""
    mpl.use("svg")
    mpl.rcParams.update(LOOK)
    FOLDER.mkdir(exist_ok=True)
    for name, draw in DRAWINGS.items():
        path = FOLDER / f"{name}.svg"
        figure = draw()
        figure.savefig(path, metadata={"Date": None}, facecolor="white")
        plt.close(figure)
        path.write_text("\n".join(line.rstrip() for line in path.read_text().splitlines()) + "\n")
        print(path)


if __name__ == "__main__":
    main()
