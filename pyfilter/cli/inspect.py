# SPDX-License-Identifier: BSD-3-Clause
"""``pyfilter inspect``: the datasets of a file, their codecs and sizes."""

from __future__ import annotations

import json as json_module
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import h5py
import numpy as np
from rich.console import Console
from rich.markup import escape

from pyfilter import checking
from pyfilter._chunks import pipeline
from pyfilter._chunks.stored import origins_of
from pyfilter.cli import help, options, tables
from pyfilter.cli.tables import Column
from pyfilter.codecs import Codec
from pyfilter.errors import FrameError, InvalidArgument, PyfilterError
from pyfilter.frames import frame_bytes, frame_info, records_info
from pyfilter.records import fields
from pyfilter.records.frames import is_records
from pyfilter.rewrite import netcdf3

if TYPE_CHECKING:
    from collections.abc import Iterator

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


@dataclass(frozen=True)
class Chunk:
    """One chunk of a dataset that our filter is in."""

    offset: tuple[int, ...]
    bytes_stored: int
    ratio: float
    codec: str  # of its frame: "lossless" or "raw" too where a lossy one gained nothing; "unfiltered", "damaged"
    bound: float | None
    parameters: dict[str, str | int | bool]


@help.command("inspect")
@help.argument("file", type=options.EXISTING_FILE, metavar="FILE", help="HDF5 or netCDF-4.")
@click.option("--verbose", "-v", is_flag=True, help="List each chunk too.")
@options.json
def inspect(*, file: Path, verbose: bool, json: bool) -> None:
    """Show each dataset's codec, bound and ratio, and chunks that were stored raw.

    Exit status 1: something is wrong with the file.
    """
    if netcdf3.is_netcdf3(file):
        message = f"{file} is a netCDF-3 file: it has no filters (pyfilter compress makes a netCDF-4 file of it)"
        raise InvalidArgument(message)
    with h5py.File(file, "r") as opened:
        entries = [_entry(dataset) for dataset in checking.datasets(opened) if not checking.is_bare_dimension(dataset)]
        findings = checking.check(opened)
        ours = [entry.path for entry in entries if entry.codec is not None] if verbose else []
        chunks = {path: list(_chunks(opened[path])) for path in ours}
    if json:
        rows = [asdict(entry) for entry in entries]
        for row in rows if verbose else ():
            row["chunk_list"] = [asdict(chunk) for chunk in chunks.get(row["path"], ())]
        found = {"datasets": rows, "findings": [asdict(item) for item in findings]}
        click.echo(json_module.dumps(found, indent=2))
    else:
        _show(entries, chunks, findings)
    if findings:
        raise click.exceptions.Exit(1)


