# SPDX-License-Identifier: BSD-3-Clause
"""Zarr format 2: the codec "pyfilter" of numcodecs, the one that netCDF-C's NCZarr writes and reads.

A codec of numcodecs sees a chunk's array and nothing of the Zarr array. So it does not know the fill value; where that
matters it is an argument. Chunks of arrays with order F are compressed as they lie in memory, their axes reversed.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
from numcodecs.abc import Codec as NumcodecsCodec

from pyfilter import dtypes, frames
from pyfilter.errors import InvalidArgument, Unsupported
from pyfilter.gpu.arrays import is_device_array
from pyfilter.zarr import configuration, work

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from pyfilter._lib import abi
    from pyfilter.codecs.base import Codec


class Compressor(NumcodecsCodec):  # type: ignore[misc]  # numcodecs has no annotations
    """Compress the chunks of a Zarr array (format 2): ``create_array(..., compressors=Compressor(codec))``.

    No filter may come before it: the bound would hold for the filter's output.

    A chunk that is written in parts is decoded and encoded again. With an absolute bound that adds no error. If the
    bound follows the range (relative, psnr), each write of a part may move all other values of the chunk by the bound
    again. So write whole chunks, or use `pyfilter.zarr.create_array`, which makes the bound absolute.

    Parameters
    ----------
    codec : Codec, optional
        How to compress. Without it the array can be read and not written.
    fill_value : scalar, optional
        The array's fill value, which is kept bit for bit. A bound that follows the range needs it: Zarr pads chunks
        with it, and it must not count for the range.

    Raises
    ------
    TypeError
        If ``codec`` is no codec.
    ValueError
        If ``fill_value`` is not a number.

    Examples
    --------
    >>> Compressor(Lossless()).get_config()
    {'id': 'pyfilter', 'cd_values': [1, 2, 0, 0, 0, 0]}
    """

    codec_id = configuration.NAME

    def __init__(self, codec: Codec | None = None, fill_value: Any = None) -> None:
        configuration.require_codec(codec)
        self.codec = codec
        self.fill_value = configuration.plain_fill(fill_value)
        if "zarr.core.codec_pipeline" in sys.modules:  # numcodecs works without Zarr
            importlib.import_module("pyfilter.zarr.pipeline")

    def encode(self, buf: Any) -> bytes:
        """Return the frame of a chunk.

        Raises
        ------
        TypeError
            If the codec does not take the element type, or the chunk has more dimensions than frames can have.
        ValueError
            If there is no codec, or the bound follows the range and no fill value is known.
        """
        codec = self._codec_to_write_with()
        if is_device_array(buf):
            frame: bytes = frames.encode(buf, codec, self.fill_value).get().tobytes()
            return frame
        values = _chunk(buf, codec)
        plain = np.asarray(values, dtype=dtypes.native(values.dtype), order="C")
        request = self.request(values.dtype, values.shape)
        with work.counted():
            return work.encode(request, plain).tobytes()

    def request(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> abi.Request:
        """Return how chunks of this type and shape are encoded, in host memory."""
        return frames.make_request(self._codec_to_write_with(), dtype, shape, self.fill_value)

    def _codec_to_write_with(self) -> Codec:
        codec = configuration.codec_to_write_with(self.codec)
        if codec.range_fraction is not None and self.fill_value is None:
            message = (
                f"{codec!r} follows the range, without the array's fill value. A compressor does not get this value: "
                "give fill_value=, use pyfilter.zarr.create_array or give an absolute bound"
            )
            raise InvalidArgument(message)
        return codec

    def decode(self, buf: Any, out: Any = None) -> Any:
        """Return the values of a frame, in the shape and the byte order that they had; ``out`` where it is given.

        Raises
        ------
        FrameError
            If the frame is damaged or cut short (a ValueError).
        ValueError
            If ``out`` has another size.
        """
        if is_device_array(buf):
            return frames.decode(buf, out=out)
        data = frames.frame_bytes(buf)
        info = frames.checked_info(data)
        dtype = info.dtype.newbyteorder(">") if info.big_endian else info.dtype
        target = work.empty(info.shape, dtype) if out is None else _as_chunk(out, info.shape, dtype)
        with work.counted():
            frames.decode(data.data, out=target)
        return target if out is None else out

    def get_config(self) -> dict[str, Any]:
        """Return the codec as JSON: the form of netCDF-C, and the fill value beside it."""
        return {"id": self.codec_id, **configuration.by_words(self.codec, self.fill_value)}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Compressor:
        """Return the codec of a configuration: with ``cd_values``, or with the fields of a codec by their names.

        Raises
        ------
        ValueError
            If it is invalid in this release; the text names the wrong field.
        """
        return cls(*configuration.parse({key: value for key, value in config.items() if key != "id"}))

    def __repr__(self) -> str:
        """Return the call that makes the codec."""
        shown = [repr(self.codec)] if self.codec is not None else []
        if self.fill_value is not None:
            shown.append(f"fill_value={self.fill_value!r}")
        return f"{type(self).__name__}({', '.join(shown)})"


def _chunk(buf: Any, codec: Codec) -> NDArray[Any]:
    """Return a chunk as an array in C order, its axes reversed where it lies in memory in Fortran's.

    Raises
    ------
    Unsupported
        If bytes are given with a codec that does not keep every bit.
    """
    if isinstance(buf, (bytes, bytearray)):
        if not codec.is_lossless:
            message = f"{codec!r} needs an array: bytes do not say of what type their values are"
            raise Unsupported(message)
        return np.frombuffer(buf, dtype=np.uint8)
    values = np.asarray(buf)
    return values.T if values.flags.f_contiguous and not values.flags.c_contiguous else values


def _as_chunk(out: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return a buffer as an array to decode into.

    Raises
    ------
    InvalidArgument
        If it has another size, is read-only or is not contiguous.
    """
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    array = out if isinstance(out, np.ndarray) else np.asarray(memoryview(out))
    plain = array.T if array.flags.f_contiguous and not array.flags.c_contiguous else array
    if array.nbytes != size or not array.flags.writeable or not plain.flags.c_contiguous:
        message = f"out must be writeable and have {size} bytes in one piece; got {array.nbytes} bytes"
        raise InvalidArgument(message)
    return plain.reshape(-1).view(np.uint8).view(dtype).reshape(shape)
