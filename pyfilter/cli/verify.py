# SPDX-License-Identifier: BSD-3-Clause
"""``pyfilter verify``: two files, dataset by dataset, against the bounds that the second one claims."""

from __future__ import annotations

import json as json_module
import math
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click
import h5py
from rich.console import Console
from rich.markup import escape

from pyfilter import checking, guarantees, verification
from pyfilter._chunks import layout
from pyfilter.cli import files, help, options, progress, tables
from pyfilter.cli.tables import Column
from pyfilter.codecs import Codec, HierarchicalDelta
from pyfilter.errors import PyfilterError
from pyfilter.records import Compound
from pyfilter.rewrite import provenance
from pyfilter.rewrite.copy import is_number
from pyfilter.verification import Verification, same_bits
from pyfilter.verification.records import has_padding

NOT_COMPARED = 3  # the exit status
_SLAB_BYTES = 32 << 20
_COLUMNS = (
    Column("dataset"),
    Column("codec", shorten=True, drop=3),
    Column("bound", right=True, drop=5),
    Column("max error", right=True, drop=4),
    Column("PSNR", right=True, drop=1),
    Column("violations", right=True, drop=6),
    Column("specials", drop=2),
    Column("ok"),
)


@dataclass(frozen=True)
class Row:
    """What is known of one dataset."""

    path: str
    codec: str | None  # in B
    ok: bool | None  # None: it was not compared
    result: Verification | None
    note: str = ""

    @property
    def compared(self) -> str | None:
        """How it was compared: to a "bound" or by "bits"; None where there was nothing to compare."""
        if self.result is None:
            return None
        return "bound" if self.result.bound > 0.0 else "bits"

    def as_dict(self) -> dict[str, Any]:
        """Return the row as JSON can hold it: None for what there is no number for."""
        items: dict[str, Any] = dict.fromkeys(Verification.__dataclass_fields__)
        if self.result is not None:
            items |= asdict(self.result)
        found = {
            key: None if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in items.items()
        }
        codec = "-" if self.codec is None else self.codec
        return {**found, "ok": self.ok, "codec": codec, "compared": self.compared, "note": self.note}


@help.command("verify")
@help.argument("original", type=options.EXISTING_FILE, metavar="A", help="The file before compression.")
@help.argument("stored", type=options.EXISTING_FILE, metavar="B", help="The file after compression.")
@options.with_bounds
@options.json
def verify(*, original: Path, stored: Path, bounds: options.Bounds, json: bool) -> None:
    """Compare every dataset of A with B: largest error, PSNR, bound kept or not.

    Each dataset is held to the bound of its codec in B. A dataset without a codec must have the same bits: numbers,
    text, compounds, complex numbers, enumerations and references. --absolute, --relative, --pointwise-relative or
    --psnr sets another bound for float32 and float64. Attributes and links are not compared.
    Exit status 1: a bound does not hold, values differ, or a dataset is in one file only. Exit status 3: all is well,
    but a dataset could not be compared.
    """
    wish = options.make_codec("hierarchical_delta", bounds)
    with ExitStack() as stack:
        before = stack.enter_context(h5py.File(files.readable(original, stack), "r"))
        after = stack.enter_context(h5py.File(files.readable(stored, stack), "r"))
        rows = _compare(before, after, wish)
    if json:
        click.echo(json_module.dumps({row.path: row.as_dict() for row in rows}, indent=2))
    else:
        _show(rows)
    if any(row.ok is False for row in rows):
        raise click.exceptions.Exit(1)
    if any(row.ok is None for row in rows):
        raise click.exceptions.Exit(NOT_COMPARED)


def _compare(before: h5py.File, after: h5py.File, wish: Codec | None) -> list[Row]:
    rows: list[Row] = []
    first, second = (  # a bare dimension has no values
        [item for item in checking.datasets(file) if not checking.is_bare_dimension(item)] for file in (before, after)
    )
    with progress.bar(len(first)) as advance:
        for dataset in first:
            path = str(dataset.name)
            rows += _rows(path, dataset, after, wish)
            advance(path)
    for dataset in second:
        path = str(dataset.name)
        if not isinstance(_at(before, path), h5py.Dataset):
            rows.append(Row(path, None, False, None, "is not in A" if path not in before else "is no dataset in A"))
    return rows


def _at(file: h5py.File, path: str) -> Any:
    try:
        return file.get(path)
    except (OSError, RuntimeError):  # an external link that leads to no file
        return None