def _entry(dataset: h5py.Dataset) -> Entry:
    filters = pipeline.pipeline_of(dataset)
    codec = bound = predictors = None
    chunk_count = raw = 0
    if filters.has_ours:
        raw, chunk_count = checking.raw_chunks(dataset, filters.position)
        try:
            found = filters.codec
            codec = repr(found)
            bound = found.bound[1] if isinstance(found, Codec) and found.bound[0] in ("none", "absolute") else None
            predictors = (
                _predictors(dataset)
                if isinstance(found, Codec) and _has_predictors(found) and filters.only_ours
                else None
            )
        except PyfilterError:
            codec = "unreadable settings"
    stored = int(dataset.id.get_storage_size())
    values = int(dataset.size or 0) * dataset.dtype.itemsize
    return Entry(
        path=str(dataset.name),
        dtype=_type_of(dataset.dtype),
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


def _type_of(dtype: np.dtype[Any]) -> str:
    return dtype.name if dtype.names is None else f"compound of {len(dtype.names)} fields"


def _has_predictors(codec: Codec) -> bool:
    return any(parameter.name == "predictor" for parameter in codec.requested_spec.parameters)


def _predictors(dataset: h5py.Dataset) -> dict[str, int]:
    """Return how often which predictor was chosen, in at most `_LOOKED_AT` chunks spread over the dataset."""
    found: Counter[str] = Counter()
    origins = list(origins_of(dataset))
    for origin in origins[:: -(-len(origins) // _LOOKED_AT) or 1]:
        chunk = _chunk(dataset, origin)
        name = chunk.codec
        if "predictor" in chunk.parameters:
            name = f"{chunk.parameters['predictor']}, order {chunk.parameters['order']}"
        found[name] += name != "unfiltered"
    return dict(found.most_common())


def _chunks(dataset: h5py.Dataset) -> Iterator[Chunk]:
    """Yield every chunk that exists."""
    filters = pipeline.pipeline_of(dataset)
    after = ", ".join(map(pipeline.filter_name, filters.ids[filters.position + 1 :]))
    return (_chunk(dataset, origin, after) for origin in origins_of(dataset))


def _chunk(dataset: h5py.Dataset, origin: tuple[int, ...], after: str = "") -> Chunk:
    """Return the facts about a chunk; ``after`` names the filters that its frame went through."""
    mask, frame = dataset.id.read_direct_chunk(origin)
    values = int(np.prod(dataset.chunks, dtype=np.int64)) * dataset.dtype.itemsize
    codec, bound = "unfiltered" if mask else f"inside {after}", None
    parameters: dict[str, str | int | bool] = {}
    if not mask and not after:
        try:
            if is_records(frame_bytes(frame)):
                return Chunk(origin, len(frame), values / max(len(frame), 1), "records", None, _columns(dataset, frame))
            info = frame_info(frame)
            codec, bound = "raw" if info.stored_raw else info.codec, info.error_bound
            parameters = dict(info.parameters)
        except FrameError:
            codec = "damaged"
    return Chunk(origin, len(frame), values / max(len(frame), 1), codec, bound, parameters)


def _columns(dataset: h5py.Dataset, frame: bytes) -> dict[str, str | int | bool]:
    """Return for each field of a frame of records how it is encoded, and its bound."""
    names = {field.offset: field.name for field in fields.all_bytes_of(dataset.dtype)}
    found: dict[str, str | int | bool] = {}
    for column in records_info(frame).columns:
        header = column.frame
        codec = "raw" if header.stored_raw else header.codec
        name = names.get(column.offset) or f"padding at {column.offset}"
        found[name] = f"{codec} {header.error_bound:.6g}" if header.error_bound else codec
    return found


_COLUMNS = (
    Column("dataset"),
    Column("type", drop=2),
    Column("shape", drop=5),
    Column("chunks", drop=1),
    Column("codec", shorten=True, drop=7),
    Column("bound", right=True, drop=4),
    Column("stored", right=True, drop=3),
    Column("ratio", right=True, drop=6),
    Column("raw chunks", right=True),
)
_CHUNK_COLUMNS = (
    Column("chunk at"),
    Column("codec"),
    Column("parameters", shorten=True, drop=2),
    Column("bound", right=True, drop=3),
    Column("stored", right=True, drop=1),
    Column("ratio", right=True, drop=4),
)


def _show(entries: list[Entry], chunks: dict[str, list[Chunk]], findings: list[checking.Finding]) -> None:
    rows = []
    for entry in entries:
        others = ", ".join(item for item in entry.filters if entry.codec is None or item != "pyfilter")
        chosen = "; ".join(f"{name}: {count}" for name, count in (entry.predictors or {}).items())
        name = ", ".join(item for item in (entry.codec, others, f"chunks {chosen}" if chosen else "") if item)
        cells = (
            entry.path,
            entry.dtype,
            options.shape(entry.shape),
            "-" if entry.chunks is None else options.shape(entry.chunks),
            name or "-",
            options.number(entry.bound),
            options.size(entry.bytes_stored),
            "-" if entry.ratio is None else f"{entry.ratio:.2f}",
            f"{entry.raw_chunks} of {entry.chunk_count}" if entry.codec is not None else "-",
        )
        rows.append([escape(cell) for cell in cells])
    tables.show(_COLUMNS, rows)
    for path, items in chunks.items():
        tables.show(_CHUNK_COLUMNS, [_chunk_cells(item) for item in items], title=f"[italic]{escape(path)}[/]")
    console = Console()
    for finding in findings:
        console.print(f"[bold red]{escape(str(finding))}[/]", soft_wrap=True)


def _chunk_cells(chunk: Chunk) -> list[str]:
    return [
        ", ".join(map(str, chunk.offset)),
        chunk.codec,
        ", ".join(f"{name} {value}" for name, value in chunk.parameters.items()) or "-",
        options.number(chunk.bound),
        options.size(chunk.bytes_stored),
        f"{chunk.ratio:.2f}",
    ]
