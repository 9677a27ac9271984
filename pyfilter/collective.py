# SPDX-License-Identifier: BSD-3-Clause
"""Datasets that processes write together through MPI, each its part. h5.py hands over to it where ``comm`` is given.

HDF5 writes compressed chunks of such files in calls that all processes take part in. In each call a process gets whole
chunks to compress, by the filter, which uses all threads of the process for a chunk.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import h5py
import numpy as np
from h5py import h5fd, h5p, h5s

from pyfilter import dtypes, plugin
from pyfilter._chunks import creation, layout, transfer
from pyfilter.codecs.base import Codec, absolute_of
from pyfilter.errors import InvalidArgument, PyfilterError, Unsupported
from pyfilter.frames import make_request, plain_array

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from pyfilter._chunks.layout import Region

#: values that a process hands to HDF5 in one call; HDF5 keeps as much again in memory
_CALL_BYTES = 128 << 20


class _Part(NamedTuple):
    """A process's description of its part; every process knows all descriptions."""

    error: str | None
    shape: tuple[int, ...]
    start: tuple[int, ...] | None
    dtype: str
    agreed: str  # what must be the same in all processes


def create_dataset(
    group: h5py.Group,
    name: str | None,
    part: Any,
    codec: Codec,
    *,
    comm: Any = None,
    start: Sequence[int] | None = None,
    chunks: tuple[int, ...] | bool | None = None,
    fillvalue: object = None,
    attributes: Mapping[str, object] | None = None,
    **kwargs: Any,
) -> h5py.Dataset:
    """Create a compressed dataset of the parts that all processes give; called by all of them.

    A relative bound (or psnr) is taken of the values of all processes, and stored as the absolute bound that it means.

    Parameters
    ----------
    group : h5py.Group
        Of a file that is open with driver "mpio".
    name : str or None
        The dataset's name, None for an anonymous one.
    part : array_like
        The values of this process, of one or more dimensions; an extent may be 0.
    codec : Codec
        Such as ``Lorenzo(relative=1e-4)``; the same in all processes.
    comm : mpi4py.MPI.Comm, optional
        The processes that have the file open; by default the file knows them.
    start : sequence of int, optional
        Where the part begins in the dataset. By default parts follow each other along the first axis, in the order of
        ranks. The dataset is as large as the parts need; what no part has is the fill value.
    chunks : tuple of int, optional
        Chunk shape. None and True choose a shape of up to 4 MiB that parts do not cut, if possible.
    fillvalue : scalar, optional
        As for `pyfilter.create_dataset`.
    attributes : mapping, optional
        Attributes to set on the dataset; the same in all processes.
    **kwargs
        Further arguments of ``h5py.Group.create_dataset``.

    Returns
    -------
    h5py.Dataset
        Where anything fails in any process, it is removed, and all of them raise an error.

    Raises
    ------
    TypeError
        If a codec does not take the values' type, or the file is not open with driver "mpio".
    ValueError
        If parts overlap or do not fit each other, arguments are not the same in all processes, or one is out of range.
    """
    plugin.refresh()
    comm = _communicator(group, comm)
    values: NDArray[Any] = np.empty(0)

    def local() -> _Part:
        nonlocal values
        creation.refuse_settings(kwargs, "parts give the shape", "devices")
        if not isinstance(codec, Codec):
            message = f"a codec is needed, such as pyfilter.Cuszp2(absolute=1e-3); got {codec!r}"
            raise Unsupported(message)
        values = plain_array(part)
        if values.ndim == 0:
            message = "a part must have one or more dimensions, got a scalar"
            raise InvalidArgument(message)
        dtypes.require(codec.requested_spec.name, values.dtype)
        first = None if start is None else tuple(int(at) for at in start)
        if first is not None and (len(first) != values.ndim or min(first) < 0):
            message = f"start must have {values.ndim} numbers >= 0, one for each dimension; got {start!r}"
            raise InvalidArgument(message)
        agreed = repr((name, codec, chunks, fillvalue, sorted(kwargs.items())))
        return _Part(None, values.shape, first, values.dtype.str, agreed)

    parts = _of_all(comm, local)
    starts, shape = _placed(parts)
    chunk = layout.chosen(chunks, shape, values.dtype.itemsize, None, codec.edges)
    if chunks is None or chunks is True:
        chunk = _fitting(chunk, starts)
    codec = _resolved(comm, codec, values, fillvalue, chunk)
    kwargs.pop("devices", None)
    settings = {"dtype": values.dtype, "fillvalue": fillvalue, "compression": codec, **kwargs}
    dataset = group.create_dataset(name, shape=shape, chunks=chunk, **settings)
    try:
        write(dataset, values, start=starts[comm.rank], comm=comm)
        for key, value in (attributes or {}).items():
            dataset.attrs[key] = value
    except Exception:  # raised in all processes
        if name is not None:
            del group[name]
        raise
    return dataset


