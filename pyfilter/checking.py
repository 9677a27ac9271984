# SPDX-License-Identifier: BSD-3-Clause
"""Inspects files: the codec of each dataset, and problems that no program reported."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import h5py
import numpy as np
from h5py import h5, h5d, h5g, h5l, h5o, h5p, h5z

from pyfilter import plugin
from pyfilter._chunks import pipeline, stored
from pyfilter.codecs.base import Codec
from pyfilter.errors import PyfilterError, Unsupported
from pyfilter.frames import frame_info, records_info
from pyfilter.records import Compound
from pyfilter.registry import registry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyfilter._chunks.pipeline import Pipeline


_NOT_A_VARIABLE = "This is a netCDF dimension but not a netCDF variable"


@dataclass(frozen=True)
class Finding:
    """A problem of a dataset.

    Attributes
    ----------
    dataset : str
        The dataset's path.
    problem : str
        "stored raw": chunks that were written without the filter and are not compressed (their values are exact).
        "filter missing": this process cannot read the dataset.
        "filter order": filters before ours (or another lossy filter) change the values that the bound holds for. "not
        configured": the filter's set_local did not run, so chunks are not compressed. "unreadable settings": the
        filter's cd_values are of another release. "larger bound": chunks with a relative bound (or psnr) were written
        in parts, and their range became smaller. Older values keep the bound of the larger range. Looked for where no
        filter follows ours.
    chunks : int
        How many chunks it concerns.
    detail : str
        What it means, and what to do.
    """

    dataset: str
    problem: str
    chunks: int
    detail: str

    def __str__(self) -> str:
        """Return one line for a report."""
        count = f" ({self.chunks} chunks)" if self.chunks else ""
        return f"{self.dataset}: {self.problem}{count}: {self.detail}"


def codec_of(dataset: Any) -> Codec | Compound | None:
    """Return the codec of a dataset or variable, None where pyfilter has no part in it.

    Parameters
    ----------
    dataset : h5py.Dataset, h5netcdf.Variable or netCDF4.Variable
        What to look at.

    Returns
    -------
    Codec, Compound or None
        As it is stored, of a compound type the codecs of its fields; `create_dataset` has turned a relative bound into
        an absolute one.

    Raises
    ------
    TypeError
        If it is none of these.
    ValueError
        If this release does not know the stored settings.
    """
    inner = getattr(dataset, "_h5ds", dataset)  # h5netcdf's variables wrap an h5py dataset
    if isinstance(inner, h5py.Dataset):
        return pipeline.pipeline_of(inner).codec
    if is_netcdf_variable(dataset):
        from pyfilter import netcdf

        return netcdf.codec_of(dataset)
    message = f"an h5py.Dataset, h5netcdf or netCDF4 variable is needed, got {type(dataset).__name__}"
    raise Unsupported(message)


def is_netcdf_variable(thing: object) -> bool:
    """Whether this is a variable of netCDF4, which is not imported to find out."""
    netcdf4 = sys.modules.get("netCDF4")
    return netcdf4 is not None and isinstance(thing, netcdf4.Variable)


def check(target: str | os.PathLike[str] | h5py.Group | h5py.Dataset) -> list[Finding]:
    """Look for chunks stored raw in silence, a missing filter and a wrong order of filters.

    HDF5 stores a chunk as it is, and returns success, where a filter is not loaded at the time of writing.

    Parameters
    ----------
    target : path, h5py.Group or h5py.Dataset
        A file (opened for reading here), or an open object; a group stands for everything below it.

    Returns
    -------
    list of Finding
        Empty where all is well. Filters of others are checked too: any may be missing, and lossy ones (ZFP, SZ, SZ3,
        SPERR) may have raw chunks or a wrong order.

    Raises
    ------
    TypeError
        If the target is none of these.
    OSError
        If the file cannot be opened.
    """
    plugin.refresh()
    if isinstance(target, (str, os.PathLike)):
        with h5py.File(target, "r") as file:
            return check(file)
    if isinstance(target, h5py.Dataset):
        return _findings(target)
    if isinstance(target, h5py.Group):
        return [finding for dataset in datasets(target) for finding in _findings(dataset)]
    message = f"a path, an h5py.Group or an h5py.Dataset is needed, got {type(target).__name__}"
    raise Unsupported(message)


def is_bare_dimension(dataset: h5py.Dataset) -> bool:
    """Whether this is the placeholder that netCDF-4 keeps for a dimension without a coordinate variable."""
    return text_attribute(dataset, "NAME").startswith(_NOT_A_VARIABLE)


def text_attribute(dataset: h5py.Dataset | h5py.Group, name: str) -> str:
    """Return a text attribute, "" where there is none or it is no text."""
    try:
        value = dataset.attrs.get(name, "")
    except (OSError, TypeError):  # a type that h5py cannot read
        return ""
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.reshape(-1)[0]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else ""


def datasets(group: h5py.Group) -> Iterator[h5py.Dataset]:
    """Yield every dataset below a group once, whatever the number of links to it.

    Groups are visited depth first, their links in the order of creation if the group keeps it. rewrite/copy.py copies a
    file in the same order.
    """
    seen: set[tuple[int, int]] = set()

    def walk(inner: Any) -> Iterator[h5py.Dataset]:
        for link in links(inner):
            if link.kind != h5l.TYPE_HARD:
                continue
            item = h5o.open(inner, link.name)
            place = address(item)
            if place in seen:
                continue
            seen.add(place)
            if isinstance(item, h5d.DatasetID):
                yield h5py.Dataset(item)
            elif isinstance(item, h5g.GroupID):
                yield from walk(item)

    root = h5o.open(group.id, b".")  # a file's identifier differs from its root group's
    seen.add(address(root))
    return walk(root)


class Link(NamedTuple):
    """A link of a group: its name, its kind (h5py.h5l.TYPE_*) and the character set of the name (h5py.h5t.CSET_*)."""

    name: bytes
    kind: int
    charset: int


def links(group: Any) -> list[Link]:
    """Return the links of a low-level group: in the order of creation, else of names."""
    tracked = group.get_create_plist().get_link_creation_order() & h5p.CRT_ORDER_TRACKED
    found: list[Link] = []
    group.links.iterate(
        lambda name, info: found.append(Link(name, info.type, info.cset)),  # info is the same object each time
        info=True,
        idx_type=h5.INDEX_CRT_ORDER if tracked else h5.INDEX_NAME,
        order=h5.ITER_INC,
    )
    return found


def address(identity: Any) -> tuple[int, int]:
    """Return the identity of an open object in the process: its file and its address there."""
    info = h5o.get_info(identity)
    return int(info.fileno), int(info.addr)


def raw_chunks(dataset: h5py.Dataset, position: int) -> tuple[int, int]:
    """Return how many chunks are stored without the filter at ``position`` in the pipeline, and how many in all."""
    masks = stored.listed(dataset).masks
    return int(np.count_nonzero(masks >> np.uint32(position) & np.uint32(1))), len(masks)


def _findings(dataset: h5py.Dataset) -> list[Finding]:
    filters = pipeline.pipeline_of(dataset)
    name = str(dataset.name)
    found: list[Finding] = []
    for position, identity in enumerate(filters.ids):
        ours = identity == registry().filter_id
        if ours or identity in pipeline.LOSSY_FILTERS:
            found += _of_codec(dataset, filters.ids, position)
        elif not h5z.filter_avail(identity):
            found.append(_missing(name, identity))
        if ours:
            if not filters.stamped:
                detail = "created without the plugin's set_local; the filter passes every chunk through as it is"
                found.append(Finding(name, "not configured", 0, detail))
            found += _settings(name, filters)
            if not found and position + 1 == len(filters.ids):
                found += _larger_bounds(dataset, filters)
    return found


def _larger_bounds(dataset: h5py.Dataset, filters: Pipeline) -> list[Finding]:
    """Return a finding if frames carry a bound larger than their range gives."""
    codec = filters.codec
    codecs = list(codec.fields.values()) if isinstance(codec, Compound) else [codec]
    if not any(item is not None and item.bound[0] in ("relative", "psnr") for item in codecs):
        return []
    carried: list[tuple[float, float]] = []
    for origin in stored.origins_of(dataset):
        mask, frame = dataset.id.read_direct_chunk(origin)
        if mask:
            continue
        if isinstance(codec, Compound):
            headers = [column.frame for column in records_info(frame).columns]
        else:
            headers = [frame_info(frame)]
        bounds = [(info.carried_bound, info.bound) for info in headers if info.carried_bound > info.bound]
        if bounds:
            carried.append(max(bounds))
    if not carried:
        return []
    largest, now = max(carried)
    detail = (
        f"the range became smaller while parts of the chunk were written. Older values are within {largest:.6g}, "
        f"newer ones within {now:.6g}. Write whole chunks, or use absolute= or pyfilter.create_dataset"
    )
    return [Finding(str(dataset.name), "larger bound", len(carried), detail)]


def _of_codec(dataset: h5py.Dataset, ids: tuple[int, ...], position: int) -> list[Finding]:
    """Return the problems of a filter that keeps values to a bound, ours or another's."""
    name, identity = str(dataset.name), ids[position]
    shown = pipeline.filter_name(identity)
    found: list[Finding] = []
    raw, _ = raw_chunks(dataset, position)
    if raw:
        detail = f"written without {shown}; the values are exact, rewrite the dataset to compress them"
        found.append(Finding(name, "stored raw", raw, detail))
    if not h5z.filter_avail(identity):
        found.append(_missing(name, identity))
    before = pipeline.breaks_bound(ids, identity)
    if before:
        detail = f"{', '.join(map(pipeline.filter_name, before))} comes before {shown}"
        found.append(Finding(name, "filter order", 0, detail))
    return found


def _missing(name: str, identity: int) -> Finding:
    shown = pipeline.filter_name(identity)
    called = str(identity) if identity == registry().filter_id or shown == str(identity) else f"{identity} ({shown})"
    detail = f"filter {called} is not known to h5py's HDF5; put the folder of its plugin into {plugin.VARIABLE}"
    return Finding(name, "filter missing", 0, detail)


def _settings(name: str, filters: Pipeline) -> list[Finding]:
    try:
        _ = filters.codec
    except PyfilterError as error:
        return [Finding(name, "unreadable settings", 0, str(error))]
    return []
