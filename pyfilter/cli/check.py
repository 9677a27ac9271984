# SPDX-License-Identifier: BSD-3-Clause
"""``pyfilter check``: what went wrong with files without anybody saying so."""

from __future__ import annotations

import json as json_module
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape

from pyfilter import checking
from pyfilter.cli import help, options, progress
from pyfilter.rewrite import netcdf3


@help.command("check")
@help.argument(
    "files", nargs=-1, required=True, type=options.EXISTING_FILE, metavar="FILE...", help="HDF5 or netCDF files."
)
@options.json
def check(*, files: tuple[Path, ...], json: bool) -> None:
    """Find chunks that were stored raw in silence, filters in an order that breaks a bound, and missing filters.

    Exit status 1: a file has one of these.
    """
    found: dict[str, list[checking.Finding]] = {}
    with progress.bar(len(files)) as advance:
        for path in files:  # netCDF-3 has no filters
            found[str(path)] = [] if netcdf3.is_netcdf3(path) else checking.check(path)
            advance(path.name)
    if json:
        click.echo(
            json_module.dumps({path: [asdict(item) for item in items] for path, items in found.items()}, indent=2)
        )
    else:
        console = Console()
        for name, items in found.items():
            for item in items:
                console.print(f"[bold red]{escape(f'{name}: {item}')}[/]", soft_wrap=True)
            if not items:
                console.print(f"{escape(name)}: nothing wrong", soft_wrap=True, highlight=False)
    if any(found.values()):
        raise click.exceptions.Exit(1)