def write(dataset: h5py.Dataset, part: ArrayLike, *, start: Sequence[int], comm: Any = None) -> None:
    """Write a part of a dataset in each process; called by all of them, also by those whose part is empty.

    Parameters
    ----------
    dataset : h5py.Dataset
        Of a file that is open with driver "mpio".
    part : array_like
        The values of this process.
    start : sequence of int
        Where the part begins in the dataset.
    comm : mpi4py.MPI.Comm, optional
        As for `create_dataset`.

    Raises
    ------
    TypeError
        If the file is not open with driver "mpio", or the dataset is not chunked.
    ValueError
        If a part reaches beyond the dataset.
    OSError
        If HDF5 cannot write in one of the processes; all raise an error then.
    """
    plugin.refresh()
    comm = _communicator(dataset, comm)
    boxes: list[Region] = []
    values: NDArray[Any] = np.empty(0)

    def local() -> int:
        nonlocal values
        if dataset.chunks is None:
            message = f"{dataset.name} is not chunked, so nothing in it can be compressed"
            raise Unsupported(message)
        values = plain_array(part)
        if len(start) != dataset.ndim or values.ndim != dataset.ndim:
            message = f"start and part must have {dataset.ndim} dimensions, got {tuple(start)} and {values.shape}"
            raise InvalidArgument(message)
        region = tuple(slice(at, at + extent) for at, extent in zip(start, values.shape, strict=True))
        if any(at.start < 0 or at.stop > extent for at, extent in zip(region, dataset.shape, strict=True)):
            message = f"a part of {values.shape} at {tuple(start)} reaches beyond the shape {dataset.shape}"
            raise InvalidArgument(message)
        if values.size:
            boxes.extend(layout.batches(region, dataset.chunks, dataset.dtype.itemsize, _CALL_BYTES))
        return len(boxes)

    steps = max(_of_all(comm, local))
    for step in range(steps):
        box = boxes[step] if step < len(boxes) else None

        def one(box: Region | None = box) -> None:
            _write_box(dataset, box, None if box is None else values[layout.shifted(box, start)])

        _of_all(comm, one)


def _write_box(dataset: h5py.Dataset, box: Region | None, values: NDArray[Any] | None) -> None:
    """Make one collective call; without a box it only takes part. h5py makes none for a selection without values."""
    together = h5p.create(h5p.DATASET_XFER)
    together.set_dxpl_mpio(h5fd.MPIO_COLLECTIVE)
    space = dataset.id.get_space()
    if box is None or values is None:
        space.select_none()
        memory = h5s.create_simple((1,))
        memory.select_none()
        values = np.empty(1, dataset.dtype)
    else:
        extents = tuple(part.stop - part.start for part in box)
        space.select_hyperslab(tuple(part.start for part in box), extents)
        memory = h5s.create_simple(extents)
        values = np.ascontiguousarray(values)
    dataset.id.write(memory, space, values, dxpl=together)


def _communicator(thing: h5py.Group | h5py.Dataset, comm: Any) -> Any:
    """Return the processes that have a file open."""
    file = thing.file
    if file.driver != "mpio":
        message = (
            f"{file.filename} is open with driver {file.driver!r}: parts of several processes need "
            "h5py.File(path, mode, driver='mpio', comm=comm), of an h5py that is built with MPI"
        )
        raise Unsupported(message)
    return file.id.get_access_plist().get_fapl_mpio()[0] if comm is None else comm