def _rows(path: str, dataset: h5py.Dataset, after: h5py.File, wish: Codec | None) -> list[Row]:
    """Return a row, of records with codecs of their own one for each field: ``/p[x]``."""
    other = _at(after, path)
    try:
        compound = checking.codec_of(other) if isinstance(other, h5py.Dataset) else None
        if not isinstance(compound, Compound):
            return [_row(path, dataset, after, wish)]
        difference = same_bits.difference(dataset, other)
        if difference is not None:
            return [Row(path, repr(compound), False, None, difference)]
        found = verification.verify_records(dataset, other, compound)
    except (PyfilterError, OSError, RuntimeError) as error:
        return [Row(path, None, None, None, f"not compared: {_reason(dataset, other, error)}")]
    note = "bytes between fields are no values and are not compared" if has_padding(other) else ""
    if wish is not None:
        note = "the bounds are those of B: options set no bound for fields of records"
    rows = [Row(f"{path}[{name}]", repr(compound.codec_of(name)), result.ok, result) for name, result in found.items()]
    return [replace(row, note=note) if row is rows[0] else row for row in rows]


def _reason(dataset: h5py.Dataset, other: h5py.Dataset, error: Exception) -> str:
    findings = [item for side in (dataset, other) for item in checking.check(side)]
    return next((item.detail for item in findings if item.problem == "filter missing"), str(error))


def _row(path: str, dataset: h5py.Dataset, after: h5py.File, wish: Codec | None) -> Row:
    other = _at(after, path)
    if not isinstance(other, h5py.Dataset):
        return Row(path, None, False, None, "is not in B" if other is None else "is no dataset in B")
    codec: Codec | None = None
    claim: provenance.Claim | None = None
    try:
        found = checking.codec_of(other)
        codec = found if isinstance(found, Codec) else None  # Compound: _rows
        shown = None if codec is None else repr(codec)
        difference = same_bits.difference(dataset, other)
        if difference is not None:
            return Row(path, shown, False, None, difference)
        if dataset.shape is None or not is_number(dataset.id.get_type()):
            result = same_bits.compare(dataset, other)
        else:
            bound: Codec | float = 0.0
            claim = None if wish is not None else provenance.claimed(other)
            if codec is None and claim is not None and dataset.dtype.kind in "fiuc":
                bound = _of_claim(claim)  # the filter was removed; the values are the decoded ones
            if codec is not None and not codec.is_lossless:
                bound = codec
            if wish is not None and dataset.dtype.kind in "fc":
                bound = wish
            result = verification.verify(dataset, other, bound)
            held = guarantees.of_dataset(other, dataset.file) if wish is None else None
            if held is not None:
                broken = _broken(dataset, other, held)
                if broken:
                    note = (
                        f"{held.words}: {broken} values of B break this guarantee: a program that does not know of it "
                    )
                    result = replace(result, ok=False, violations=result.violations + broken)
                    return Row(path, shown, False, result, f"{note}wrote B, such as HDF5 itself")
    except (PyfilterError, OSError, RuntimeError) as error:
        reason = _reason(dataset, other, error)
        return Row(path, None if codec is None else repr(codec), None, None, f"not compared: {reason}")
    note = ""
    if claim is not None and claim.max_error is not None and result.max_error > claim.max_error:
        note = f"the largest error is {result.max_error:.4g}, B's attributes say {claim.max_error:.4g}: B was changed"
    return Row(path, shown, result.ok, result, note)


def _broken(before: h5py.Dataset, after: h5py.Dataset, held: guarantees.Guarantee) -> int:
    """Return how many values do not keep what attributes say that holds besides the bound."""
    slabs = layout.slabs(after.shape, after.chunks or (1,) * after.ndim, after.dtype.itemsize, _SLAB_BYTES)
    return sum(held.violations(before[slab], after[slab], slab) for slab in slabs)


def _of_claim(claim: provenance.Claim) -> Codec:
    limits: dict[str, Any] = {claim.mode: claim.bound}
    return HierarchicalDelta(**limits)


def _show(rows: list[Row]) -> None:
    console = Console()
    if not rows:
        console.print("there is nothing to compare: neither file has a dataset", soft_wrap=True)
        return
    tables.show(_COLUMNS, [_cells(row) for row in rows])
    for row in rows:
        if row.note:
            style = "bold red" if row.ok is False else "yellow"
            console.print(f"[{style}]{escape(f'{row.path}: {row.note}')}[/]", soft_wrap=True, highlight=False)
    console.print("attributes and links are not compared", soft_wrap=True)


def _cells(row: Row) -> list[str]:
    ok = {True: "[green]yes[/]", False: "[bold red]NO[/]", None: "[yellow]not compared[/]"}[row.ok]
    start = [escape(row.path), escape(row.codec or "-")]
    result = row.result
    if result is None:
        return [*start, "-", "-", "-", "-", "-", ok]
    return [
        *start,
        options.bound(result.bound, result.pointwise_relative) if result.bound > 0.0 else "bits",
        options.number(result.max_error) if math.isfinite(result.max_error) else "-",
        f"{result.psnr:.1f} dB" if math.isfinite(result.psnr) else "-",
        str(result.violations),
        "kept" if result.specials_kept else "[bold red]changed[/]",
        ok,
    ]
