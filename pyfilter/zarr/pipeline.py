# SPDX-License-Identifier: BSD-3-Clause
"""The codec pipeline of zarr-python for arrays of frames: chunks are decoded to where they belong, several in a call.

zarr-python's own pipeline has the thread of the event loop copy every decoded chunk into the result, and in format 2
every chunk before it is encoded; each chunk costs a task and a thread's wake-up. Here groups of chunks go to threads,
which decode straight into the result. Only arrays with pyfilter as their one codec get it; for what it does not take
(device memory, parts of chunks that are written, order F) it calls zarr-python's own.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import zarr
from zarr.codecs._v2 import V2Codec
from zarr.core.codec_pipeline import BatchedCodecPipeline, fill_value_or_default
from zarr.registry import register_pipeline

from pyfilter import dtypes, frames
from pyfilter._lib import host
from pyfilter.zarr import parts, work
from pyfilter.zarr.compressor import Compressor

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

#: limits of the chunks that a thread takes at a time: bytes of their values, and groups for each thread
_GROUP_BYTES = 16 << 20
_GROUPS_FOR_THREAD = 4
_ZARRS_OWN = f"{BatchedCodecPipeline.__module__}.{BatchedCodecPipeline.__qualname__}"
#: a chunk as zarr-python describes it: place in the store, spec, selection in it, selection in the array, is complete
Chunk = tuple[Any, Any, Any, Any, bool]
#: calls a function in a thread
Call = Callable[..., Awaitable[Any]]


class Pipeline(BatchedCodecPipeline):  # type: ignore[misc]
    """zarr-python's pipeline, faster for arrays whose one codec is pyfilter's."""

    @classmethod
    def from_codecs(cls, codecs: Iterable[Any], *, batch_size: int | None = None) -> Any:
        """Return a pipeline: zarr-python's own unless the only codec is pyfilter's."""
        found = tuple(codecs)
        make = super().from_codecs if len(found) == 1 and _is_ours(found[0]) else BatchedCodecPipeline.from_codecs
        return make(found, batch_size=batch_size)

    async def read(self, batch_info: Iterable[Chunk], out: Any, drop_axes: tuple[int, ...] = ()) -> None:
        """Decode chunks into ``out``."""
        chunks = list(batch_info)
        if not _in_host_memory(out, chunks):
            await super().read(chunks, out, drop_axes)
            return
        left: list[Chunk] = []

        async def read(group: list[Chunk], call: Call) -> None:
            stored = [await place.get(prototype=spec.prototype) for place, spec, *_ in group]
            left.extend(await call(self._decode_group, group, stored, out, drop_axes))

        await _in_groups(chunks, chunks[0][1], read)
        if left:
            await super().read(left, out, drop_axes)

    def _decode_group(self, group: list[Chunk], stored: list[Any], out: Any, drop_axes: tuple[int, ...]) -> list[Chunk]:
        """Decode chunks into ``out``; return those that zarr-python's pipeline is to read."""
        dtype = group[0][1].dtype.to_native_dtype()
        code, array = dtypes.code_of(dtype), out.as_ndarray_like()
        old = isinstance(self.array_bytes_codec, V2Codec)
        left = []
        for chunk, data in zip(group, stored, strict=True):
            place, spec, selection, region, _ = chunk
            if data is None:
                out[region] = fill_value_or_default(spec)
                continue
            with parts.Named(place):
                frame = frames.frame_bytes(data.as_array_like())
                header = frames.checked_header(frame)
                alike = header.dtype == code and header.shape == spec.shape and not header.source_big_endian
                if alike and dtype.isnative:
                    target = None if drop_axes else _target(chunk, array)
                    if target is not None:
                        host.decode(frame, target)
                        continue
                if not old:
                    values = self.array_bytes_codec._decode_part(data, selection, spec)
                elif alike and dtype.isnative:
                    whole = work.empty(spec.shape, dtype)
                    host.decode(frame, whole)
                    values = spec.prototype.nd_buffer.from_ndarray_like(whole)[selection]
                else:  # another shape or byte order, as zarr-python allows
                    left.append(chunk)
                    continue
                out[region] = values.squeeze(axis=drop_axes) if drop_axes else values
        return left

    async def write(self, batch_info: Iterable[Chunk], value: Any, drop_axes: tuple[int, ...] = ()) -> None:
        """Encode chunks of ``value`` and store them."""
        chunks = list(batch_info)
        whole: list[tuple[Chunk, Any]] = []
        left: list[Chunk] = []
        ours = bool(value.shape) and not drop_axes and _in_host_memory(value, chunks)
        for chunk in chunks:
            part = value[chunk[3]] if ours and parts.is_whole(chunk[2], chunk[1].shape) else None
            if part is not None and part.shape == tuple(chunk[1].shape):
                whole.append((chunk, part))
            else:
                left.append(chunk)

        async def write(group: list[tuple[Chunk, Any]], call: Call) -> None:
            made = await call(self._encode_group, group)
            for (chunk, _), data in zip(group, made, strict=True):
                await (chunk[0].delete() if data is None else chunk[0].set(data))

        await _in_groups(whole, chunks[0][1] if chunks else None, write)
        if left:
            await super().write(left, value, drop_axes)

    def _encode_group(self, group: list[tuple[Chunk, Any]]) -> list[Any]:
        """Return what to store of whole chunks, None where it is nothing but the fill value and need not be stored."""
        codec, spec = self.array_bytes_codec, group[0][0][1]
        if isinstance(codec, V2Codec):
            dtype = spec.dtype.to_native_dtype()
            request = codec.compressor.request(dtype, spec.shape)
        else:
            dtype = group[0][1].dtype
            request = codec.request(dtype, spec)
        fill, native = fill_value_or_default(spec), dtypes.native(dtype)
        found: list[Any] = []
        for chunk, part in group:
            with parts.Named(chunk[0]):
                if not spec.config.write_empty_chunks and parts.is_empty(part, fill):
                    found.append(None)
                else:
                    values = np.asarray(part.as_ndarray_like(), dtype=native, order="C")
                    found.append(spec.prototype.buffer.from_array_like(work.encode(request, values).copy()))
        return found


