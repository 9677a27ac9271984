# SPDX-License-Identifier: BSD-3-Clause
"""``pyfilter recommend``: which bound keeps the quality that is wanted."""

from __future__ import annotations

import dataclasses
import json as json_module
import math
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import h5py
from rich.console import Console
from rich.markup import escape

from pyfilter import checking
from pyfilter.cli import files, help, options, progress, tables
from pyfilter.cli.tables import Column
from pyfilter.compare import figures, page
from pyfilter.errors import InvalidArgument
from pyfilter.recommendation import METRICS, Recommendation, pictures, pieces, recommend
from pyfilter.rewrite import bounds_file, coordinates, plan

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyfilter.recommendation import Step

_HEADINGS = ("variable", "codec", "bound", "of the range", "ratio", "quality", "at twice the bound", "at half of it")
_COLUMNS = tuple(
    Column(heading, right=heading in ("bound", "of the range", "ratio"), drop={6: 2, 7: 1}.get(place))
    for place, heading in enumerate(_HEADINGS)
)
_HELP = {
    "ssim": "Lowest structural similarity, the mean of all windows.",
    "dssim": "Lowest data SSIM (DSSIM of climate science) of the worst plane.",
    "information": "Lowest share of the bitwise real information that is kept.",
    "psnr": "Lowest peak signal-to-noise ratio in dB.",
    "gradient": "Largest relative error of differences of neighbours.",
    "spectrum": "Largest relative error of power up to half the highest wavenumber.",
    "correlation": "Lowest correlation of values before and after.",
}
_FLAT = 0.2  # a larger share of differences that become 0 is worth a word
_CURVE = 3  # halvings and doublings of the bound in a picture


def _with_metrics(command: Callable[..., None]) -> Callable[..., None]:
    for name in reversed(METRICS):
        command = click.option(f"--{name}", type=float, metavar="X", help=_HELP[name])(command)
    return command


@help.command("recommend")
@help.argument("source", metavar="FILE[:DATASET]", help="HDF5, netCDF or .npy.")
@_with_metrics
@click.option("--pointwise", is_flag=True, help="Recommend pointwise relative bounds instead of absolute ones.")
@click.option("--fast", is_flag=True, help="Only codecs that write over 0.5 GB/s on a core.")
@click.option("--toml", type=options.FILE, metavar="OUT.toml", help="Write the bounds for pyfilter compress --config.")
@click.option(
    "--html", type=options.FILE, metavar="OUT.html", help="Write a page with pictures; it needs no other file."
)
@options.json
def command(
    *, source: str, pointwise: bool, fast: bool, toml: Path | None, html: Path | None, json: bool, **wanted: float
) -> None:
    """Find for each variable the loosest bound that keeps a stated quality, and verify it on all values.

    The bound is looked for on a sample, then all values are compressed, decoded and measured. Several measures may be
    given: all are kept. Coordinates and variables under 4 KiB are left out, unless DATASET names one.
    """
    asked = {name: value for name, value in wanted.items() if value is not None}
    if not asked:
        message = f"give at least one measure to keep: {', '.join(f'--{name} X' for name in METRICS)}"
        raise InvalidArgument(message)
    if html is not None:
        figures.require()
        page.require()
    mode = "pointwise_relative" if pointwise else "absolute"
    found: list[Recommendation] = []
    drawn: dict[str, bytes] = {}
    with ExitStack() as stack:
        chosen = _variables(source, stack)
        with progress.stages() as advance:
            total = sum(math.prod(item.shape) for _, item in chosen)
            step = None if advance is None else lambda count: advance("verify", count, total)
            for name, values in chosen:
                steps = _CURVE if html is not None else 1
                result = recommend(values, name=name, mode=mode, fast=fast, steps=steps, progress=step, **asked)
                found.append(result)
                if html is not None:
                    drawn[f"{name}: {_sentence(result)}"] = pictures.draw(pieces.variable_of(values, name), result)
    words = " ".join(f"--{name} {value:g}" for name, value in asked.items())
    if toml is not None:
        toml.write_text(_toml(found, source, words), encoding="utf-8")
    if html is not None:
        facts = {"data": source, "wanted": words, "verified": "on all values of each variable"}
        rows = [("ours", _cells(item)) for item in found]
        text = page.render(f"pyfilter recommend: {Path(source).name}", facts, _HEADINGS, rows, _notes(found), drawn)
        html.write_text(text, encoding="utf-8")
    if json:
        click.echo(json_module.dumps({item.name: _as_dict(item) for item in found}, indent=2))
    else:
        tables.show(_COLUMNS, [[escape(cell) for cell in _cells(item)] for item in found])
        for note in _notes(found):
            Console().print(escape(note), soft_wrap=True, highlight=False)


