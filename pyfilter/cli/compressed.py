# SPDX-License-Identifier: BSD-3-Clause
"""The output of ``pyfilter compress``: a table for one file, a line for each of many files, and a summary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape

from pyfilter.cli import options, tables
from pyfilter.cli.tables import Column
from pyfilter.rewrite import plan

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyfilter.rewrite import Report, Result, Row

_WHY = {
    plan.INTEGERS: "integers: --lossless, or for single ones --var NAME=absolute:X or NAME=lossless, compresses them",
    plan.SMALL: f"under {plan.SMALL_BYTES} bytes: --var NAME=SPEC compresses single ones",
    plan.FILTERED: "integers that are compressed already: --var NAME=lossless compresses them anew",
    plan.UNSUITED: "no codec takes their type",
    plan.EXCLUDED: "by --var NAME=none",
    plan.NOT_NAMED: "not named by a --var, and no bound is given for all",
    plan.SMALLEST: "no codec or filter makes them smaller than they are",
}
_KEPT = "integers and other types, kept bit for bit (--var NAME=absolute:X gives integers a bound)"
_COLUMNS = (
    Column("variable"),
    Column("type", drop=1),
    Column("shape", drop=2),
    Column("codec", shorten=True, drop=5),
    Column("bound", right=True, drop=4),
    Column("ratio", right=True, drop=6),
    Column("max error", right=True, drop=3),
    Column("ok"),
)


def show(result: Result) -> None:
    """Print the table of one file, and what has to be said of its variables."""
    report, target = result.report, result.target
    assert report is not None
    console = Console()
    if report.unchanged:
        console.print(
            f"[yellow]nothing is smaller than the input: {escape(str(target))} is a copy of it, byte for byte[/]",
            soft_wrap=True,
        )
    if report.compressed:
        tables.show(_COLUMNS, [_cells(row) for row in report.compressed])
        for row in report.compressed:
            if row.note not in ("", plan.KEPT_LOSSLESS) and not row.coordinate:  # these have a line of their own
                console.print(escape(f"{row.path}: {row.note}"), soft_wrap=True, highlight=False)
            if row.rounded:
                console.print(escape(f"{row.path}: rounded already, {row.rounded}"), soft_wrap=True, highlight=False)
    else:
        reason = "each variable is copied as it is" if report.rows else "the file has no variable"
        console.print(f"[yellow]nothing to compress: {reason}[/]", soft_wrap=True)
    console.print(_total(report), soft_wrap=True)
    _show_kept(console, report)
    if not report.ok:
        console.print(f"[bold red]a bound does not hold: {escape(str(target))} was not written[/]", soft_wrap=True)


def _show_kept(console: Console, report: Report) -> None:
    """Say which variables were kept bit for bit as coordinates, which were copied as they are, and why."""
    groups: dict[str, list[str]] = {}
    for row in report.rows:
        if row.coordinate:
            heading = "coordinates, kept bit for bit (--var NAME=SPEC or --lossy-coordinates compresses them)"
            groups.setdefault(heading, []).append(f"{row.path} ({row.coordinate})")
        elif row.note == plan.KEPT_LOSSLESS:
            groups.setdefault(_KEPT, []).append(row.path)
        elif row.codec is None:
            detail = f" ({row.dtype})" if row.note == plan.UNSUITED else ""
            groups.setdefault(f"copied as they are, {_WHY[row.note]}", []).append(f"{row.path}{detail}")
    for heading, names in groups.items():
        console.print(escape(f"{heading}: {', '.join(names)}"), soft_wrap=True, highlight=False)


def show_file(result: Result) -> None:
    """Print a line for one of many files."""
    console = Console()
    if result.problem:
        text = f"[bold red]{escape(str(result.source))}: {escape(result.problem)}[/]"
    elif result.report is None:
        text = f"{escape(str(result.target))}: done by an earlier run"
    elif not result.report.ok:
        text = f"[bold red]{escape(str(result.target))}: a bound does not hold, it was not written[/]"
    else:
        text = f"{escape(str(result.target))}: {_total(result.report)}"
    console.print(text, soft_wrap=True, highlight=False)


def show_summary(results: Sequence[Result]) -> None:
    """Print how many files there are, what became of them, and each variable that is worth a word."""
    console = Console()
    made = [item.report for item in results if item.report is not None and item.report.ok]
    before, after = (sum(getattr(item, name) for item in made) for name in ("file_bytes_in", "file_bytes_out"))
    skipped = sum(item.skipped for item in results)
    failed = len(results) - len(made) - skipped
    counts = (
        [f"{len(made)} compressed"] + [f"{skipped} done before"] * bool(skipped) + [f"{failed} failed"] * bool(failed)
    )
    sizes = f": {options.size(before)} -> {options.size(after)}, ratio {before / after:.2f}" if made else ""
    console.print(f"[bold]{len(results)} files, {', '.join(counts)}{sizes}[/]", soft_wrap=True, highlight=False)
    rounded = {row.path: row.rounded for item in made for row in item.rows if row.rounded}
    for path, how in rounded.items():
        console.print(escape(f"{path}: rounded already, {how}"), soft_wrap=True, highlight=False)


def show_unused(keys: Sequence[str], config: Path | None) -> None:
    """Say which names of the file of bounds nothing has: a misspelt one would leave its variable at the default."""
    if keys:
        text = f"{config}: no variable is called {', '.join(keys)}"
        Console().print(f"[yellow]{escape(text)}[/]", soft_wrap=True, highlight=False)


def as_dict(result: Result) -> dict[str, Any]:
    """Return what became of a file as JSON can hold it."""
    names: dict[str, Any] = {"source": str(result.source), "target": str(result.target)}
    if result.report is not None:
        return {**names, **result.report.as_dict()}
    return {**names, "skipped": result.skipped, "problem": result.problem or None}


def _total(report: Report) -> str:
    copied = len(report.rows) - len(report.compressed)
    before, after = report.file_bytes_in, report.file_bytes_out
    return (
        f"total: {options.size(before)} -> {options.size(after)}, ratio {before / after:.2f}; "
        f"{len(report.compressed)} variables compressed, {copied} copied as they are"
    )


def _cells(row: Row) -> list[str]:
    return [
        escape(row.path),
        row.dtype,
        options.shape(row.shape),
        escape(str(row.codec).partition("(")[0]),  # the bound has a column of its own
        options.bound(row.bound, "(pointwise_relative=" in str(row.codec)),
        f"{row.ratio:.2f}",
        options.number(row.max_error),
        "[green]yes[/]" if row.ok else "[bold red]NO[/]",
    ]
