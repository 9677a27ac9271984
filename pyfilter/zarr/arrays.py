# SPDX-License-Identifier: BSD-3-Clause
"""Zarr arrays from values that are all there: a bound relative to the whole array, chunks chosen. Encodings for xarray.

Zarr's codecs see one chunk at a time, so a relative bound is resolved here, before anything is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import zarr
from zarr.core.sync import sync

from pyfilter import dtypes, frames, h5
from pyfilter._chunks import layout, transfer
from pyfilter._lib import host
from pyfilter.codecs.base import Codec
from pyfilter.errors import InvalidArgument
from pyfilter.gpu.arrays import is_device_array
from pyfilter.zarr import configuration
from pyfilter.zarr.compressor import Compressor
from pyfilter.zarr.serializer import Serializer

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_REFUSED = ("serializer", "shape", "dtype", "write_data")


def create_array(
    store: Any,
    data: ArrayLike | Any,
    codec: Codec,
    *,
    name: str | None = None,
    chunks: tuple[int, ...] | bool | None = None,
    shards: tuple[int, ...] | None = None,
    fill_value: Any = None,
    zarr_format: int = 3,
    compressors: Any = None,
    filters: Any = None,
    **kwargs: Any,
) -> zarr.Array:
    """Create a compressed Zarr array of values.

    A relative bound (or psnr) is taken of the **whole array**: its finite values without the fill value. The array then
    has the resulting absolute bound, and values appended later keep it. If the range is zero the codec is stored as
    given.

    Parameters
    ----------
    store : zarr.Group, store or path
        Where to create it: anything that ``zarr.create_array`` takes, or a group, whose format is then taken.
    data : array_like, dask array, h5py.Dataset, zarr.Array or device array
        The values. Arrays that are not in memory are read in pieces; a dask array is computed twice for a relative
        bound, and rechunked where its blocks would share a chunk. An array on a CUDA device is compressed there.
    codec : Codec
        Such as ``Lorenzo(relative=1e-4)``.
    name : str, optional
        The array's name in the store; needed in a group.
    chunks : tuple of int, optional
        Chunk shape. None and True choose a shape of up to 4 MiB.
    shards : tuple of int, optional
        Shape of shards, files of several chunks (format 3).
    fill_value : scalar, optional
        The value that stands for "missing". It comes back bit for bit, does not count for the range of a relative
        bound, and costs little even if it is frequent. By default Zarr's, 0, which counts for the range.
    zarr_format : {3, 2}
        Format 3 has the codec as its serializer, format 2 as its compressor.
    compressors : optional
        What comes after the codec in format 3, such as a checksum. Then parts of chunks cannot be read alone.
    filters : optional
        Must be None: the bound would hold for the filters' output.
    **kwargs
        Further arguments of ``zarr.create_array``: ``attributes``, ``dimension_names``, ``overwrite``, ``order``, ...

    Returns
    -------
    zarr.Array
        The array; where writing fails it is removed again.

    Raises
    ------
    TypeError
        If the codec does not take the element type (`pyfilter.errors.Unsupported`).
    ValueError
        If an argument is out of range or does not go with the others.

    Examples
    --------
    >>> array = create_array("run.zarr", values, Lorenzo(relative=1e-4), name="pressure", chunks=(64, 64, 64))
    """
    refused = [key for key in _REFUSED if key in kwargs] + (["filters"] if filters else [])
    if refused:
        message = f"{', '.join(refused)} cannot be given here: the codec is the serializer, the data gives the shape"
        raise InvalidArgument(message)
    configuration.require_codec(codec)
    in_group = isinstance(store, zarr.Group)
    zarr_format = store.metadata.zarr_format if in_group else zarr_format
    source: Any = data if _is_lazy(data) else h5.source_of(data)
    dtype = np.dtype(source.dtype)
    dtypes.require(codec.requested_spec.name, dtype)
    chunk = layout.chosen(chunks, source.shape, dtype.itemsize, None, codec.edges)
    host.check_request(frames.make_request(codec, dtype, chunk, fill_value))
    resolved = _resolved(codec, source, fill_value, chunk)
    settings = {"shape": source.shape, "dtype": dtype, "chunks": chunk, **kwargs}
    if fill_value is not None:
        settings["fill_value"] = fill_value
    if zarr_format == 3:
        settings |= {"serializer": Serializer(resolved), "compressors": compressors, "shards": shards}
    else:
        if shards is not None or compressors is not None:
            message = "shards= and compressors= need Zarr's format 3 (zarr_format=3)"
            raise InvalidArgument(message)
        padding = fill_value if fill_value is not None else 0
        settings["compressors"] = Compressor(resolved, padding if resolved.range_fraction is not None else fill_value)
    with _BuffersOf(source):
        if in_group:
            if name is None:
                message = "an array in a group needs name="
                raise InvalidArgument(message)
            array = store.create_array(name, filters=None, **settings)
        else:
            array = zarr.create_array(store, name=name, zarr_format=zarr_format, filters=None, **settings)
        try:
            _write(array, source)
        except BaseException:
            sync(array.store_path.delete_dir())
            raise
    return array


def _is_lazy(data: Any) -> bool:
    """Whether values come in pieces, from dask, Zarr or HDF5."""
    return isinstance(data, zarr.Array) or (hasattr(data, "dask") and hasattr(data, "rechunk"))


def _resolved(codec: Codec, source: Any, fill_value: Any, chunk: tuple[int, ...]) -> Codec:
    """Return the codec with its relative bound resolved to an absolute bound for all of the values."""
    if codec.range_fraction is None or not hasattr(source, "rechunk"):
        return h5.resolve(codec, source, fill_value, chunk)
    from pyfilter.xarray import choice

    return choice.resolved_of_dask(codec, source, fill_value)


def _write(array: Any, source: Any) -> None:
    """Write all values: arrays in memory at once, datasets in slabs of whole chunks, dask arrays by their blocks."""
    unit = array.shards or array.chunks
    if hasattr(source, "rechunk"):
        from dask import array as dask_array

        # blocks that share a chunk or a shard would overwrite what the other has written
        dask_array.store(source.rechunk(unit), array, lock=False)
    elif isinstance(source, np.ndarray) or is_device_array(source) or source.shape == ():
        array[...] = source[...]
    else:
        for slab in layout.slabs(source.shape, unit, source.dtype.itemsize, transfer.SLAB_BYTES):
            array[slab] = source[slab]


class _BuffersOf:
    """Have zarr-python use buffers on the device while values come from there."""

    def __init__(self, source: Any) -> None:
        self._context = zarr.config.enable_gpu() if is_device_array(source) else None

    def __enter__(self) -> None:
        """Do nothing more."""

    def __exit__(self, *error: object) -> None:
        """Bring the buffers of before back."""
        if self._context is not None:
            self._context.__exit__(*error)


def encoding(
    dataset: Any, codec: Codec | None = None, /, *, zarr_format: int = 3, **codecs: Codec | None
) -> dict[str, dict[str, Any]]:
    """Return the ``encoding`` argument of xarray's ``Dataset.to_zarr`` that compresses variables.

    A relative bound (or psnr) is taken of the whole variable; dask arrays are computed for it.

    Parameters
    ----------
    dataset : xarray.Dataset
        The dataset to save.
    codec : Codec, optional
        For every data variable whose stored type it takes; coordinates are left as they are.
    zarr_format : {3, 2}
        The ``zarr_format`` that ``to_zarr`` is called with.
    **codecs : Codec or None
        For single variables, by their names; None leaves a variable unchanged.

    Returns
    -------
    dict
        Encoding by variable, for those that get a codec; what else their encoding holds (type, packing, fill value,
        units) is kept.

    Raises
    ------
    ValueError
        If a name is not in the dataset, or the format is neither 2 nor 3.
    TypeError
        If a codec does not take a variable's type.

    Examples
    --------
    >>> ds.to_zarr("b.zarr", encoding=encoding(ds, t=Cuszp2(absolute=0.01)))
    """
    from pyfilter.xarray import choice, saving

    if zarr_format not in (2, 3):
        message = f"zarr_format must be 2 or 3, got {zarr_format!r}"
        raise InvalidArgument(message)
    found: dict[str, dict[str, Any]] = {}
    for name, item in choice.chosen(dataset, codec, codecs, {}).items():
        if item is None:
            continue
        variable = dataset.variables[name]
        kept = saving.kept_encoding(dataset, name)
        sizes = kept.pop("chunksizes", None)
        missing = None if item.is_lossless else choice.fill_value(name, item, variable, {})
        if variable.chunks is None:
            itemsize = choice.stored_dtype(name, variable, {}).itemsize
            kept["chunks"] = sizes or layout.choose(variable.shape, itemsize, None, item.edges)
        if zarr_format == 3:
            kept |= {"serializer": Serializer(item, missing), "compressors": None}
        else:
            padding = missing if missing is not None or item.range_fraction is None else 0
            kept |= {"compressors": Compressor(item, padding)}
        found[name] = {**kept, "filters": None}
    return found
