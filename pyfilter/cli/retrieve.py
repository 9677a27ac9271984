# SPDX-License-Identifier: BSD-3-Clause
"""``pyfilter retrieve``: what a progressive dataset costs at each tolerance, and its values as a .npy file."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.markup import escape

from pyfilter import progressive
from pyfilter.cli import help, options, tables
from pyfilter.cli.tables import Column
from pyfilter.errors import InvalidArgument

DEFAULT_STEPS = 6


@help.command("retrieve")
@help.argument("source", metavar="FILE:DATASET", help="A file or URL, a colon, and the dataset's name.")
@click.option(
    "--tolerance",
    "-t",
    type=float,
    multiple=True,
    metavar="X",
    help="Largest error, in the unit of the data; may be repeated.",
)
@click.option(
    "--level", type=int, default=0, metavar="N", help="Leave out every second value along each dimension N times."
)
@click.option(
    "--output",
    "-o",
    type=options.FILE,
    metavar="OUT.npy",
    help="Write the values of the last tolerance to this .npy file.",
)
@options.json
def retrieve(*, source: str, tolerance: tuple[float, ...], level: int, output: Path | None, json: bool) -> None:
    """Read a progressive dataset to one tolerance after the other, and show the bytes that each needs.

    Without --tolerance: six tolerances, each a tenth of the one before, and then everything that is stored.
    """
    address, _, name = source.rpartition(":")
    if not address or name.startswith("//"):
        message = f"{source!r}: which dataset? Write FILE:DATASET"
        raise InvalidArgument(message)
    rows: list[dict[str, Any]] = []
    with progressive.open(address, name) as reader:
        count = int(np.prod(reader.shape, dtype=np.int64))
        wanted: list[float | None] = [*sorted(tolerance, reverse=True)]
        if not wanted:
            first = reader.first_error()
            wanted = [first * 10.0**-step for step in range(DEFAULT_STEPS)] + [None] if first > 0 else [None]
        values = None
        for each in wanted:
            values = reader.refine(each, level=level)
            rows.append(
                {
                    "tolerance": each,
                    "bytes": reader.bytes_read,
                    "fraction": reader.bytes_read / (count * reader.dtype.itemsize) if count else 0.0,
                    "max_error": reader.max_error,
                }
            )
    if output is not None and values is not None:
        np.save(output, values)
    if json:
        click.echo(json_module.dumps({"dataset": source, "level": level, "reads": rows}, indent=2))
        return
    headings = ("tolerance", "bytes read", "of the original", "max error")
    cells = [
        (
            "all" if row["tolerance"] is None else options.number(row["tolerance"]),
            f"{row['bytes']:,}",
            f"{row['fraction']:.2%}",
            options.number(row["max_error"]),
        )
        for row in rows
    ]
    tables.show([Column(heading, right=True) for heading in headings], cells, title=f"[italic]{escape(source)}[/]")
