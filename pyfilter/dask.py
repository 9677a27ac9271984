# SPDX-License-Identifier: BSD-3-Clause
"""Dask arrays to HDF5: workers compress their blocks to frames, one task writes the frames by direct chunk calls.

Only compressed bytes go to the task that writes. h5py's own way, ``dask.array.to_hdf5``, compresses in that task.
"""

from __future__ import annotations

import itertools
import math
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import h5py
import numpy as np

from pyfilter import dtypes, plugin
from pyfilter._chunks import layout, pipeline
from pyfilter._lib import host
from pyfilter.codecs.base import Codec
from pyfilter.errors import InvalidArgument, Unsupported, missing_extra

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Frames = list[tuple[tuple[int, ...], bytes]]

_REFUSED = ("compression", "compression_opts", "scaleoffset", "shuffle", "fletcher32", "shape", "data", "maxshape")


class _Encoding(NamedTuple):
    """What a worker needs to make frames: the stored cd_values, the element type, the chunk's shape, the padding."""

    words: tuple[int, ...]
    dtype: np.dtype[Any]
    chunk: tuple[int, ...]
    padding: Any


def to_hdf5(
    array: Any,
    path: str | os.PathLike[str],
    name: str,
    codec: Codec,
    *,
    chunks: tuple[int, ...] | bool | None = None,
    fillvalue: object = None,
    rechunk: bool = False,
    compute: bool = True,
    **kwargs: Any,
) -> Any:
    """Write a dask array to a new dataset of an HDF5 file, its blocks compressed where they are computed.

    The dataset is the one that `pyfilter.create_dataset` makes, byte for byte in every chunk. A relative bound (or
    psnr) is taken of the whole array, which is computed once more for it, at once.

    Parameters
    ----------
    array : dask.array.Array
        The values, of one or more dimensions and known shape.
    path : path-like
        The file. A file that is not there appears when all is written; to one that is there the dataset is added.
        Whichever worker writes must see it.
    name : str
        The dataset's name; groups on the way are made.
    codec : Codec
        Such as ``Cuszp2(relative=1e-4)``.
    chunks : tuple of int, optional
        Chunk shape. None and True choose one of up to 4 MiB that fits the blocks.
    fillvalue : scalar, optional
        HDF5's fill value, as for `pyfilter.create_dataset`.
    rechunk : bool
        Whether to rechunk an array whose blocks end inside of chunks; otherwise it is refused.
    compute : bool
        False returns a ``dask.delayed.Delayed``, whose ``compute()`` writes.
    **kwargs
        Further arguments of ``h5py.Group.create_dataset``, such as ``track_order``.

    Returns
    -------
    None or dask.delayed.Delayed
        As ``compute`` says.

    Raises
    ------
    ValueError
        If blocks end inside of chunks, the dataset is there already, or an argument is out of range.
    TypeError
        If ``array`` is no dask array, or the codec does not take its type.
    MissingExtra
        If dask is not installed.

    Examples
    --------
    >>> to_hdf5(array, "run.h5", "pressure", Lorenzo(relative=1e-4))
    """
    try:
        import dask
        from dask import array as dask_array
    except ImportError as error:
        raise missing_extra("dask", "dask") from error
    from pyfilter.xarray import choice

    if not isinstance(array, dask_array.Array):
        message = f"a dask array is needed, got {type(array).__name__}; pyfilter.create_dataset takes others"
        raise Unsupported(message)
    if not isinstance(codec, Codec):
        message = f"a codec is needed, such as pyfilter.Cuszp2(absolute=1e-3); got {codec!r}"
        raise Unsupported(message)
    refused = [key for key in _REFUSED if kwargs.get(key) is not None and kwargs.get(key) is not False]
    if refused:
        message = f"{', '.join(refused)} cannot be given here: the codec is the only filter, the array gives the shape"
        raise InvalidArgument(message)
    dtypes.require(codec.requested_spec.name, array.dtype)
    if array.ndim == 0 or any(math.isnan(extent) for extent in array.shape) or array.size == 0:
        message = f"an array of one or more dimensions with known extents above 0 is needed, got shape {array.shape}"
        raise InvalidArgument(message)
    shape = _chunk_shape(chunks, array, codec)
    array = _aligned(array, shape, rechunk)
    target = Path(path)
    _require_room(target, name)
    codec = choice.resolved_of_dask(codec, array, fillvalue)
    settings = {"shape": array.shape, "dtype": array.dtype, "chunks": shape, "fillvalue": fillvalue, **kwargs}
    how = _encoding(codec, settings)
    blocks = array.to_delayed()
    starts = [list(itertools.accumulate((0, *sizes[:-1]))) for sizes in array.chunks]
    encode = dask.delayed(_encode_block, pure=False)
    frames = [
        encode(blocks[index], tuple(starts[axis][at] for axis, at in enumerate(index)), how)
        for index in np.ndindex(blocks.shape)
    ]
    task = dask.delayed(_write, pure=False)(frames, str(target.resolve()), name, codec, settings)
    return task.compute() if compute else task


