# SPDX-License-Identifier: BSD-3-Clause
"""Draws the pictures of docs/choosing.md and prints its table, from fields that are made here.

``python scripts/choosing_pictures.py [--pictures]``, with pyfilter and matplotlib installed. The table takes a minute;
``--pictures`` leaves it out. Neighbour: doc_pictures.py, for the tutorial.
"""

import sys
from pathlib import Path

import numpy as np

import pyfilter
from pyfilter.compare import figures
from pyfilter.recommendation import METRICS
from pyfilter.recommendation.metrics import Gradient, Setting, power

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "pictures"
WANTED = {
    "ssim": 0.995, "dssim": 0.9995, "information": 0.99, "psnr": 60.0, "gradient": 0.1, "spectrum": 0.01,
    "correlation": 0.99999,
}  # fmt: skip
SHAPE = (8, 256, 384)


def textured(slope: float, seed: int) -> np.ndarray:
    """Return planes whose amplitudes fall with the wavenumber to a power, of mean 0 and deviation 1."""
    rng = np.random.default_rng(seed)
    wave = np.hypot(np.fft.fftfreq(SHAPE[1])[:, None], np.fft.rfftfreq(SHAPE[2])[None, :])
    wave[0, 0] = np.inf
    noise = np.fft.rfft2(rng.normal(size=SHAPE))
    planes = np.fft.irfft2(noise / wave**slope, SHAPE[1:])
    return planes / planes.std()


def fields() -> dict[str, np.ndarray]:
    """Return a temperature, a rain rate with dry places, and a smooth height with instrument noise."""
    rain = np.maximum(textured(1.6, 2) - 0.8, 0.0) ** 2 * 20
    noisy = 500 * textured(3.0, 3) + np.random.default_rng(4).normal(0, 0.2, SHAPE)
    return {
        "temperature / K": (285 + 9 * textured(2.2, 1)).astype(np.float32),
        "rain / mm per day": rain.astype(np.float32),
        "height / m, with noise of 0.2": (5500 + noisy).astype(np.float32),
    }


def draw_errors(values: np.ndarray, name: str) -> None:
    """A slice and the errors of three bounds, with ratios and the relative error of gradients."""
    figure = figures.new(13, 3.3)
    panels = figure.subplots(1, 4)
    figures.panel(figure, panels[0], values[0].astype(float), None, name)
    setting = Setting(values.dtype, float(values.min()), float(values.max()))
    for axes, bound in zip(panels[1:], (0.01, 0.1, 1.0), strict=True):
        frame = pyfilter.encode(values, pyfilter.Auto(absolute=bound))
        decoded = pyfilter.decode(frame)
        measure = Gradient(1.0, setting)
        wrong = measure.value(measure.measure(values, decoded))
        title = f"bound {bound:g} K: ratio {values.nbytes / len(frame):.1f}, gradients {wrong:.0%} off"
        figures.panel(figure, axes, (decoded[0].astype(float) - values[0]), bound, title)
    (FOLDER / "choosing_errors.png").write_bytes(figures.png(figure))


def draw_spectra(all_fields: dict[str, np.ndarray]) -> None:
    """The power of each field, and that of the error at three bounds: where they meet, nothing is left."""
    figure = figures.new(13, 3.6)
    for axes, (name, values) in zip(figure.subplots(1, 3), all_fields.items(), strict=True):
        found = power(values)
        place = (np.arange(found.size) + 0.5) / found.size
        axes.plot(place, found, color="black", label="the field")
        for share in (1e-4, 1e-3, 1e-2):
            bound = share * float(np.ptp(values))
            decoded = pyfilter.decode(pyfilter.encode(values, pyfilter.Auto(absolute=bound)))
            error = power(decoded.astype(np.float64) - values)
            axes.plot(place[error > 0], error[error > 0], "--", label=f"error at {share:g} of the range")
        axes.set_yscale("log")
        axes.set_title(name, fontsize=9)
        axes.set_xlabel("wavenumber / highest of an axis")
        axes.grid(visible=True, alpha=0.25)
    axes.legend(fontsize=8)
    (FOLDER / "choosing_spectra.png").write_bytes(figures.png(figure))


def table(all_fields: dict[str, np.ndarray]) -> None:
    """Print the bounds that are recommended, each verified on all values."""
    print(f"| what is kept | {' | '.join(all_fields)} |\n|---|{'---|' * len(all_fields)}")
    for name in METRICS:
        cells = []
        for field, values in all_fields.items():
            found = pyfilter.recommend(values, name=field, **{name: WANTED[name]})
            bound = f"{found.codec.bound[1]:.3g}, ratio {found.ratio:.1f}"
            cells.append(f"none: lossless, {found.ratio:.1f}" if found.codec.is_lossless else bound)
        print(f"| `{name}={WANTED[name]:g}` | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Draw and print everything."""
    made = fields()
    FOLDER.mkdir(exist_ok=True)
    draw_errors(made["temperature / K"], "temperature / K")
    draw_spectra(made)
    if "--pictures" not in sys.argv:
        table(made)


if __name__ == "__main__":
    main()
