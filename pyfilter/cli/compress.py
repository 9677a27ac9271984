# SPDX-License-Identifier: BSD-3-Clause
"""``pyfilter compress``: a whole file, every value checked."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from pyfilter.cli import options, progress, tables
from pyfilter.cli.tables import Column
from pyfilter.codecs import Cuszp2
from pyfilter.errors import InvalidArgument
from pyfilter.rewrite import Report, Row, Rules, compress_file


@options.with_bounds
@options.with_parameters
def compress(
    *,
    source: Annotated[Path, typer.Argument(metavar="IN", help="An HDF5 or netCDF file.", exists=True, dir_okay=False)],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="The result; replaced if it exists.", dir_okay=False)],
    bounds: options.Bounds,
    lossless: options.LosslessFlag = False,
    codec: Annotated[
        str | None,
        typer.Option(
            "--codec",
            help=f"One of {', '.join(options.CODECS)}; by default cuszp2, and hierarchical_delta for integers.",
            metavar="NAME",
        ),
    ] = None,
    parameters: options.Parameters,
    var: Annotated[
        list[str] | None,
        typer.Option(
            "--var",
            metavar="NAME=SPEC",
            help="For one variable: MODE:X (as absolute:0.1), lossless or none. Without another bound only these.",
        ),
    ] = None,
    lossy_coordinates: Annotated[
        bool, typer.Option("--lossy-coordinates", help="Hold coordinates to the bound too, not bit for bit.")
    ] = False,
    history: Annotated[
        bool, typer.Option("--history/--no-history", help="netCDF: add a line to the global attribute history.")
    ] = True,
    json: options.Json = False,
) -> None:
    """Copy a file with its floating-point variables compressed, and check every value against its bound.

    A relative bound (or PSNR) is of each variable's whole range, missing values left out. Coordinates stay bit for bit.
    Integers are left as they are but for those named by --var; their bound is one of the stored integers.
    OUT appears when it is whole and checked; exit status 1 says that a bound did not hold, and then there is none.
    """
    name = Cuszp2.codec_name if codec is None else codec
    default = options.make_codec(name, bounds, lossless, parameters)
    named = dict(options.parse_variable(text, name, parameters) for text in var or ())
    if default is None and not named:
        known = ", ".join(f"{options.option_name(mode)} X" for mode in options.BOUNDS)
        message = f"give a bound: {known}, --lossless; --var NAME=absolute:X for single variables"
        raise InvalidArgument(message)
    rules = Rules(default, named, lossy_coordinates, integers=codec is None)
    with progress.stages() as advance:
        report = compress_file(source, target, rules, advance, history=history)
    if json:
        typer.echo(json_module.dumps(report.as_dict(), indent=2))
    else:
        _show(report, target)
    if not report.ok:
        raise typer.Exit(1)


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
        if row.note:
            console.print(escape(f"{row.path}: {row.note}"), soft_wrap=True, highlight=False)
    copied = len(report.rows) - len(report.compressed)
    before, after = report.file_bytes_in, report.file_bytes_out
    if not report.compressed:
        console.print("[yellow]nothing to compress: no variable is of a type and size that a codec is for[/]")
    console.print(
        f"total: {options.size(before)} -> {options.size(after)}, ratio {before / after:.2f}; "
        f"{len(report.compressed)} variables compressed, {copied} copied as they are",
        soft_wrap=True,
    )
    if not report.ok:
        console.print(f"[bold red]a bound does not hold: {escape(str(target))} was not written[/]", soft_wrap=True)


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