def _variables(source: str, stack: ExitStack) -> list[tuple[str, Any]]:
    """Return names and values of the variables to recommend for: the named one, or all that compress would take."""
    path = Path(source)
    if path.suffix == ".npy" or not path.is_file():
        name, values = files.dataset(source, stack)
        return [(name.rpartition(":")[2], values)]
    file = stack.enter_context(h5py.File(files.readable(path, stack), "r"))
    every = {str(item.name): item for item in checking.datasets(file) if not checking.is_bare_dimension(item)}
    left_out = coordinates.reasons(file, every)
    found = [(name, item) for name, item in every.items() if name not in left_out and plan.is_large(item, kinds="f")]
    if not found:
        message = f"{path} has no floating-point variable besides coordinates: name one as FILE:DATASET"
        raise InvalidArgument(message)
    return found


def _cells(item: Recommendation) -> list[str]:
    mode, bound = item.codec.bound
    if item.codec.is_lossless:
        return [item.name, "Lossless", "-", "-", f"{item.ratio:.2f}", "no bound keeps it", "-", "-"]
    share = f"{bound / item.spread:.2g}" if mode == "absolute" and item.spread else "-"
    name = type(item.codec).__name__
    shown = options.bound(bound, mode == "pointwise_relative")
    return [
        item.name,
        name,
        shown,
        share,
        f"{item.ratio:.2f}",
        _quality(item.found),
        _step(item.looser),
        _step(item.tighter),
    ]


def _quality(values: Any) -> str:
    return ", ".join(f"{name} {value:.6g}" for name, value in values.items())


def _step(step: Step | None) -> str:
    return "-" if step is None else f"ratio {step.ratio:.1f}: {_quality(step.values)}"


def _sentence(item: Recommendation) -> str:
    if item.codec.is_lossless:
        return f"no bound keeps the wanted quality; bit for bit, ratio {item.ratio:.2f}"
    return f"{item.codec!r}, ratio {item.ratio:.2f}, {_quality(item.found)}"


def _notes(found: Sequence[Recommendation]) -> list[str]:
    """Return what should be said of single variables."""
    notes = []
    for item in found:
        if item.rounded:
            notes.append(f"{item.name}: rounded already, {item.rounded}")
        if item.flattened > _FLAT and "gradient" not in item.wanted:
            notes.append(
                f"{item.name}: {item.flattened:.0%} of the differences of neighbours become 0; --gradient keeps them"
            )
        if item.codec.is_lossless:
            notes.append(
                f"{item.name}: no absolute bound keeps the wanted quality; try --pointwise, or a lower quality"
            )
    return notes


def _toml(found: Sequence[Recommendation], source: str, words: str) -> str:
    heading = f"pyfilter recommend {source} {words}\neach verified on all values"
    return bounds_file.dumps([(item.name, item.table, item.reason) for item in found], heading)


def _as_dict(item: Recommendation) -> dict[str, Any]:
    fields = {name.name: getattr(item, name.name) for name in dataclasses.fields(item)}
    steps = {name: None if fields[name] is None else dataclasses.asdict(fields[name]) for name in ("looser", "tighter")}
    curve = [dataclasses.asdict(step) for step in item.curve]
    found: dict[str, Any] = _plain({**fields, **steps, "curve": curve, "codec": repr(item.codec), "table": item.table})
    return found


def _plain(value: Any) -> Any:
    """Return a value as JSON can hold it: None for NaN and infinities."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
