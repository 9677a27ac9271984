# SPDX-License-Identifier: BSD-3-Clause
"""The fields of a set of particles, written to a group of a file and read back: row i of each is the same particle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from pyfilter import h5
from pyfilter.codecs import Codec, Lossless, Particles
from pyfilter.errors import InvalidArgument
from pyfilter.gpu.arrays import is_device_array
from pyfilter.particles.coordinates import codec_apart
from pyfilter.particles.rows import Column, on_host, rearranged, sorted_index, worthwhile

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: attributes: of the group (a description of its datasets), of each dataset (the order of its rows)
GROUP_ATTRIBUTE, ORDER_ATTRIBUTE = "pyfilter_particles", "pyfilter_particle_order"
#: particles in a chunk by default
CHUNK_PARTICLES = 1 << 18

Field = Any  # an array, a structured array, or a mapping of arrays


def write(
    group: h5py.Group,
    *,
    position: Field,
    codec: Codec,
    reorder: bool | str = False,
    codecs: Mapping[str, Codec] | None = None,
    names: Mapping[str, str] | None = None,
    chunk: int | None = None,
    **fields: Field,
) -> dict[str, h5py.Dataset]:
    """Write the fields of one set of particles, all in the same order of rows.

    Parameters
    ----------
    group : h5py.Group
        Where to create the datasets, such as ``file.require_group("PartType0")``.
    position : array_like (N, 2) or (N, 3), or mapping
        Coordinates, float32 or float64. A mapping such as ``{"x": x, "y": y, "z": z}`` makes a group with a dataset of
        shape (N,) for each axis, as openPMD has it; sorted ones take more space than one array.
    codec : Codec
        Of the position, usually ``Particles(...)``. A relative bound is taken of all coordinates together. If
        `Particles` must keep the order and a sample takes fewer bytes coordinate by coordinate, the dataset gets
        another of our codecs. It has the same bound, and chunks of one coordinate each (coordinates.py).
    reorder : bool or {"tile", "chunk"}, optional
        Whether particles may be sorted. True is "chunk": through each chunk. "tile" sorts in tiles of 4096 only, which
        moves particles less and gains less. Needs a `Particles` codec. A chunk is sorted only where all its fields
        together take fewer bytes so, and the file is never larger than with False. Ids that are in order cost more
        sorted than positions gain, so such rows stay. Where no row has moved, the attributes say "kept".
    codecs : mapping of str to Codec, optional
        Codecs of other fields by their keyword. Fields without a codec are stored bit for bit (`Lossless`).
    names : mapping of str to str, optional
        Names of datasets by keyword, where they are not the keyword: ``{"position": "Coordinates"}``.
    chunk : int, optional
        Particles in a chunk, the same for all fields; 262144 by default.
    **fields : array_like
        Further fields with N rows: (N,), (N, k), a structured array (a group with a dataset for each of its columns),
        or a mapping of arrays (a group likewise).

    Fields may be on a CUDA device and are compressed there; the order is found where the positions are.

    Returns
    -------
    dict of str to h5py.Dataset
        The datasets by their path below ``group``. Where anything fails, none is left behind.

    Raises
    ------
    ValueError
        If fields differ in their number of rows, names are taken or unknown, or ``reorder`` does not go with the codec.
    TypeError
        If a field is of a type that its codec does not take.
    """
    order = _order(reorder, codec)
    given = {"position": position, **fields}
    unknown = sorted({*(codecs or {}), *(names or {})} - set(given))
    if unknown:
        message = f"no field is called {', '.join(unknown)}; there are {', '.join(given)}"
        raise InvalidArgument(message)
    columns = {keyword: _columns(keyword, field) for keyword, field in given.items()}
    count = _count(columns)
    rows = CHUNK_PARTICLES if chunk is None else int(chunk)
    if rows < 1:
        message = f"chunk must be at least 1 particle, got {chunk!r}"
        raise InvalidArgument(message)
    rows = max(1, min(rows, count))
    stacked = _stacked(columns["position"])
    codec = h5.resolve(codec, stacked, None, (rows, stacked.shape[1]))
    apart = codec_apart(stacked, codec, rows, on_host) if isinstance(codec, Particles) else None
    stored = {
        keyword: {
            column: Column(array, codec if keyword == "position" else (codecs or {}).get(keyword, Lossless()))
            for column, array in parts.arrays.items()
        }
        for keyword, parts in columns.items()
    }
    index = None
    if order != "kept":
        stored = {keyword: {name: part.resolved(rows) for name, part in own.items()} for keyword, own in stored.items()}
        others = [part for keyword, own in stored.items() if keyword != "position" for part in own.values()]
        together = list(stored["position"].values())
        separate = together if apart is None else [part for one in together for part in one.by_coordinate(apart)]
        index = worthwhile(sorted_index(stacked, codec, order, rows), others, together, separate, rows)
        order = "kept" if index is None else order
    by_coordinate = index is None and apart is not None
    if index is None and apart is not None:
        stored["position"] = {name: Column(part.values, apart) for name, part in stored["position"].items()}
    written: dict[str, h5py.Dataset] = {}
    tops: list[str] = []
    try:
        layout: dict[str, Any] = {}
        for keyword, parts in columns.items():
            name = (names or {}).get(keyword, keyword)
            _require_free(group, name)
            tops.append(name)
            layout[keyword] = {"name": name, "kind": parts.kind, "columns": list(parts.arrays)}
            for column, part in stored[keyword].items():
                path = f"{name}/{column}" if column else name
                row = part.values.shape[1:]
                chunk_row = (1,) * len(row) if by_coordinate and keyword == "position" else row
                written[path] = h5.create_dataset(
                    group,
                    path,
                    part.values if index is None else rearranged(part.values, index),
                    part.codec,
                    chunks=(rows, *chunk_row),
                    maxshape=None if count else (None, *row),  # HDF5 allows no chunk larger than the maximum shape
                    attributes={ORDER_ATTRIBUTE: order},
                )
        group.attrs[GROUP_ATTRIBUTE] = json.dumps({"order": order, "chunk": rows, "fields": layout})
    except BaseException:
        for name in tops:
            if name in group:
                del group[name]
        raise
    return written


def read(group: h5py.Group, *fields: str) -> dict[str, Any]:
    """Read fields that `write` wrote, row i of each being the same particle.

    Parameters
    ----------
    group : h5py.Group
        The group that they were written to.
    *fields : str
        Their keywords; all if none is given.

    Returns
    -------
    dict
        The fields by keyword, as given to `write`: arrays, structured arrays, or dicts of arrays.

    Raises
    ------
    ValueError
        If the group was not written by `write`, has no such field, or a dataset was replaced by another of a different
        order or length.
    """
    text = group.attrs.get(GROUP_ATTRIBUTE)
    if text is None:
        message = f"{group.name} has no particles written by pyfilter.particles.write"
        raise InvalidArgument(message)
    described = json.loads(text)
    layout: dict[str, Any] = described["fields"]
    missing = [keyword for keyword in fields if keyword not in layout]
    if missing:
        message = f"{group.name} has no {', '.join(missing)}; it has {', '.join(layout)}"
        raise InvalidArgument(message)
    found: dict[str, Any] = {}
    rows: int | None = None
    for keyword in fields or layout:
        entry = layout[keyword]
        parts: dict[str, NDArray[Any]] = {}
        for column in entry["columns"]:
            path = f"{entry['name']}/{column}" if column else entry["name"]
            dataset = group.get(path)
            if not isinstance(dataset, h5py.Dataset):
                message = f"{group.name} lacks the dataset {path}, which its attributes name"
                raise InvalidArgument(message)
            order = dataset.attrs.get(ORDER_ATTRIBUTE)
            if order != described["order"] or dataset.shape[0] != (dataset.shape[0] if rows is None else rows):
                message = (
                    f"{dataset.name} is out of step with the other fields: its order is {order!r} and it has "
                    f"{dataset.shape[0]} rows; the group's order is {described['order']!r}"
                )
                raise InvalidArgument(message)
            rows = int(dataset.shape[0])
            parts[column] = h5.read(dataset)
        found[keyword] = _joined(entry["kind"], parts)
    return found


class _Columns:
    """A field as arrays of NumPy or CuPy with a row for each particle, by column; one array has the column ""."""

    def __init__(self, kind: str, arrays: dict[str, Any]) -> None:
        self.kind = kind
        self.arrays = arrays


def _array(field: Any) -> Any:
    """Return a field, or a column of one, as a NumPy or CuPy array."""
    if not is_device_array(field):
        return np.asarray(field)
    from pyfilter.gpu import arrays

    return arrays.device_array(field)


def _columns(keyword: str, field: Field) -> _Columns:
    arrays: dict[str, Any]
    if isinstance(field, Mapping):
        arrays = {str(column): _array(part) for column, part in field.items()}
        kind = "columns"
    else:
        array = _array(field)
        names = array.dtype.names
        arrays = {"": array} if names is None else {name: np.ascontiguousarray(array[name]) for name in names}
        kind = "array" if names is None else "structured"
    for column, array in arrays.items():
        label = f"{keyword} ({column})" if column else keyword
        if array.ndim == 0 or array.dtype.names is not None:
            message = f"{label} must have a row for each particle, and columns that are plain numbers"
            raise InvalidArgument(message)
    if not arrays:
        message = f"{keyword} has no columns"
        raise InvalidArgument(message)
    return _Columns(kind, arrays)


def _count(columns: Mapping[str, _Columns]) -> int:
    counts = {keyword: {len(array) for array in parts.arrays.values()} for keyword, parts in columns.items()}
    if len(set().union(*counts.values())) != 1:
        shown = ", ".join(f"{keyword} {'/'.join(map(str, sorted(found)))}" for keyword, found in counts.items())
        message = f"all fields must have a row for each particle; they have {shown} rows"
        raise InvalidArgument(message)
    return next(iter(counts["position"]))


def _require_free(group: h5py.Group, name: str) -> None:
    if name in group:
        message = f"{group.name} has a {name} already"
        raise InvalidArgument(message)


def _order(reorder: bool | str, codec: Codec) -> str:
    order = {False: "kept", True: "chunk", "tile": "tile", "chunk": "chunk"}.get(reorder)
    if order is None:
        message = f"reorder must be True, False, 'tile' or 'chunk'; got {reorder!r}"
        raise InvalidArgument(message)
    if isinstance(codec, Particles) and codec.order != "kept":
        message = "the codec must have order='kept': with reorder=True, write sorts all fields alike"
        raise InvalidArgument(message)
    if order != "kept" and not isinstance(codec, Particles):
        message = f"reorder needs codec=Particles(...), got {codec!r}"
        raise InvalidArgument(message)
    return order


def _stacked(position: _Columns) -> Any:
    """Return the coordinates as one array (N, 2) or (N, 3) of floats, on a device if one of them is there."""
    columns = list(position.arrays.values())
    if position.kind == "array":
        stacked = columns[0]
    elif any(is_device_array(array) for array in columns):
        from pyfilter.gpu import order

        stacked = order.stacked(columns)
    else:
        stacked = np.stack(columns, axis=-1)
    if stacked.ndim != 2 or stacked.shape[1] not in (2, 3) or stacked.dtype.kind != "f" or stacked.itemsize < 4:
        message = (
            "position must have 2 or 3 coordinates of float32 or float64: an array (N, 2) or (N, 3), or a mapping of "
            f"arrays (N,). Got shape {stacked.shape}, {stacked.dtype}"
        )
        raise InvalidArgument(message)
    return stacked


def _joined(kind: str, parts: dict[str, NDArray[Any]]) -> Any:
    if kind == "array":
        return parts[""]
    if kind == "columns":
        return parts
    joined = np.empty(
        len(next(iter(parts.values()))), [(column, array.dtype, array.shape[1:]) for column, array in parts.items()]
    )
    for column, array in parts.items():
        joined[column] = array
    return joined
