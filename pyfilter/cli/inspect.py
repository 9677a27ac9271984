# SPDX-License-Identifier: BSD-3-Clause
"""``pyfilter inspect``: what is in a file."""

from __future__ import annotations

import json as json_module
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import h5py
import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pyfilter import checking, pipeline
from pyfilter.cli import options
from pyfilter.codecs import HierarchicalDelta
from pyfilter.errors import FrameError, InvalidArgument, PyfilterError
from pyfilter.frames import frame_info
from pyfilter.rewrite import netcdf3

_LOOKED_AT = 32  # chunks of a dataset, for what their frames say


@dataclass(frozen=True)
class Entry:
    """One dataset of a file."""

    path: str
    dtype: str
    shape: tuple[int, ...]
    chunks: tuple[int, ...] | None
    codec: str | None
    predictors: dict[str, int] | None  # of the chunks looked at, how many have which
    bound: float | None
    filters: tuple[str, ...]
    bytes_stored: int
    ratio: float | None
    chunk_count: int
    raw_chunks: int


def inspect(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="HDF5 or netCDF-4.", exists=True, dir_okay=False)],
    json: options.Json = False,
) -> None:
    """Show each dataset's codec, bound and ratio, and chunks that were stored raw.

    Exit status 1: something is wrong with the file.
    """
    if netcdf3.is_netcdf3(file):
        message = f"{file} is a netCDF-3 file: it has no filters (pyfilter compress makes a netCDF-4 file of it)"
        raise InvalidArgument(message)
    with h5py.File(file, "r") as opened:
        entries = [_entry(dataset) for dataset in checking.datasets(opened) if not checking.is_bare_dimension(dataset)]
        findings = checking.check(opened)
    if json:
        found = {"datasets": [asdict(entry) for entry in entries], "findings": [asdict(item) for item in findings]}
        typer.echo(json_module.dumps(found, indent=2))
    else:
        _show(entries, findings)
    if findings:
        raise typer.Exit(1)


def _entry(dataset: h5py.Dataset) -> Entry:
    filters = pipeline.pipeline_of(dataset)
    codec = bound = predictors = None
    chunk_count = raw = 0
    if filters.has_ours:
        raw, chunk_count = checking.raw_chunks(dataset, filters.position)
        try:
            found = filters.codec
            codec = repr(found)
            bound = found.bound[1] if found is not None and found.bound[0] in ("none", "absolute") else None
            predictors = _predictors(dataset) if isinstance(found, HierarchicalDelta) and filters.only_ours else None
        except PyfilterError:
            codec = "unreadable settings"
    stored = int(dataset.id.get_storage_size())
    values = int(dataset.size or 0) * dataset.dtype.itemsize
    return Entry(
        path=str(dataset.name),
        dtype=np.dtype(dataset.dtype).name,
        shape=tuple(dataset.shape or ()),
        chunks=dataset.chunks,
        codec=codec,
        predictors=predictors,
        bound=bound,
        filters=tuple(pipeline.filter_name(item) for item in filters.ids),
        bytes_stored=stored,
        ratio=values / stored if stored else None,
        chunk_count=chunk_count,
        raw_chunks=raw,
    )


def _predictors(dataset: h5py.Dataset) -> dict[str, int]:
    """Return how often which predictor was chosen, in at most `_LOOKED_AT` chunks spread over the dataset."""
    found: Counter[str] = Counter()
    count = dataset.id.get_num_chunks()
    for index in range(0, count, -(-count // _LOOKED_AT) or 1):
        origin = dataset.id.get_chunk_info(index).chunk_offset
        mask, frame = dataset.id.read_direct_chunk(origin)
        if mask:
            continue
        try:
            info = frame_info(frame)
        except FrameError:
            found["damaged"] += 1
            continue
        name = info.codec
        if "predictor" in info.parameters:
            name = f"{info.parameters['predictor']}, order {info.parameters['order']}"
        found["raw" if info.stored_raw else name] += 1
    return dict(found.most_common())


def _show(entries: list[Entry], findings: list[checking.Finding]) -> None:
    console = Console()
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("dataset", "type", "shape", "chunks", "codec"):
        table.add_column(heading, overflow="fold")
    for heading in ("bound", "stored", "ratio", "raw chunks"):
        table.add_column(heading, justify="right")
    for entry in entries:
        others = ", ".join(item for item in entry.filters if entry.codec is None or item != "pyfilter")
        chosen = "; ".join(f"{name}: {count}" for name, count in (entry.predictors or {}).items())
        name = ", ".join(item for item in (entry.codec, others, f"chunks {chosen}" if chosen else "") if item)
        table.add_row(
            escape(entry.path),
            entry.dtype,
            options.shape(entry.shape),
            "-" if entry.chunks is None else options.shape(entry.chunks),
            escape(name) or "-",
            options.number(entry.bound),
            options.size(entry.bytes_stored),
            "-" if entry.ratio is None else f"{entry.ratio:.2f}",
            f"{entry.raw_chunks} of {entry.chunk_count}" if entry.codec is not None else "-",
        )
    console.print(table)
    for finding in findings:
        console.print(f"[bold red]{escape(str(finding))}[/]", soft_wrap=True)
