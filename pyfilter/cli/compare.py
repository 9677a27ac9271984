# SPDX-License-Identifier: BSD-3-Clause
"""``pyfilter compare``: codecs side by side on the user's own data."""

from __future__ import annotations

import itertools
import json as json_module
import math
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.markup import escape

from pyfilter import h5, settings
from pyfilter.cli import files, help, options, progress, tables
from pyfilter.cli.tables import Column
from pyfilter.codecs.base import Codec
from pyfilter.compare import advice, candidates, figures, page
from pyfilter.compare import sample as sampling
from pyfilter.compare.run import Bench, Outcome
from pyfilter.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyfilter.compare.candidates import Candidate
    from pyfilter.compare.sample import Sample

HEADINGS = ("codec", "ratio", "write", "read", "max error", "PSNR", "bound", "missing")
_LEFT_OUT = {"PSNR": 1, "max error": 2, "read": 3, "write": 4}  # the lowest first, where a terminal is narrow
_COLUMNS = tuple(
    Column(heading, right=number > 0, drop=_LEFT_OUT.get(heading)) for number, heading in enumerate(HEADINGS)
)
_STEPS = (0.1, 10**-0.5, 10**0.5, 10.0)  # times the bound, for curves
_WITHOUT_PEERS = "hdf5plugin is not installed: pip install 'h5pyfilter[compare]' adds SZ3, ZFP, SPERR and more"


@help.command("compare")
@help.argument("source", metavar="FILE[:DATASET]", help="HDF5, netCDF or .npy.")
@options.with_bounds
@click.option("--sample-mib", type=click.FloatRange(0.01), default=32, metavar="N", help="Size of the sample in MiB.")
@click.option("--all", "everything", is_flag=True, help="Try every combination of our codecs' parameters.")
@click.option("--only", multiple=True, metavar="NAME", help="Only codecs whose name contains NAME; may be repeated.")
@click.option("--peers/--no-peers", default=True, help="Compare hdf5plugin's filters too.")
@click.option("--threads", type=click.IntRange(1), metavar="N", help="Threads of pyfilter's codecs.")
@click.option(
    "--timeout", type=click.FloatRange(1), default=30, metavar="S", help="Longest time for one codec, in seconds."
)
@click.option(
    "--plot",
    type=options.FILE,
    metavar="OUT.png",
    help="Write a picture: rate-distortion curves, a slice and its errors.",
)
@click.option(
    "--html", type=options.FILE, metavar="OUT.html", help="Write a report: one page that needs no other file."
)
@options.json
def compare(
    *,
    source: str,
    bounds: options.Bounds,
    sample_mib: float,
    everything: bool,
    only: tuple[str, ...],
    peers: bool,
    threads: int | None,
    timeout: float,
    plot: Path | None,
    html: Path | None,
    json: bool,
) -> None:
    """Compress a sample with our codecs and hdf5plugin's at one bound: ratio, speed, error, missing values.

    A relative bound (or PSNR) is of the whole dataset's range, as in pyfilter compress. Each codec goes through HDF5,
    in a process that may crash (SZ3 and SPERR do on NaN). Exit status 1: one of our codecs broke its bound.
    """
    if plot is not None or html is not None:
        figures.require()
    if html is not None:
        page.require()
    if all(value is None for value in bounds.values()):
        message = f"give a bound: {', '.join(f'{options.option_name(mode)} X' for mode in options.BOUNDS)}"
        raise InvalidArgument(message)
    wish = options.make_codec(None, bounds)
    with ExitStack() as stack:
        name, values = files.dataset(source, stack)
        sample = sampling.take(values, name, int(sample_mib * (1 << 20)))
        bound = _absolute(wish, values, sample)
    tried = _candidates(sample, bound, everything, peers, only)
    if not tried:
        named = f" and has {' or '.join(only)} in its name" if only else ""
        message = f"no codec takes {sample.values.dtype} with this bound{named}"
        raise InvalidArgument(message)
    drawn = plot is not None or html is not None
    story = _run(sample, bound, tried, drawn, timeout, threads)
    facts = _facts(sample, bound, wish, threads)
    notes = [] if not peers or candidates.has_hdf5plugin() else [_WITHOUT_PEERS]
    best = advice.best_forms(story.outcomes)
    shown, said = story.outcomes if everything else best, advice.advice(best)
    if plot is not None:
        figures.save(story, plot)
    if html is not None:
        html.write_text(_page(story, shown, facts, [*notes, said]), encoding="utf-8")
    if json:
        curves = {key: [item.as_dict() for item in items] for key, items in story.curves.items()}
        found = {**facts, "bound": bound[1], "notes": notes, "advice": said}
        found["best"] = [item.candidate.name for item in best]
        found["codecs"] = [item.as_dict() for item in story.outcomes]
        click.echo(json_module.dumps({**found, "curves": curves} if drawn else found, indent=2))
    else:
        _show(shown, facts, notes, said)
    if any(item.candidate.source == candidates.OURS and not item.problem and not item.ok for item in story.outcomes):
        raise click.exceptions.Exit(1)


def _absolute(wish: Codec | None, values: Any, sample: Sample) -> tuple[str, float]:
    """Return the bound as all candidates can take it: absolute, or a fraction of each value."""
    assert wish is not None
    if wish.range_fraction is None:
        return wish.bound
    resolved = h5.resolve(wish, values, sample.fill, sample.chunk)
    if resolved.bound[0] != "absolute":
        message = f"{sample.name}: all values are equal or missing, there is no range for a bound; give --absolute"
        raise InvalidArgument(message)
    return resolved.bound


