# SPDX-License-Identifier: BSD-3-Clause
"""Shared by the codecs of format 3: the check that a frame belongs to an array, and a codec that only reads.

`StoredFrames` is the codec "numcodecs.pyfilter" of virtual stores. As in HDF5, zarr-python turns values to bytes by its
own codec and then filters these bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from zarr.abc.codec import BytesBytesCodec

from pyfilter import dtypes, frames, headers
from pyfilter.errors import CorruptFrame, Unsupported
from pyfilter.gpu.arrays import is_device_array
from pyfilter.zarr import configuration, work
from pyfilter.zarr.compressor import Compressor

if TYPE_CHECKING:
    from zarr.core.array_spec import ArraySpec
    from zarr.core.buffer import Buffer

#: what virtual stores call a codec of numcodecs in format 3
NUMCODECS_NAME = f"numcodecs.{configuration.NAME}"


def plain_dtype(spec: ArraySpec) -> np.dtype[Any]:
    """Return the element type of an array, if frames can hold it.

    Raises
    ------
    Unsupported
        If they cannot; the text names the types that they can hold.
    """
    dtype: np.dtype[Any] = spec.dtype.to_native_dtype()
    if dtypes.code_of(dtype) is None:
        known = ", ".join(dtypes.names("lossless"))
        message = f"pyfilter cannot compress arrays of {dtype}; it takes {known}"
        raise Unsupported(message)
    return dtype


def check(frame: Any, spec: ArraySpec) -> headers.FrameInfo:
    """Return the header of a frame that is one of this array's chunks.

    Raises
    ------
    FrameError
        If the bytes are no frame, or the frame has another shape or element type.
    """
    info = frames.frame_info(frame) if is_device_array(frame) else frames.checked_info(frames.frame_bytes(frame))
    dtype = dtypes.native(plain_dtype(spec))
    if info.shape != tuple(spec.shape) or info.dtype != dtype:
        message = (
            f"the chunk holds a frame of shape {info.shape} and type {info.dtype.name}; the array's chunks have shape "
            f"{tuple(spec.shape)} and type {dtype.name}"
        )
        raise CorruptFrame(message)
    return info


@dataclass(frozen=True)
class StoredFrames(BytesBytesCodec):  # type: ignore[misc]  # mypy does not read zarr's annotations
    """Decode the frames of HDF5 chunks to the bytes of their values; it does not encode.

    Parameters
    ----------
    compressor : Compressor
        What says the same to numcodecs, for stores of format 2 that are made of this one.
    """

    is_fixed_size = False

    compressor: Compressor

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> StoredFrames:
        """Return the codec that Zarr's metadata describe.

        Raises
        ------
        ValueError
            If they are not of this codec or this release; the text names what is wrong.
        """
        configuration.require_name(data, NUMCODECS_NAME)
        return cls(Compressor.from_config(data.get("configuration") or {}))

    @property
    def codec_config(self) -> dict[str, Any]:
        """The codec as JSON for numcodecs; VirtualiZarr asks for it to write references."""
        return self.compressor.get_config()

    def to_dict(self) -> dict[str, Any]:
        """Return what Zarr's metadata say of the codec."""
        return {
            "name": NUMCODECS_NAME,
            "configuration": {key: value for key, value in self.codec_config.items() if key != "id"},
        }

    def __hash__(self) -> int:
        """Codecs of numcodecs have no hash."""
        return hash(repr(self.compressor))

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: ArraySpec) -> int:
        """Refuse: frames have no fixed size."""
        raise NotImplementedError

    def _decode_sync(self, chunk_bytes: Buffer, chunk_spec: ArraySpec) -> Buffer:
        frame = chunk_bytes.as_numpy_array()
        check(frame, chunk_spec)
        values: np.ndarray[Any, Any] = self.compressor.decode(frame)
        return chunk_spec.prototype.buffer.from_array_like(values.reshape(-1).view(np.uint8))

    async def _decode_single(self, chunk_bytes: Buffer, chunk_spec: ArraySpec) -> Buffer:
        return await work.in_thread(self._decode_sync, chunk_bytes, chunk_spec)

    async def _encode_single(self, chunk_bytes: Buffer, chunk_spec: ArraySpec) -> Buffer | None:
        message = (
            f"{NUMCODECS_NAME} only decodes the chunks of HDF5 files; "
            "new arrays get serializer=pyfilter.zarr.Serializer(...)"
        )
        raise Unsupported(message)