def _is_ours(codec: Any) -> bool:
    """Whether frames are all that a codec makes of chunks."""
    from pyfilter.zarr.serializer import Serializer

    if isinstance(codec, V2Codec):
        return isinstance(codec.compressor, Compressor) and not codec.filters
    return isinstance(codec, Serializer)


def _in_host_memory(values: Any, chunks: list[Chunk]) -> bool:
    """Whether an array's values, and its chunks, are in host memory and in C order."""
    if not chunks:
        return False
    spec = chunks[0][1]
    plain = (
        isinstance(values.as_ndarray_like(), np.ndarray) and dtypes.code_of(spec.dtype.to_native_dtype()) is not None
    )
    return plain and spec.order == "C" and spec.prototype.buffer is zarr.core.buffer.cpu.Buffer


def _target(chunk: Chunk, array: NDArray[Any]) -> NDArray[Any] | None:
    """Return the part of an array that a chunk can be decoded into, None where it must be copied to it."""
    _, spec, selection, region, _ = chunk
    items = region if isinstance(region, tuple) else (region,)
    if array.dtype != spec.dtype.to_native_dtype() or not all(isinstance(item, slice) for item in items):
        return None
    target: NDArray[Any] = array[items]
    fits = target.shape == spec.shape and target.flags.c_contiguous and target.flags.writeable
    return target if fits and parts.is_whole(selection, spec.shape) else None


async def _in_groups(items: list[Any], spec: Any, work_on: Callable[[list[Any], Call], Any]) -> None:
    """Call a function with groups of chunks, and what calls in threads, for as many at a time as zarr-python's setting.

    The first error ends it, when the calls that are at work are done: they write to the caller's memory.
    """
    if not items:
        return
    at_a_time = min(len(items), zarr.config.get("async.concurrency") or len(items))
    size = math.prod(spec.shape) * spec.dtype.to_native_dtype().itemsize
    async with work.pool() as pool:
        fair = len(items) // max(at_a_time, _GROUPS_FOR_THREAD * pool.threads)
        count = max(1, min(_GROUP_BYTES // max(size, 1), fair))
        groups = (items[first : first + count] for first in range(0, len(items), count))
        call = partial(pool.call, max(1, pool.threads // -(-len(items) // count)))

        async def one_by_one() -> None:
            for group in groups:
                await work_on(group, call)

        tasks = [asyncio.ensure_future(one_by_one()) for _ in range(at_a_time)]
        try:
            await asyncio.gather(*tasks)
        finally:
            groups.close()
            await asyncio.wait(tasks)


def _use() -> None:
    """Have zarr-python take this pipeline, unless its setting names another than its own.

    Of later releases' pipelines nothing is known.
    """
    register_pipeline(Pipeline)
    if zarr.__version__.startswith("3.1.") and zarr.config.get("codec_pipeline.path") == _ZARRS_OWN:
        zarr.config.set({"codec_pipeline.path": f"{Pipeline.__module__}.{Pipeline.__qualname__}"})


_use()
