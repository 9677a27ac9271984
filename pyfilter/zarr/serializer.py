# SPDX-License-Identifier: BSD-3-Clause
"""Zarr format 3: the array-to-bytes codec "pyfilter" of zarr-python. A stored chunk is one frame (docs/format.md).

zarr-python calls it from its event loop, a chunk at a time and many at once. Frames are coded in threads, where the C
library needs no GIL. Chunks in device memory (``zarr.config.enable_gpu()``) are coded on the device.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from zarr.abc.codec import ArrayBytesCodec, ArrayBytesCodecPartialDecodeMixin, ArrayBytesCodecPartialEncodeMixin

from pyfilter import dtypes, frames
from pyfilter._lib import host
from pyfilter.errors import InvalidArgument, Unsupported
from pyfilter.gpu.arrays import is_device_array
from pyfilter.zarr import configuration, parts, pipeline, work  # noqa: F401  # zarr-python takes the pipeline
from pyfilter.zarr.stored import check, plain_dtype

if TYPE_CHECKING:
    from zarr.core.array_spec import ArraySpec
    from zarr.core.buffer import Buffer, NDBuffer

    from pyfilter._lib import abi
    from pyfilter.codecs.base import Codec


@dataclass(frozen=True)
class Serializer(ArrayBytesCodec, ArrayBytesCodecPartialDecodeMixin, ArrayBytesCodecPartialEncodeMixin):  # type: ignore[misc]
    """Compress the chunks of a Zarr array (format 3): ``zarr.create_array(..., serializer=Serializer(codec))``.

    Give ``compressors=None`` with it: zarr-python would put Zstandard behind it, and read whole chunks for a part.
    `pyfilter.zarr.create_array` does, and takes a relative bound of the whole array. Here such a bound (or psnr) is
    taken of each chunk's own range, the fill value left out.

    Parameters
    ----------
    codec : Codec, optional
        How to compress. Without it the array can be read and not written.
    fill_value : scalar, optional
        The value that stands for "missing" and is kept bit for bit, where it is not the array's own ``fill_value``.

    Raises
    ------
    TypeError
        If ``codec`` is no codec.
    ValueError
        If ``fill_value`` is not a number.

    Examples
    --------
    >>> Serializer(Cuszp2(absolute=1e-3)).to_dict()["configuration"]["absolute"]
    0.001
    """

    is_fixed_size = False

    codec: Codec | None = None
    fill_value: Any = None

    def __post_init__(self) -> None:
        """Check both fields."""
        configuration.require_codec(self.codec)
        object.__setattr__(self, "fill_value", configuration.plain_fill(self.fill_value))

    # -- JSON

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Serializer:
        """Return the serializer that Zarr's metadata describe.

        Raises
        ------
        ValueError
            If they are invalid for this codec and release; the text names the wrong field.
        """
        configuration.require_name(data, configuration.NAME)
        return cls(*configuration.parse(data.get("configuration") or {}))

    def to_dict(self) -> dict[str, Any]:
        """Return what Zarr's metadata say of the codec."""
        found = configuration.by_name(self.codec, self.fill_value)
        return {"name": configuration.NAME, "configuration": found} if found else {"name": configuration.NAME}

    # -- what zarr-python asks before it writes

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: ArraySpec) -> int:
        """Refuse: frames have no fixed size."""
        raise NotImplementedError

    def evolve_from_array_spec(self, array_spec: ArraySpec) -> Serializer:
        """Return the codec itself, if it takes such an array.

        Raises
        ------
        TypeError
            If the codec does not take the element type (`pyfilter.errors.Unsupported`).
        ValueError
            If the fill value is not of that type, or the codec needs other dimensions.
        """
        dtype = plain_dtype(array_spec)
        if self.codec is not None:
            fill = self._fill(array_spec)
            host.check_request(frames.make_request(self.codec, dtype, (1,) * array_spec.ndim, fill))
            self._without_zeros(array_spec, dtype)
        return self

    def _fill(self, spec: ArraySpec) -> Any:
        return spec.fill_value if self.fill_value is None else self.fill_value

    def _without_zeros(self, spec: ArraySpec, dtype: np.dtype[Any]) -> bool:
        """Whether zeros are padding, which a bound that follows the range must not count.

        Raises
        ------
        InvalidArgument
            If chunks are padded with a value that could not be told from data.
        """
        if self.codec is None or self.codec.range_fraction is None or self.fill_value is None:
            return False
        padding = dtypes.pattern(spec.fill_value, dtype)
        if padding == dtypes.pattern(self.fill_value, dtype) or parts.is_nan(spec.fill_value):
            return False
        if padding == 0:
            return True
        message = (
            f"Zarr pads chunks with the array's fill_value {spec.fill_value}, which is not the codec's, "
            f"{self.fill_value}: it would count for the range of {self.codec!r}. Make both the same, or give an "
            "absolute bound"
        )
        raise InvalidArgument(message)

    # -- whole chunks

    def _encode_sync(self, chunk_array: NDBuffer, chunk_spec: ArraySpec, over: Buffer | None = None) -> Buffer:
        values = chunk_array.as_ndarray_like()
        frame = self._frame(values, chunk_spec, None if over is None else over.as_array_like())
        return chunk_spec.prototype.buffer.from_array_like(frame)

    def _frame(self, values: Any, spec: ArraySpec, over: Any) -> Any:
        """Return the frame of a chunk as an array of bytes, in the memory of the values."""
        dtype = np.dtype(values.dtype)
        if is_device_array(values):
            codec = configuration.codec_to_write_with(self.codec)
            if self._without_zeros(spec, dtype):
                message = f"values on a device: {codec!r} needs an array with the same fill_value, {self.fill_value}"
                raise Unsupported(message)
            return frames.encode(values, codec, self._fill(spec))
        request = self.request(dtype, spec)
        plain = np.asarray(values, dtype=dtypes.native(dtype), order="C")
        return work.encode(request, plain, None if over is None else frames.frame_bytes(over)).copy()

    def request(self, dtype: np.dtype[Any], spec: ArraySpec) -> abi.Request:
        """Return how chunks of values of this type are encoded, in host memory."""
        codec = configuration.codec_to_write_with(self.codec)
        request = frames.make_request(codec, dtype, spec.shape, self._fill(spec))
        request.without_zeros = int(self._without_zeros(spec, dtype))
        return request

    def _decode_sync(self, chunk_bytes: Buffer, chunk_spec: ArraySpec) -> NDBuffer:
        frame = chunk_bytes.as_array_like()
        if is_device_array(frame):
            check(frame, chunk_spec)
            return chunk_spec.prototype.nd_buffer.from_ndarray_like(frames.decode(frame))
        data = frames.frame_bytes(frame)
        info = check(data, chunk_spec)
        values = work.empty(info.shape, info.dtype)
        host.decode(data, values)
        dtype = plain_dtype(chunk_spec)
        if dtype != info.dtype:  # the other byte order
            values = values.byteswap(inplace=True).view(dtype)
        return chunk_spec.prototype.nd_buffer.from_ndarray_like(values)

    async def _encode_single(self, chunk_array: NDBuffer, chunk_spec: ArraySpec) -> Buffer | None:
        return await work.in_thread(self._encode_sync, chunk_array, chunk_spec)

    async def _decode_single(self, chunk_bytes: Buffer, chunk_spec: ArraySpec) -> NDBuffer:
        return await work.in_thread(self._decode_sync, chunk_bytes, chunk_spec)

    # -- parts of chunks

    async def _decode_partial_single(self, byte_getter: Any, selection: Any, chunk_spec: ArraySpec) -> NDBuffer | None:
        """Fetch a chunk and decode what a selection needs of it."""
        chunk_bytes = await byte_getter.get(prototype=chunk_spec.prototype)
        if chunk_bytes is None:
            return None
        with parts.Named(byte_getter):
            return await work.in_thread(self._decode_part, chunk_bytes, selection, chunk_spec)

    def _decode_part(self, chunk_bytes: Buffer, selection: Any, chunk_spec: ArraySpec) -> NDBuffer:
        needed = parts.rows(selection, chunk_spec.shape)
        if needed is None:
            return self._decode_sync(chunk_bytes, chunk_spec)[selection]
        frame = chunk_bytes.as_array_like()
        check(frame, chunk_spec)
        values = frames.decode(frame, needed.start, needed.stop).reshape(needed.shape)[needed.selection]
        if not is_device_array(values):
            values = np.asarray(values, dtype=plain_dtype(chunk_spec))
        return chunk_spec.prototype.nd_buffer.from_ndarray_like(values)

    async def _encode_partial_single(
        self, byte_setter: Any, chunk_array: NDBuffer, selection: Any, chunk_spec: ArraySpec
    ) -> None:
        """Write a part of a chunk.

        The other values were decoded, and a bound that follows the range would move them again. So the frame that it
        was decoded from goes to the encoder, which keeps values that have not changed.
        """
        old = None
        if not parts.is_whole(selection, chunk_spec.shape):
            old = await byte_setter.get(prototype=chunk_spec.prototype)
        with parts.Named(byte_setter):
            new = await work.in_thread(self._updated, old, chunk_array, selection, chunk_spec)
        if new is None:
            await byte_setter.delete()
        else:
            await byte_setter.set(new)

    def _updated(self, old: Buffer | None, value: NDBuffer, selection: Any, spec: ArraySpec) -> Buffer | None:
        """Return the new frame, None where the chunk is nothing but the fill value and need not be stored."""
        fill = spec.dtype.default_scalar() if spec.fill_value is None else spec.fill_value
        dtype = plain_dtype(spec)
        if old is None and parts.is_whole(selection, spec.shape) and value.shape == spec.shape:
            chunk = value
        else:
            nd_buffer = spec.prototype.nd_buffer
            if old is not None:
                chunk = self._decode_sync(old, spec)
            else:
                chunk = nd_buffer.create(shape=spec.shape, dtype=dtype, order=spec.order, fill_value=fill)
            parts.assign(chunk, selection, value)
        if not spec.config.write_empty_chunks and parts.is_empty(chunk, fill):
            return None
        follows = self.codec is not None and self.codec.range_fraction is not None
        device = is_device_array(chunk.as_ndarray_like())
        return self._encode_sync(chunk, spec, old if follows and not device else None)
