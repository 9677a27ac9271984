# SPDX-License-Identifier: BSD-3-Clause
"""``pyfilter check``: what went wrong with files without anybody saying so."""

from __future__ import annotations

import json as json_module
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from pyfilter import checking
from pyfilter.cli import options, progress
from pyfilter.rewrite import netcdf3


def check(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="HDF5 or netCDF.", exists=True, dir_okay=False)
    ],
    json: options.Json = False,
) -> None:
    """Find chunks that were stored raw in silence, filters in an order that breaks a bound, and missing filters.

    Exit status 1: there is something to say about one of the files.
    """
    found: dict[str, list[checking.Finding]] = {}
    with progress.bar(len(files)) as advance:
        for path in files:  # netCDF-3 has no filters
            found[str(path)] = [] if netcdf3.is_netcdf3(path) else checking.check(path)
            advance(path.name)
    if json:
        typer.echo(
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
        raise typer.Exit(1)