def _of_all(comm: Any, work: Callable[[], Any]) -> list[Any]:
    """Return the work's result in each process; an error in one is an error in all, so that none waits for ever."""
    found, failed = None, None
    try:
        found = work()
    except Exception as error:
        failed = error
    told = comm.allgather((None if failed is None else f"{type(failed).__name__}: {failed}", found))
    if failed is not None:
        raise failed
    for rank, (error_text, _) in enumerate(told):
        if error_text is not None:
            message = f"process {rank} of {comm.size} failed: {error_text}"
            raise PyfilterError(message)
    return [each for _, each in told]


def _placed(parts: list[_Part]) -> tuple[list[tuple[int, ...]], tuple[int, ...]]:
    """Return where each part begins, and the shape that all need; the same error in all processes."""
    for what in ("agreed", "dtype"):
        kinds = {getattr(part, what): rank for rank, part in enumerate(parts)}
        if len(kinds) > 1:
            shown = "; ".join(f"process {rank}: {kind}" for kind, rank in list(kinds.items())[:2])
            message = f"all processes must give the same name, codec, settings and type of values; {shown}"
            raise InvalidArgument(message)
    rank = len(parts[0].shape)
    if any(len(part.shape) != rank for part in parts):
        message = f"parts must have the same number of dimensions, got shapes {sorted({part.shape for part in parts})}"
        raise InvalidArgument(message)
    given = [part.start for part in parts]
    if all(start is None for start in given):
        if len({part.shape[1:] for part in parts}) > 1:
            shapes = sorted({part.shape for part in parts})
            message = f"parts follow each other along the first axis, so the others must be equal; got {shapes}"
            raise InvalidArgument(message)
        firsts = itertools.accumulate((0, *(part.shape[0] for part in parts[:-1])))
        starts: list[tuple[int, ...]] = [(first, *(0,) * (rank - 1)) for first in firsts]
    elif any(start is None for start in given):
        message = "start is given in some processes: give it in all, or in none"
        raise InvalidArgument(message)
    else:
        starts = [start for start in given if start is not None]
        _require_apart(starts, parts)
    stops = [
        [at + extent for at, extent in zip(start, part.shape, strict=True)]
        for start, part in zip(starts, parts, strict=True)
        if math.prod(part.shape)
    ]
    if not stops:
        message = "no process has values"
        raise InvalidArgument(message)
    return starts, tuple(max(each) for each in zip(*stops, strict=True))


def _require_apart(starts: list[tuple[int, ...]], parts: list[_Part]) -> None:
    """Refuse parts that overlap: which values the file would get is left to chance."""
    low = np.array(starts, dtype=np.int64)
    high = low + np.array([part.shape for part in parts], dtype=np.int64)
    for rank in range(len(parts) - 1):
        both = np.minimum(high[rank], high[rank + 1 :]) > np.maximum(low[rank], low[rank + 1 :])
        found = np.flatnonzero(both.all(axis=1))
        if found.size:
            other = rank + 1 + int(found[0])
            message = (
                f"the parts of processes {rank} and {other} overlap: {parts[rank].shape} at {starts[rank]}, "
                f"{parts[other].shape} at {starts[other]}"
            )
            raise InvalidArgument(message)


def _fitting(chunk: tuple[int, ...], starts: list[tuple[int, ...]]) -> tuple[int, ...]:
    """Return a chunk shape of edges that divide where parts begin, where these are not much shorter."""
    edges = []
    for axis, edge in enumerate(chunk):
        common = math.gcd(*(start[axis] for start in starts))
        divisor = next((size for size in range(edge, 0, -1) if common % size == 0), edge)
        edges.append(divisor if 2 * divisor > edge else edge)
    return tuple(edges)


def _resolved(comm: Any, codec: Codec, values: NDArray[Any], fill: object, chunk: tuple[int, ...]) -> Codec:
    """Return the codec with its relative bound resolved for the values of all processes."""
    fraction = codec.range_fraction
    if fraction is None:
        return codec

    def local() -> tuple[float, float] | None:
        request = make_request(codec, dtypes.native(values.dtype), (), fill)
        return transfer.value_range(values, request, chunk) if values.size else None

    found = [limits for limits in _of_all(comm, local) if limits is not None]
    low, high = min((each[0] for each in found), default=0), max((each[1] for each in found), default=0)
    if low == high:
        return codec
    absolute = absolute_of(fraction, (low, high), whole=values.dtype.kind in "iu")
    return codec.with_absolute(absolute) if absolute > 0.0 or codec.takes_integers() else codec
