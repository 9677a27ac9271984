# SPDX-License-Identifier: BSD-3-Clause
"""Dask arrays to HDF5: workers compress their blocks to frames, one process writes the frames by direct chunk calls.

Only compressed bytes go to the process that writes (_chunks/blocks.py). h5py's own way, ``dask.array.to_hdf5``,
compresses in that process.
"""

from __future__ import annotations

import math
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py

from pyfilter import dtypes, plugin
from pyfilter._chunks import blocks, layout
from pyfilter.codecs.base import Codec
from pyfilter.errors import InvalidArgument, Unsupported, missing_extra

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyfilter._chunks.blocks import Encoding, Progress

_REFUSED = ("compression", "compression_opts", "scaleoffset", "shuffle", "fletcher32", "shape", "data", "maxshape")


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
    progress: bool | Progress = False,
    **kwargs: Any,
) -> Any:
    """Write a dask array to a new dataset of an HDF5 file, its blocks compressed where they are computed.

    Frames are written as they arrive, and a few blocks are in work at a time, so that an array may be larger than
    memory.

    Every chunk equals the chunk that `pyfilter.create_dataset` makes, byte for byte. A relative bound (or psnr) is
    taken of the whole array, which is computed once more for it, at once.

    Parameters
    ----------
    array : dask.array.Array
        The values, of one or more dimensions and known shape.
    path : path-like
        The file. A file that is not there appears when all is written; the dataset is added to an existing file. The
        process that calls must see it: that writes, and workers compress. With ``compute=False`` it is a worker.
    name : str
        The dataset's name; groups on the way are made.
    codec : Codec
        Such as ``Cuszp2(relative=1e-4)``.
    chunks : tuple of int, optional
        Chunk shape. None and True choose a shape of up to 4 MiB that fits the blocks.
    fillvalue : scalar, optional
        HDF5's fill value, as for `pyfilter.create_dataset`.
    rechunk : bool
        Whether to rechunk an array whose blocks end inside of chunks; otherwise it is refused.
    compute : bool
        False returns a ``dask.delayed.Delayed``, whose ``compute()`` writes, in a worker of dask.
    progress : bool or callable
        True shows a bar; or a function that is called with the number of blocks written and the number of all blocks.
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
    array = blocks.aligned(array, shape, rechunk)
    target = Path(path)
    _require_room(target, name)
    codec = choice.resolved_of_dask(codec, array, fillvalue)
    settings = {"shape": array.shape, "dtype": array.dtype, "chunks": shape, "fillvalue": fillvalue, **kwargs}
    work = _Work(array, _encoding(codec, settings), target.resolve(), name, codec, settings, progress)
    if compute:
        return work.run()
    return dask.delayed(_run, pure=False)(work)


def _chunk_shape(asked: Any, array: Any, codec: Codec) -> tuple[int, ...]:
    """Return the requested chunk shape, or one whose edges divide the blocks' edges."""
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


def _encoding(codec: Codec, settings: dict[str, Any]) -> Encoding:
    """Return what HDF5 and the filter make of the settings, by a dataset without values in memory."""
    plugin.refresh()
    with h5py.File.in_memory() if hasattr(h5py.File, "in_memory") else _in_memory() as file:
        how = blocks.encoding_of(_create(file, "x", codec, settings))
        if how is None:
            message = f"chunks with these settings cannot be written directly: {settings}"
            raise Unsupported(message)
        return how


def _in_memory() -> h5py.File:
    return h5py.File(f"pyfilter-{os.getpid()}", "w", driver="core", backing_store=False)


class _Work:
    """The data to write, opaque to dask, which would compute an array in an argument."""

    def __init__(
        self, array: Any, how: Encoding, path: Path, name: str, codec: Codec, settings: dict[str, Any], progress: Any
    ) -> None:
        self.array, self.how, self.path, self.name = array, how, path, name
        self.codec, self.settings, self.progress = codec, settings, progress

    def run(self) -> None:
        """Write the file. A failure leaves no file behind."""
        plugin.refresh()
        with new_file(self.path) as temporary:
            with h5py.File(temporary, "w") as file:
                dataset = _create(file, self.name, self.codec, self.settings)
                with shown(self.progress, self.name) as progress:
                    blocks.write([blocks.Job(self.array, self.how, dataset)], progress)
            if self.path.exists():
                _add(temporary, self.path, self.name)
                temporary.unlink()


def _run(work: _Work) -> None:
    """Run as a task: on a worker of a cluster, which then lets others have its thread."""
    if blocks.scheduler() == "distributed":
        import distributed

        with distributed.worker_client():
            work.run()
    else:
        work.run()


def _add(source: Path, path: Path, name: str) -> None:
    """Copy a dataset to a file that is there; its chunks as they are."""
    with h5py.File(source, "r") as ours, h5py.File(path, "r+") as file:
        if name in file:
            message = f"{name!r} is in {path} already"
            raise InvalidArgument(message)
        try:
            group, _, last = name.strip("/").rpartition("/")
            ours.copy(ours[name], file.require_group(group) if group else file, last)
        except BaseException:
            if name in file:
                del file[name]
            raise


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """Give a path beside another path, for a file that takes that name unless it is gone or something fails."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        temporary.chmod(0o666 & ~_umask())
        yield temporary
        if temporary.exists():
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@contextmanager
def shown(progress: bool | Progress, what: str) -> Iterator[Progress | None]:
    """Return a function to call with the number of blocks written and of all blocks. For True it moves a bar."""
    if not isinstance(progress, bool) or not progress:
        yield None if isinstance(progress, bool) else progress
        return
    from rich.progress import Progress as Bar

    with Bar(transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, count: bar.update(task, completed=done, total=count)
