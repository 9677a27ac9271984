# SPDX-License-Identifier: BSD-3-Clause
"""``pyfilter verify``: two files, dataset by dataset, against the bounds that the second one claims."""

from __future__ import annotations

import json as json_module
import math
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import h5py
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pyfilter import checking, verification
from pyfilter.cli import files, options, progress
from pyfilter.errors import InvalidArgument
from pyfilter.rewrite.copy import is_number

if TYPE_CHECKING:
    from pyfilter.codecs import Codec
    from pyfilter.verification import Verification


@options.with_bounds
def verify(
    *,
    original: Annotated[Path, typer.Argument(metavar="A", help="The file before.", exists=True, dir_okay=False)],
    stored: Annotated[Path, typer.Argument(metavar="B", help="The file after.", exists=True, dir_okay=False)],
    bounds: options.Bounds,
    json: options.Json = False,
) -> None:
    """Compare every number of A with B: largest error, PSNR, bound kept or not.

    The bound of a dataset is that of its codec in B; without a codec its values must be the same bits. --absolute,
    --relative, --pointwise-relative or --psnr checks floating-point data against another bound. Exit status 1:
    something does not hold.
    """
    wish = options.make_codec("hierarchical_delta", bounds)
    with ExitStack() as stack:
        before = stack.enter_context(h5py.File(files.readable(original, stack), "r"))
        after = stack.enter_context(h5py.File(files.readable(stored, stack), "r"))
        rows = _compare(before, after, wish)
    if json:
        found = {path: {**_finite(asdict(result)), "codec": codec} for path, codec, result in rows}
        typer.echo(json_module.dumps(found, indent=2))
    else:
        _show(rows)
    if not all(result.ok for _, _, result in rows):
        raise typer.Exit(1)


def _compare(before: h5py.File, after: h5py.File, wish: Codec | None) -> list[tuple[str, str, Verification]]:
    rows: list[tuple[str, str, Verification]] = []
    numbers = [
        dataset
        for dataset in checking.datasets(before)
        if is_number(dataset.id.get_type()) and dataset.shape is not None and not checking.is_bare_dimension(dataset)
    ]
    with progress.bar(len(numbers)) as advance:
        for dataset in numbers:
            path = str(dataset.name)
            other = after.get(path)
            if not isinstance(other, h5py.Dataset):
                message = f"{path} is not in {after.filename}"
                raise InvalidArgument(message)
            codec = checking.codec_of(other)
            bound: Codec | float = 0.0
            if codec is not None and not codec.is_lossless:
                bound = codec
            if wish is not None and dataset.dtype.kind == "f":
                bound = wish
            rows.append((path, repr(codec) if codec is not None else "-", verification.verify(dataset, other, bound)))
            advance(path)
    return rows


def _show(rows: list[tuple[str, str, Verification]]) -> None:
    console = Console()
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("dataset", "codec"):
        table.add_column(heading, overflow="fold")
    for heading in ("bound", "max error", "PSNR", "violations"):
        table.add_column(heading, justify="right")
    table.add_column("specials")
    table.add_column("ok")
    for path, codec, result in rows:
        table.add_row(
            escape(path),
            escape(codec),
            options.bound(result.bound, result.pointwise_relative),
            options.number(result.max_error),
            f"{result.psnr:.1f} dB" if math.isfinite(result.psnr) else "-",
            str(result.violations),
            "kept" if result.specials_kept else "[bold red]changed[/]",
            "[green]yes[/]" if result.ok else "[bold red]NO[/]",
        )
    console.print(table)


def _finite(items: dict[str, Any]) -> dict[str, Any]:
    """Return the items with None for what JSON has no number for."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in items.items()
    }