def _chunk_shape(asked: Any, array: Any, codec: Codec) -> tuple[int, ...]:
    """Return the chunk shape that was asked for, or one whose edges divide those of the blocks."""
    if asked is not None and asked is not True:
        return layout.chosen(asked, array.shape, array.dtype.itemsize, None, codec.edges)
    best = layout.choose(tuple(max(sizes) for sizes in array.chunks), array.dtype.itemsize, None, codec.edges)
    return tuple(_fitting(sizes, edge) for sizes, edge in zip(array.chunks, best, strict=True))


def _fitting(sizes: Sequence[int], edge: int) -> int:
    """Return the largest edge up to ``edge`` that all blocks but the last are multiples of."""
    if len(sizes) == 1:
        return min(edge, sizes[0])
    common = math.gcd(*sizes[:-1])
    return max(divisor for divisor in range(1, min(edge, common) + 1) if common % divisor == 0)


def _aligned(array: Any, chunk: tuple[int, ...], rechunk: bool) -> Any:
    """Return an array none of whose blocks ends inside of a chunk.

    Raises
    ------
    InvalidArgument
        If one does, and it is not to be rechunked.
    """
    cut = [
        axis
        for axis, (sizes, edge) in enumerate(zip(array.chunks, chunk, strict=True))
        if any(size % edge for size in sizes[:-1])
    ]
    if not cut:
        return array
    if not rechunk:
        axis = cut[0]
        message = (
            f"blocks of {array.chunks[axis]} along axis {axis} end inside of chunks of {chunk[axis]}: two workers "
            "would have parts of a chunk. Give chunks= that divide the blocks, or rechunk=True"
        )
        raise InvalidArgument(message)
    whole = [-(-max(sizes) // edge) * edge for sizes, edge in zip(array.chunks, chunk, strict=True)]
    return array.rechunk(tuple(whole))


def _require_room(path: Path, name: str) -> None:
    if path.exists():
        with h5py.File(path, "r") as file:
            if name in file:
                message = f"{name!r} is in {path} already"
                raise InvalidArgument(message)
    elif not path.parent.is_dir():
        message = f"the folder {path.parent} is not there"
        raise InvalidArgument(message)


def _create(file: h5py.File, name: str, codec: Codec, settings: dict[str, Any]) -> h5py.Dataset:
    return file.create_dataset(name, compression=codec, **settings)


def _encoding(codec: Codec, settings: dict[str, Any]) -> _Encoding:
    """Return what HDF5 and the filter make of the settings, by a dataset without values in memory."""
    plugin.refresh()
    with h5py.File.in_memory() if hasattr(h5py.File, "in_memory") else _in_memory() as file:
        dataset = _create(file, "x", codec, settings)
        how = pipeline.chunk_codec(dataset)
        words = pipeline.pipeline_of(dataset).words
        if how is None or words is None:
            message = f"chunks with these settings cannot be written directly: {settings}"
            raise Unsupported(message)
        return _Encoding(words, how.dtype, how.chunk, how.padding)


def _in_memory() -> h5py.File:
    return h5py.File(f"pyfilter-{os.getpid()}", "w", driver="core", backing_store=False)


def _encode_block(block: NDArray[Any], start: tuple[int, ...], how: _Encoding) -> Frames:
    """Return the frames of a block with the coordinates of their chunks; runs on a worker."""
    request = host.parse_cd_values(how.words)
    scratch = np.empty(host.max_frame_bytes(request), np.uint8)
    found: Frames = []
    for origin in layout.origins(block.shape, how.chunk):
        values = np.asarray(block[layout.box(origin, how.chunk, block.shape)], dtype=how.dtype, order="C")
        if values.shape != how.chunk:
            whole = np.full(how.chunk, how.padding, how.dtype)
            whole[tuple(slice(0, extent) for extent in values.shape)] = values
            values = whole
        size = host.encode(request, values, scratch)
        at = tuple(first + offset for first, offset in zip(start, origin, strict=True))
        found.append((at, scratch[:size].tobytes()))
    return found


def _write(frames: list[Frames], path: str, name: str, codec: Codec, settings: dict[str, Any]) -> None:
    """Write all frames; the one task that has the file open. What fails leaves nothing."""
    plugin.refresh()
    target = Path(path)
    if target.exists():
        _add(frames, target, name, codec, settings)
        return
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    os.close(handle)
    try:
        Path(temporary).chmod(0o666 & ~_umask())
        with h5py.File(temporary, "w") as file:
            _store(_create(file, name, codec, settings), frames)
        Path(temporary).replace(target)
    except BaseException:
        with suppress(OSError):
            Path(temporary).unlink()
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _add(frames: list[Frames], path: Path, name: str, codec: Codec, settings: dict[str, Any]) -> None:
    with h5py.File(path, "r+") as file:
        dataset = _create(file, name, codec, settings)
        try:
            _store(dataset, frames)
        except BaseException:
            del file[name]
            raise


def _store(dataset: h5py.Dataset, frames: list[Frames]) -> None:
    for block in frames:
        for origin, frame in block:
            dataset.id.write_direct_chunk(origin, frame)
