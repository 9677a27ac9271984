# SPDX-License-Identifier: BSD-3-Clause
"""``pyfilter compress``: a whole file, every value checked."""

from __future__ import annotations

import json as json_module
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape

from pyfilter.cli import help, options, progress, tables
from pyfilter.cli.tables import Column
from pyfilter.errors import InvalidArgument
from pyfilter.rewrite import Report, Row, Rules, compress_file, plan


@help.command("compress")
@help.argument("source", type=options.EXISTING_FILE, metavar="IN", help="An HDF5 or netCDF file.")
@help.argument("target", type=options.FILE, metavar="OUT", help="The result; replaced if it exists.")
@options.with_bounds
@options.lossless
@options.codec(f"{options.CODEC_HELP} for integers and --pointwise-relative.")
@options.with_parameters
@click.option(
    "--var",
    multiple=True,
    metavar="NAME=SPEC",
    help="For one variable: MODE:X (as absolute:0.1), lossless or none. Without another bound only these.",
)
@click.option("--lossy-coordinates", is_flag=True, help="Hold coordinates to the bound too, not bit for bit.")
@click.option("--history/--no-history", default=True, help="netCDF: add a line to the global attribute history.")
@options.json
def compress(
    *,
    source: Path,
    target: Path,
    bounds: options.Bounds,
    lossless: bool,
    codec: str | None,
    parameters: options.Parameters,
    var: tuple[str, ...],
    lossy_coordinates: bool,
    history: bool,
    json: bool,
) -> None:
    """Copy a file with its floating-point variables compressed, and check every value against its bound.

    A relative bound (or PSNR) is of each variable's whole range, missing values left out. Coordinates stay bit for bit
    (dimension scales, what CF attributes name, latitude, longitude, time); the output names them and says why.
    Integers are left as they are but for those named by --var; their bound is one of the stored integers.
    OUT appears when it is whole and checked; exit status 1 says that a bound did not hold, and then there is none.
    """
    default = options.make_codec(codec, bounds, lossless, parameters)
    named = dict(options.parse_variable(text, codec, parameters) for text in var)
    if default is None and not named:
        known = ", ".join(f"{options.option_name(mode)} X" for mode in options.BOUNDS)
        message = f"give a bound: {known}, --lossless; --var NAME=absolute:X for single variables"
        raise InvalidArgument(message)
    rules = Rules(default, named, lossy_coordinates, integers=codec is None)
    with progress.stages() as advance:
        report = compress_file(source, target, rules, advance, history=history)
    if json:
        click.echo(json_module.dumps(report.as_dict(), indent=2))
    else:
        _show(report, target)
    if not report.ok:
        raise click.exceptions.Exit(1)


_WHY = {
    plan.INTEGERS: "integers: --lossless, or for single ones --var NAME=absolute:X or NAME=lossless, compresses them",
    plan.SMALL: f"under {plan.SMALL_BYTES} bytes: --var NAME=SPEC compresses single ones",
    plan.FILTERED: "integers that are compressed already: --var NAME=lossless compresses them anew",
    plan.UNSUITED: "no codec takes their type",
    plan.EXCLUDED: "by --var NAME=none",
    plan.NOT_NAMED: "named by no --var, and there is no bound for all",
}
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


def _show(report: Report, target: Path) -> None:
    console = Console()
    if report.compressed:
        tables.show(_COLUMNS, [_cells(row) for row in report.compressed])
        for row in report.compressed:
            if row.note and not row.coordinate:  # these have a line of their own
                console.print(escape(f"{row.path}: {row.note}"), soft_wrap=True, highlight=False)
    else:
        reason = "each variable is copied as it is" if report.rows else "the file has no variable"
        console.print(f"[yellow]nothing to compress: {reason}[/]", soft_wrap=True)
    copied = len(report.rows) - len(report.compressed)
    before, after = report.file_bytes_in, report.file_bytes_out
    console.print(
        f"total: {options.size(before)} -> {options.size(after)}, ratio {before / after:.2f}; "
        f"{len(report.compressed)} variables compressed, {copied} copied as they are",
        soft_wrap=True,
    )
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
        elif row.codec is None:
            detail = f" ({row.dtype})" if row.note == plan.UNSUITED else ""
            groups.setdefault(f"copied as they are, {_WHY[row.note]}", []).append(f"{row.path}{detail}")
    for heading, names in groups.items():
        console.print(escape(f"{heading}: {', '.join(names)}"), soft_wrap=True, highlight=False)


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
