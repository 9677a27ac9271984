# SPDX-License-Identifier: BSD-3-Clause
"""Arrays to frames and back, without a file. A frame is the content of an HDF5 chunk: docs/format.md.

Arrays and frames in device memory go on to gpu/frames.py.
"""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, Protocol, overload

import numpy as np

from pyfilter import dtypes
from pyfilter._lib import abi, host
from pyfilter.codecs.base import Codec
from pyfilter.errors import InvalidArgument, TruncatedFrame, Unsupported
from pyfilter.gpu.arrays import is_device_array
from pyfilter.headers import FrameInfo, info_of
from pyfilter.records import Compound, RecordsInfo
from pyfilter.records import frames as records
from pyfilter.registry import registry

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray
    from typing_extensions import Buffer


class DeviceArray(Protocol):
    """An array on a CUDA device; objects that have only DLPack are taken as well."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...


def make_request(codec: Codec, dtype: np.dtype[Any], shape: tuple[int, ...], fill_value: object = None) -> abi.Request:
    """Return the C library's description of the values to encode.

    Raises
    ------
    Unsupported
        If ``codec`` is no codec, or does not take the element type.
    InvalidArgument
        If the fill value is not of the element type, or there are too many dimensions.
    """
    if not isinstance(codec, Codec):
        message = f"a codec is needed, such as pyfilter.Cuszp2(absolute=1e-3); got {codec!r}"
        raise Unsupported(message)
    code = dtypes.require(codec.requested_spec.name, dtype)
    dtypes.require_exact_enum(codec, dtype)
    if len(shape) > abi.MAX_RANK:
        message = f"an array has at most {abi.MAX_RANK} dimensions here, got {len(shape)}"
        raise InvalidArgument(message)
    mode, bound = codec.bound
    fill = 0 if fill_value is None else dtypes.pattern(fill_value, dtype)
    request = abi.Request(
        codec=codec.requested_spec.id,
        dtype=code,
        bound_mode=registry().bounds[mode],
        has_fill=int(fill_value is not None),
        bound=bound,
        fill=fill % (1 << 8 * dtypes.part_of(dtype).itemsize),
        fill_imaginary=fill >> 8 * dtypes.part_of(dtype).itemsize,
        source_big_endian=int(dtypes.is_big_endian(dtype)),
        rank=len(shape),
    )
    request.parameters[:] = codec.parameter_bytes
    request.dims[: len(shape)] = shape
    return request


def plain_array(array: ArrayLike) -> NDArray[Any]:
    """Return ``array`` as a NumPy array; a masked array only where nothing is masked.

    Raises
    ------
    InvalidArgument
        If values are masked: which number they are to become is the caller's to say.
    """
    if isinstance(array, np.ma.MaskedArray):
        if np.ma.is_masked(array):
            message = "the array has masked values: pass array.filled(value), and fill_value=value"
            raise InvalidArgument(message)
        return np.asarray(array.data)
    return np.asarray(array)


@overload
def encode(array: DeviceArray, codec: Codec, fill_value: object = None) -> Any: ...
@overload
def encode(
    array: ArrayLike, codec: Codec | Compound, fill_value: object = None, *, over: Buffer | None = None
) -> bytes: ...
def encode(array: Any, codec: Codec | Compound, fill_value: object = None, *, over: Buffer | None = None) -> Any:
    """Compress an array into one frame.

    Parameters
    ----------
    array : array_like or device array
        Numbers of any shape, scalars and empty arrays included; of any memory layout and byte order. float32 and
        float64, complex64 and complex128 for `Cuszp2` and others, also integers of 8 to 64 bits for
        `HierarchicalDelta`, `Adaptive` and `Lossless`. A bound holds for each part of a complex number. An array on a
        CUDA device (CuPy, PyTorch, JAX, Numba; in the machine's byte order) is compressed there, complex numbers on the
        host.
    codec : Codec or Compound
        How. A relative bound (or psnr) is taken of this array's own range: its finite values without the fill value.
        A structured array needs a `Compound`, with a codec for each field that has a bound.
    fill_value : scalar, optional
        A value that stands for "missing": kept bit for bit, and at little cost where there is much of it.
    over : bytes-like, optional
        The frame that the array was decoded from before a part of it was changed; for arrays in host memory. With a
        relative bound (or psnr) values that are still the decoded ones keep their error, or get one within the array's
        present bound. Other bounds need no such care: decoded values come back as they are.

    Returns
    -------
    bytes or cupy.ndarray
        The frame; `decode` needs nothing else. For a device array one dimension of uint8 on the same device.

    Raises
    ------
    TypeError
        If the codec does not take the element type (`pyfilter.errors.Unsupported`).
    ValueError
        If the fill value is not of that type, values are masked, or ``block_dims`` or the predictor needs more
        dimensions.
    RuntimeError
        If a device array is given and CUDA cannot be used (`pyfilter.errors.DeviceError`).
    """
    if is_device_array(array):
        from pyfilter.gpu import frames as device_frames

        if over is not None:
            message = "over= is for arrays in host memory; copy the array there (.get(), .cpu()) before it is encoded"
            raise InvalidArgument(message)
        if isinstance(codec, Compound):
            message = "records are encoded on the host: copy the array there (.get(), .cpu())"
            raise Unsupported(message)
        return device_frames.encode(array, codec, fill_value)
    given = plain_array(array)
    if isinstance(codec, Compound):
        return records.encode(given, codec, fill_value, None if over is None else frame_bytes(over))
    request = make_request(codec, given.dtype, given.shape, fill_value)
    values = np.asarray(given, dtype=dtypes.native(given.dtype), order="C")
    return host.encode_to_bytes(request, values, None if over is None else frame_bytes(over))


def frame_bytes(frame: Buffer) -> NDArray[np.uint8]:
    """Return a view of the bytes of anything that has them, without a copy."""
    try:
        view = memoryview(frame)
        if not view.c_contiguous:
            view = memoryview(view.tobytes())
        return np.frombuffer(view.cast("B"), dtype=np.uint8) if view.nbytes else np.empty(0, dtype=np.uint8)
    except TypeError:
        message = f"a frame is bytes, bytearray, memoryview or an array of them; got {type(frame).__name__}"
        raise Unsupported(message) from None


def frame_info(frame: Buffer | DeviceArray) -> FrameInfo:
    """Return what a frame's header says; the values are not looked at.

    Parameters
    ----------
    frame : bytes-like or device array
        The frame, or at least its header. For a frame of records (a structured array) there is `records_info`.

    Raises
    ------
    FrameError
        If the header is incomplete (`TruncatedFrame`), invalid (`CorruptFrame`) or of a newer release (`TooNew`).
    ValueError
        If it is a frame of records.
    """
    if is_device_array(frame):
        from pyfilter.gpu import frames as device_frames

        return info_of(host.frame_info(device_frames.header_bytes(frame)))
    data = frame_bytes(frame)  # type: ignore[arg-type]
    if records.is_records(data):
        message = "this is a frame of records, with a header for each column: use pyfilter.records_info"
        raise InvalidArgument(message)
    return info_of(host.frame_info(data))


def records_info(frame: Buffer) -> RecordsInfo:
    """Return what a frame of records (a structured array) says of itself: shape, and the header of each column.

    Parameters
    ----------
    frame : bytes-like
        The whole frame.

    Raises
    ------
    FrameError
        If it is damaged, cut short, of a newer release, or no frame of records.
    """
    return records.info_of(frame_bytes(frame))


def checked_info(frame: NDArray[np.uint8], size: int | None = None) -> FrameInfo:
    """Return the header of a whole frame whose claimed sizes can be true; as `checked_header`."""
    return info_of(checked_header(frame, size))


def checked_header(frame: NDArray[np.uint8], size: int | None = None) -> abi.Info:
    """Return the header of a whole frame whose claimed sizes can be true, as the library gives it.

    The library compares the number of values with the bytes that the header claims: so a header without its frame
    cannot ask for all the memory there is.

    Parameters
    ----------
    frame
        The frame, or the first bytes of it with its header.
    size
        Bytes of the whole frame, where ``frame`` is not all of it.
    """
    info = host.frame_info(frame)
    check_size(info, frame.nbytes if size is None else size)
    return info


def check_size(info: abi.Info, size: int) -> None:
    """Raise TruncatedFrame unless all bytes of a frame are there."""
    if info.frame_bytes > size:
        message = f"the frame has {info.frame_bytes} bytes, only {size} are there"
        raise TruncatedFrame(message)


def asked_range(info: FrameInfo | abi.Info, start: int | None, stop: int | None) -> tuple[int, int, tuple[int, ...]]:
    """Return the first requested value, the end of the range, and the shape of the result."""
    first = _index("start", start, 0, 0, info.value_count)
    last = _index("stop", stop, info.value_count, first, info.value_count)
    return first, last, info.shape if start is None and stop is None else (last - first,)


def decode(
    frame: Buffer | DeviceArray,
    start: int | None = None,
    stop: int | None = None,
    out: NDArray[Any] | DeviceArray | None = None,
    *,
    device: str | None = None,
) -> Any:
    """Decompress a frame, or a range of its values without decoding the rest.

    Parameters
    ----------
    frame : bytes-like or device array
        A whole frame.
    start, stop : int, optional
        Decode the values number ``start`` to ``stop - 1`` in C order; 0 <= start <= stop <= value count. Not of
        records (structured arrays), which are decoded whole.
    out : numpy.ndarray or device array, optional
        Where to put the values; of the frame's element type (either byte order), and of the shape of the result.
        The bytes of the frame go to where ``out`` is and are decoded there.
    device : {"cpu", "cuda", "cuda:0", ...}, optional
        Where to decode; by default where ``out`` or else the frame is. Not together with ``out``.

    Returns
    -------
    numpy.ndarray or cupy.ndarray
        The array in its own shape and in this machine's byte order. Records keep their own byte order, and their
        fields are named "f0", "f1" and so on (`RecordsInfo`). With ``start`` or ``stop`` one dimension of
        ``stop - start`` values; ``out`` where it was given.

    Raises
    ------
    FrameError
        If the frame is damaged, cut short or of a newer release.
    ValueError
        If the range or ``out`` does not fit.
    RuntimeError
        If a device is asked for and CUDA cannot be used (`pyfilter.errors.DeviceError`).
    """
    if device is not None or is_device_array(frame) or is_device_array(out):
        from pyfilter.gpu import frames as device_frames

        return device_frames.decode(frame, start, stop, out, device)
    data = frame_bytes(frame)  # type: ignore[arg-type]
    if records.is_records(data):
        if start is not None or stop is not None:
            message = "a frame of records is decoded whole: leave start and stop out"
            raise InvalidArgument(message)
        return records.decode(data, out)
    info = checked_header(data)
    first, last, shape = asked_range(info, start, stop)
    dtype = dtypes.from_code(info.dtype)
    given: Any = out
    target = np.empty(shape, dtype=dtype) if out is None else _direct(out, shape, dtype)
    if start is not None or stop is not None:
        host.decode_range(data, first, last, target)
    else:
        host.decode(data, target)
    if given is not None and target is not given:
        given[...] = target
    return target if given is None else given


def _index(name: str, value: int | None, default: int, low: int, high: int) -> int:
    if value is None:
        return default
    if not isinstance(value, Integral) or isinstance(value, (bool, np.bool_)) or not low <= value <= high:
        message = f"{name} must be an integer from {low} to {high}, got {value!r}"
        raise InvalidArgument(message)
    return int(value)


def _direct(out: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the array that the library can write to: ``out`` itself where its memory is as it must be."""
    if not isinstance(out, np.ndarray):
        message = f"out must be a numpy.ndarray or an array on a CUDA device, got {type(out).__name__}"
        raise Unsupported(message)
    if out.shape != shape or dtypes.native(out.dtype) != dtype:
        message = f"out must have shape {shape} and type {dtype.name}, got {out.shape} and {out.dtype.name}"
        raise InvalidArgument(message)
    if not out.flags.writeable:
        message = "out is read-only: give a writeable array"
        raise InvalidArgument(message)
    if out.flags.c_contiguous and out.dtype == dtype:
        return out
    return np.empty(shape, dtype=dtype)