def _candidates(
    sample: Sample, bound: tuple[str, float], everything: bool, peers: bool, only: Sequence[str]
) -> list[Candidate]:
    found = list(candidates.ours(sample.values.dtype, sample.values.ndim, bound, everything=everything))
    if peers and candidates.has_hdf5plugin():
        found += candidates.theirs(bound)
    return [item for item in found if not only or any(part.lower() in item.name.lower() for part in only)]


def _run(
    sample: Sample,
    bound: tuple[str, float],
    tried: Sequence[Candidate],
    drawn: bool,
    timeout: float,
    threads: int | None,
) -> figures.Story:
    """Try every candidate at the bound and, for pictures, those with default parameters at bounds around it."""
    curved = [item for item in tried if item.default and not item.lossless] if drawn else []
    index = figures.slice_of(sample)
    outcomes: list[Outcome] = []
    curves: dict[str, list[Outcome]] = {}
    with progress.bar(len(tried) + len(_STEPS) * len(curved)) as advance, Bench(sample, timeout, threads) as bench:
        for item in tried:
            outcomes.append(bench.run(item, index=index if drawn and not item.lossless else None))
            advance(item.name)
        for item in curved:
            at_bound = next(outcome for outcome in outcomes if outcome.candidate is item)
            curves[item.name] = [at_bound]
            for factor in _STEPS:
                if at_bound.quick:
                    other = candidates.at_bound(item, bound[1] * factor)
                    curves[item.name].append(bench.run(other, repeats=1))
                advance(item.name)
    return figures.Story(sample, bound[1], outcomes, curves, index)


def _facts(sample: Sample, bound: tuple[str, float], wish: Codec | None, threads: int | None) -> dict[str, str]:
    shape = options.shape(sample.of_shape)
    part = "all of it" if sample.share >= 1 else f"{sample.share:.1%} of it, in whole chunks"
    asked = f", for {wish.bound[0]} {wish.bound[1]:g}" if wish is not None and wish.range_fraction is not None else ""
    unit = " |x|" if bound[0] == "pointwise_relative" else ""
    now = settings.config()
    return {
        "data": f"{sample.name}, {sample.values.dtype}, {shape}",
        "sample": f"{options.size(sample.values.nbytes)}, {part}; chunks {options.shape(sample.chunk)}",
        "error bound": f"{bound[1]:.6g}{unit}{asked}",
        "write, read": f"MB (1e6 bytes) of values a second through HDF5, file in memory; pyfilter with "
        f"{threads or now.threads} threads on {now.cpu_level}, others with one",
        "missing": "NaN, infinities and fill values: kept bit for bit or not",
    }


def cells(outcome: Outcome) -> list[str]:
    """Return an outcome's cells for `HEADINGS`; two where there are no figures."""
    if outcome.problem:
        return [outcome.candidate.name, outcome.problem]
    kept = "exact" if outcome.candidate.lossless else "kept"
    raw = f", {outcome.raw_chunks} chunks stored raw" if outcome.raw_chunks else ""
    return [
        outcome.candidate.name,
        f"{outcome.ratio:.2f}",
        f"{outcome.write_speed:.{0 if outcome.write_speed >= 10 else 1}f}",
        f"{outcome.read_speed:.{0 if outcome.read_speed >= 10 else 1}f}",
        options.number(outcome.max_error),
        f"{outcome.psnr:.1f} dB" if math.isfinite(outcome.psnr) else "-",
        (kept if outcome.bound_kept else "BROKEN") + raw,
        "kept" if outcome.specials_kept else "CHANGED",
    ]


def ordered(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return ours before the others, the smallest first, those without figures last."""

    def place(item: Outcome) -> tuple[bool, bool, bool, float]:
        return (
            item.candidate.source != candidates.OURS,
            bool(item.problem),
            item.candidate.lossless,
            -item.ratio if not item.problem else 0.0,
        )

    return sorted(outcomes, key=place)


def _show(outcomes: Sequence[Outcome], facts: dict[str, str], notes: Sequence[str], said: str) -> None:
    console = Console()
    for name, text in facts.items():
        console.print(f"[bold]{name}[/]: {escape(text)}", soft_wrap=True, highlight=False)
    shown = [item for item in ordered(outcomes) if not item.problem]
    problems = [f"{item.candidate.name}: {item.problem}" for item in ordered(outcomes) if item.problem]
    pairs = enumerate(itertools.pairwise(shown), start=1)
    tables.show(
        _COLUMNS,
        [[escape(cell) for cell in cells(item)] for item in shown],
        styles=["" if item.ok else "red" for item in shown],
        sections=[
            place
            for place, (before, item) in pairs
            if (before.candidate.source == candidates.OURS) != (item.candidate.source == candidates.OURS)
        ],
    )
    for text in (*problems, *notes):
        console.print(f"[yellow]{escape(text)}[/]", soft_wrap=True)
    console.print(f"[bold]{escape(said)}[/]", soft_wrap=True, highlight=False)


def _page(story: figures.Story, outcomes: Sequence[Outcome], facts: dict[str, str], notes: list[str]) -> str:
    rows = []
    for item in ordered(outcomes):
        kind = "ours" if item.candidate.source == candidates.OURS else "theirs"
        rows.append((kind if item.ok else f"{kind} bad", cells(item)))
    pictures = {
        f"Bits per value against PSNR, at bounds from a tenth to ten times {story.bound:.4g}": figures.rate_png(story),
        "A slice, and what the smallest of both sides changed in it": figures.slices_png(story),
    }
    return page.render(f"pyfilter compare: {story.sample.name}", facts, HEADINGS, rows, notes, pictures)
