# SPDX-License-Identifier: BSD-3-Clause
"""Datasets of h5py written and read by several threads. The work is done in _chunks/.

Device arrays go on to gpu/writing.py and gpu/reading.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from pyfilter import dtypes, guarantees, mpi, plugin
from pyfilter._chunks import creation, detached, pipeline, transfer, zero_extents
from pyfilter._chunks import layout as chunk_shapes
from pyfilter._chunks.selection import basic_selection, with_kept_axes, wrong_out
from pyfilter.codecs.base import Codec, absolute_of
from pyfilter.errors import InvalidArgument, Unsupported
from pyfilter.frames import make_request, plain_array
from pyfilter.gpu.arrays import is_device_array
from pyfilter.records import Compound

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

    from pyfilter._chunks.layout import Region
    from pyfilter._chunks.pipeline import ChunkCodec
    from pyfilter._chunks.transfer import Source
    from pyfilter.frames import DeviceArray
    from pyfilter.gpu.devices import Devices
    from pyfilter.guarantees import Guarantee


def create_dataset(
    group: h5py.Group,
    name: str | None,
    data: ArrayLike | DeviceArray | h5py.Dataset,
    codec: Codec | Compound,
    *,
    chunks: tuple[int, ...] | bool | None = None,
    fillvalue: object = None,
    maxshape: tuple[int | None, ...] | bool | None = None,
    attributes: Mapping[str, object] | None = None,
    guarantee: Guarantee | None = None,
    devices: Devices | None = None,
    comm: Any = None,
    **kwargs: Any,
) -> h5py.Dataset:
    """Create a compressed dataset, its chunks compressed by several threads.

    The file is the same as with ``group.create_dataset(name, data=data, compression=codec, chunks=...)`` and an
    absolute bound, byte for byte in every chunk.

    A relative bound (or psnr) is taken of the **whole array**: its finite values without the fill value. The dataset
    then stores the resulting absolute bound: `codec_of` returns it, and values appended later keep it. If the range is
    zero (a constant field, only missing values, no values) the codec is stored as given.

    Parameters
    ----------
    group : h5py.Group
        Where to create it; a file is a group.
    name : str or None
        The dataset's name, None for an anonymous one.
    data : array_like, device array or h5py.Dataset
        One or more dimensions of an element type that the codec takes; extents may be 0. A dataset is read in slabs; an
        array on a CUDA device (CuPy, PyTorch, JAX, Numba) is compressed there.
    codec : Codec or Compound
        Such as ``Cuszp2(relative=1e-4)``; of a compound type `Compound`, whose chunks go through HDF5's pipeline.
    chunks : tuple of int, optional
        Chunk shape. None and True choose a shape of up to 4 MiB.
    fillvalue : scalar, optional
        HDF5's fill value, which stands for "missing". It comes back bit for bit, does not count for the range of a
        relative bound, and costs little even if it is frequent.
    maxshape : tuple of int or None, or True, optional
        As in h5py: largest shape, None for a dimension without limit, True for none at all. Without it the shape is
        fixed, so data of shape (0,) makes a dataset that never has a value.
    attributes : mapping, optional
        Attributes to set on the dataset.
    guarantee : Guarantee, optional
        What holds besides the bound: valid range, signs and zeros, regions. Attributes keep it, so that `write` holds
        it and ``pyfilter verify`` checks it. Slices that are assigned go through HDF5, which holds the bound alone.
    devices : optional
        CUDA devices that compress data in host memory, as for `write`.
    comm : mpi4py.MPI.Comm, optional
        Processes that have the file open with driver "mpio"; each gives its part, as for
        `pyfilter.collective.create_dataset`, whose ``start`` may be given too.
    **kwargs
        Further arguments of ``h5py.Group.create_dataset``: ``dtype``, ``fletcher32``, ``track_order``, ...

    Returns
    -------
    h5py.Dataset
        The dataset; where anything fails it is removed again.

    Raises
    ------
    TypeError
        If the codec does not take the element type, the data is a scalar, or the file is open with driver "mpio" and
        there are values (`pyfilter.errors.Unsupported`).
    ValueError
        If an argument is out of range, does not go with the others, or asks for a filter that breaks the bound.
    """
    more = {"chunks": chunks, "fillvalue": fillvalue, "maxshape": maxshape, "attributes": attributes, **kwargs}
    if isinstance(codec, Compound):
        from pyfilter.records import datasets as of_records

        return of_records.create(group, name, data, codec, guarantee=guarantee, devices=devices, comm=comm, **more)
    if comm is not None:
        if guarantee is not None:
            message = (
                "give guarantee= or comm=, not both: parts of processes are compressed by HDF5, to the bound alone"
            )
            raise Unsupported(message)
        from pyfilter.collective import create_dataset as create

        return create(group, name, data, codec, comm=comm, devices=devices, **more)
    creation.refuse_settings(kwargs, "the data gives the shape")
    if not isinstance(codec, Codec):
        message = f"a codec is needed, such as pyfilter.Cuszp2(absolute=1e-3); got {codec!r}"
        raise Unsupported(message)
    plugin.refresh()
    source = source_of(data)
    chosen = _chosen(devices, source)
    dtype = dtypes.plain(kwargs.pop("dtype", None) or source.dtype)
    dtypes.require(codec.requested_spec.name, dtype)
    dtypes.require_exact_enum(codec, dtype)
    dtypes.refuse_bfloat16(dtype)
    fillvalue = dtypes.hdf5_fill(fillvalue, dtype)
    creation.require_chunks(source)
    limits = (None,) * len(source.shape) if maxshape is True else maxshape
    shape = chunk_shapes.chosen(chunks, source.shape, dtype.itemsize, limits or None, codec.edges)
    if dtype != source.dtype:
        source = _converted(source, dtype)
    codec = resolve(codec, source, fillvalue, shape)
    settings = {"dtype": dtype, "fillvalue": fillvalue, "compression": codec, **kwargs}
    if zero_extents.never_grows(source.shape, limits or None, shape):
        dataset = zero_extents.create(group, name, source.shape, limits or None, shape, **settings)
    else:
        dataset = group.create_dataset(name, shape=source.shape, chunks=shape, maxshape=limits or None, **settings)
    with creation.removed_on_failure(group, name):
        if guarantee is not None and not codec.is_lossless:
            guarantees.describe(dataset, guarantee.fitted(dataset))
        with mpi.explained("the dataset" if name is None else str(name), mpi.CREATE):
            _write(dataset, source, chosen)
        for key, value in (attributes or {}).items():
            dataset.attrs[key] = value
    return dataset


def source_of(data: Any) -> Any:
    """Return something with a shape that gives values for slices: a dataset, a cupy.ndarray or a numpy.ndarray.

    Values on a device that are not moved as they are (`dtypes.on_devices`) are copied to the host.
    """
    if isinstance(data, h5py.Dataset):
        return data
    if is_device_array(data):
        from pyfilter.gpu import arrays

        found = arrays.device_array(data)
        return found if dtypes.on_devices(found.dtype) else arrays.to_host(found)
    return plain_array(data)


def _converted(source: Any, dtype: np.dtype[Any]) -> Any:
    if is_device_array(source):
        from pyfilter.gpu import arrays

        return arrays.converted(source, dtypes.native(dtype))
    return np.asarray(source[...]).astype(dtype)


def resolve(codec: Codec, source: Source, fill_value: object, chunk: tuple[int, ...]) -> Codec:
    """Return the codec with its relative bound, or its psnr, resolved to an absolute bound for all of ``source``.

    Parameters
    ----------
    codec
        Returned unchanged if its bound does not follow the range, or the range is zero.
    source
        The whole array, or something that gives it in pieces.
    fill_value
        Left out of the range; None for none.
    chunk
        In what pieces to read a source that is not in memory.
    """
    fraction = codec.range_fraction
    if fraction is None:
        return codec
    request = make_request(codec, dtypes.native(source.dtype), (), fill_value)
    if is_device_array(source):
        from pyfilter.gpu import ranges

        found = ranges.value_range(source, request)
    else:
        found = transfer.value_range(source, request, chunk)
    if found is None or found[0] == found[1]:
        return codec
    absolute = absolute_of(fraction, found, whole=source.dtype.kind in "iu")
    return codec.with_absolute(absolute) if absolute > 0.0 or source.dtype.kind in "iu" else codec


def write(
    dataset: h5py.Dataset, array: ArrayLike | DeviceArray | h5py.Dataset, *, devices: Devices | None = None
) -> None:
    """Write a whole dataset, its chunks compressed by several threads.

    Parameters
    ----------
    dataset : h5py.Dataset
        An open dataset. Datasets that pyfilter does not compress alone are written by h5py itself. The dataset's
        guarantees besides the bound (`Guarantee`) hold again.
    array : array_like, device array or h5py.Dataset
        The values, of the dataset's shape; another element type is converted by HDF5. An array on a CUDA device (CuPy,
        PyTorch, JAX, Numba) is compressed there, and only compressed bytes leave the device; the chunks are byte for
        byte the same.
    devices : {"all", "cuda", "cuda:0", 0, ...} or a list of such, optional
        CUDA devices that compress values in host memory, in place of the CPU; the chunks are byte for byte the same.
        Batches of chunks go to whichever device has room, so that nothing need fit a device (docs/howto/gpu.md).

    Raises
    ------
    ValueError
        If the shapes differ, values are masked, a device is not there, or ``devices`` is given for a device array.
    TypeError
        If ``dataset`` is not an h5py dataset, or its file is open with driver "mpio" and this is not inside of
        ``with dataset.collective:``.
    RuntimeError
        If a device is asked for and CUDA cannot be used, or fails (`pyfilter.errors.DeviceError`).
    """
    if not isinstance(dataset, h5py.Dataset):
        message = f"an h5py.Dataset is needed, got {type(dataset).__name__}"
        raise Unsupported(message)
    plugin.refresh()
    source = source_of(array)
    with mpi.explained(dataset.name or "the dataset", mpi.WRITE):
        _write(dataset, source, _chosen(devices, source))


def _chosen(devices: Devices | None, values: Any) -> tuple[int, ...]:
    """Return the numbers of the devices that are to work on values of host memory, none for the CPU."""
    if devices is None:
        return ()
    if is_device_array(values):
        message = "devices= applies to arrays in host memory; arrays on a device are compressed and decompressed there"
        raise InvalidArgument(message)
    from pyfilter.gpu import devices as cuda

    return cuda.numbers(devices)


def _write(dataset: h5py.Dataset, source: Any, devices: tuple[int, ...]) -> None:
    if source.shape != dataset.shape:
        message = f"the array must have the dataset's shape {dataset.shape}, got {source.shape}"
        raise InvalidArgument(message)
    if source.size == 0:
        return
    how = pipeline.chunk_codec(dataset)
    held = guarantees.of_dataset(dataset)
    if held is not None:
        guarantees.write(dataset, how, source, held, devices)
    elif is_device_array(source):
        from pyfilter.gpu import writing

        writing.write(dataset, how, source)
    elif how is None or dtypes.code_of(source.dtype) != dtypes.code_of(how.dtype):
        dataset[...] = source[...] if isinstance(source, h5py.Dataset) else source
    elif devices and dtypes.on_devices(how.dtype):
        from pyfilter.gpu import host_writing

        host_writing.write(dataset, how, source, devices)
    else:
        transfer.write_chunks(dataset, how, source)


def read(
    dataset: h5py.Dataset,
    selection: Any = ...,
    out: NDArray[Any] | DeviceArray | None = None,
    *,
    device: str | None = None,
    devices: Devices | None = None,
) -> Any:
    """Read a dataset, or a part of it, its chunks decompressed by several threads.

    Parameters
    ----------
    dataset : h5py.Dataset
        An open dataset. Datasets that pyfilter does not compress alone are read by h5py itself.
    selection : optional
        What to read: anything that ``dataset[selection]`` takes, such as ``numpy.s_[10:20, ..., 3]``.
    out : numpy.ndarray or device array, optional
        Where to put the values; of the selection's shape and of a type that holds the dataset's. Where it is on a CUDA
        device (CuPy, PyTorch, Numba), compressed bytes go there and are decoded there.
    device : {"cpu", "cuda", "cuda:0", ...}, optional
        Where to put the values where there is no ``out``; "cuda" is CuPy's current device.
    devices : {"all", "cuda", "cuda:0", 0, ...} or a list of such, optional
        CUDA devices that decompress chunks in place of the CPU; values go to host memory. Batches of chunks go to
        whichever device has room, so that nothing need fit a device (docs/howto/gpu.md).

    Returns
    -------
    numpy.ndarray, scalar or cupy.ndarray
        The same values as ``dataset[selection]``; ``out`` where it was given. On a device always an array, in the
        machine's byte order.

    Raises
    ------
    FrameError
        If a chunk is damaged.
    ValueError
        If ``out`` has another shape, or is given together with ``device``; if a device does not exist, or ``devices``
        is given together with a device for the values.
    TypeError
        If ``dataset`` is not an h5py dataset, or ``out`` neither a NumPy array nor a device array.
    RuntimeError
        If a device is asked for and CUDA cannot be used, or fails (`pyfilter.errors.DeviceError`).
    """
    if not isinstance(dataset, h5py.Dataset):
        message = f"an h5py.Dataset is needed, got {type(dataset).__name__}"
        raise Unsupported(message)
    plugin.refresh()
    chosen = _chosen(devices, out)
    if device is not None or is_device_array(out):
        number = _device_of(out, device)
        if chosen and number is not None:
            message = "give device= (where the values go) or devices= (GPUs that decode for host memory), not both"
            raise InvalidArgument(message)
        if out is not None or number is not None:
            from pyfilter.gpu import reading

            return reading.read(dataset, selection, out, number)
    if out is not None and not isinstance(out, np.ndarray):
        message = f"out must be a numpy.ndarray or an array on a CUDA device, got {type(out).__name__}"
        raise Unsupported(message)
    how = pipeline.chunk_codec(dataset)
    basic = basic_selection(selection, dataset.shape) if how is not None else None
    if how is None or basic is None:
        return _by_h5py(dataset, selection, out)
    region, kept = basic
    full = tuple(part.stop - part.start for part in region)
    shape = tuple(extent for extent, keep in zip(full, kept, strict=True) if keep)
    if out is None:
        values = np.empty(full, dtype=dataset.dtype)
        _read(dataset, how, region, values, chosen)
        result = values.reshape(shape)
        return result if shape else result[()]
    _check_out(out, shape, dataset.dtype)
    _read(dataset, how, region, out.reshape(full) if out.flags.c_contiguous else with_kept_axes(out, kept), chosen)
    return out


def _read(dataset: h5py.Dataset, how: ChunkCodec, region: Region, out: NDArray[Any], devices: tuple[int, ...]) -> None:
    if not devices or out.size == 0 or not dtypes.on_devices(how.dtype):
        transfer.read_chunks(dataset, how, region, out)
        return
    from pyfilter.gpu import host_reading

    host_reading.read(dataset, how, region, out, devices)


def _device_of(out: Any, device: str | None) -> int | None:
    """Return the number of the device that was asked for by name, None for the host."""
    from pyfilter.gpu import arrays

    if out is not None and device is not None:
        message = "give out or device, not both: the values go to the memory of out"
        raise InvalidArgument(message)
    return None if device is None else arrays.device_number(device)


def _check_out(out: NDArray[Any], shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    if out.shape != shape or not out.flags.writeable or not np.can_cast(dtype, out.dtype, casting="same_kind"):
        raise InvalidArgument(wrong_out(out, shape, dtype))


def _by_h5py(dataset: h5py.Dataset, selection: Any, out: NDArray[Any] | None) -> Any:
    values = detached.read_through_mpi(dataset, selection) if dataset.file.driver == "mpio" else None
    values = dataset[selection] if values is None else values
    if out is None:
        return values
    _check_out(out, np.shape(values), dataset.dtype)
    out[...] = values
    return out
