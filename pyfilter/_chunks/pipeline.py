# SPDX-License-Identifier: BSD-3-Clause
"""The filters in a dataset's creation property list, and whether chunks may bypass HDF5's own pipeline."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
from h5py import h5d, h5z

from pyfilter import dtypes
from pyfilter._chunks import stored
from pyfilter._lib import abi, hdf5, host
from pyfilter.codecs.base import RECORD_STAMP, STAMP, Codec
from pyfilter.records import Compound, compound
from pyfilter.registry import registry

if TYPE_CHECKING:
    from collections.abc import Sequence

#: the usual names of filters, for messages
FILTER_NAMES = {
    h5z.FILTER_DEFLATE: "gzip",
    h5z.FILTER_SHUFFLE: "shuffle",
    h5z.FILTER_FLETCHER32: "fletcher32",
    h5z.FILTER_SZIP: "szip",
    h5z.FILTER_NBIT: "nbit",
    h5z.FILTER_SCALEOFFSET: "scaleoffset",
    32000: "lzf",
    32001: "blosc",
    32004: "lz4",
    32008: "bitshuffle",
    32013: "zfp",
    32015: "zstd",
    32017: "sz",
    32024: "sz3",
    32026: "blosc2",
    32028: "sperr",
}
#: third-party filters that keep values to a bound, as ours does, and so must come first
LOSSY_FILTERS = (32013, 32017, 32024, 32028)


@dataclass(frozen=True)
class Pipeline:
    """The filters of one dataset: ids in their order, and our cd_values where we are among them."""

    ids: tuple[int, ...]
    words: tuple[int, ...] | None

    @property
    def has_ours(self) -> bool:
        """Whether pyfilter is one of the filters."""
        return self.words is not None

    @property
    def position(self) -> int:
        """Our place in the order; -1 where we are not there."""
        return self.ids.index(registry().filter_id) if self.has_ours else -1

    @property
    def only_ours(self) -> bool:
        """Whether pyfilter is the one filter, configured by its set_local."""
        return len(self.ids) == 1 and self.stamped

    @property
    def stamped(self) -> bool:
        """Whether cd_values are in the stored form, without which the filter touches nothing."""
        return self.words is not None and len(self.words) > 0 and self.words[0] in (STAMP, RECORD_STAMP)

    @property
    def codec(self) -> Codec | Compound | None:
        """The codec that our cd_values stand for, of records `Compound`; None if we are not in the pipeline."""
        if self.words is None:
            return None
        return (Compound if compound.is_of_records(self.words) else Codec).from_cd_values(self.words)


def filter_name(filter_id: int) -> str:
    """Return a filter's usual name, its number where it has none here."""
    if filter_id == registry().filter_id:
        return registry().filter_name
    return FILTER_NAMES.get(filter_id, str(filter_id))


def pipeline_of(dataset: h5py.Dataset) -> Pipeline:
    """Return the filters of an h5py dataset."""
    plist = dataset.id.get_create_plist()
    filters = hdf5.filters_of(plist.id)
    words = next((values for identity, values in filters if identity == registry().filter_id), None)
    return Pipeline(tuple(identity for identity, _ in filters), words)


@dataclass(frozen=True)
class ChunkCodec:
    """How the chunks of a dataset are encoded and decoded past HDF5, to the bytes that the filter would write.

    Attributes
    ----------
    request : Request
        Made from the stored cd_values by the library itself, as in the filter.
    dtype : numpy.dtype
        Element type in this machine's byte order.
    file_dtype : numpy.dtype
        Element type as stored.
    chunk : tuple of int
        Chunk shape.
    padding : numpy scalar
        What HDF5 puts in the part of an edge chunk that is outside the dataset.
    """

    request: abi.Request
    dtype: np.dtype[Any]
    file_dtype: np.dtype[Any]
    chunk: tuple[int, ...]
    padding: np.generic

    @cached_property
    def chunk_bytes(self) -> int:
        """Size of a decoded chunk."""
        return math.prod(self.chunk) * self.dtype.itemsize


def chunk_codec(dataset: h5py.Dataset) -> ChunkCodec | None:
    """Return how to encode and decode the dataset's chunks, None where only HDF5 may do it.

    Only HDF5 may do it if another filter takes part, edge chunks are stored unfiltered, or the layout is not chunked.
    The same holds if the element type is not a plain number, the file is written through MPI, or HDF5 reports wrong
    locations for the chunks.
    """
    if dataset.chunks is None or dataset.file.driver == "mpio" or dtypes.code_of(dataset.dtype) is None:
        return None
    pipeline = pipeline_of(dataset)
    if pipeline.words is None or not pipeline.only_ours:
        return None
    plist = dataset.id.get_create_plist()
    if not hdf5.filters_partial_chunks(plist.id) or not stored.offsets_are_reliable(dataset):
        return None
    request = host.parse_cd_values(pipeline.words)
    if int(np.prod(request.shape, dtype=np.int64)) != int(np.prod(dataset.chunks, dtype=np.int64)):
        return None
    dtype = dtypes.native(dataset.dtype)
    if request.dtype != dtypes.code_of(dtype):
        return None
    return ChunkCodec(request, dtype, dataset.dtype, dataset.chunks, fill_of(plist, dtype)[()])


def fill_of(plist: Any, dtype: np.dtype[Any]) -> Any:
    """Return the value that HDF5 puts where nothing was written, as an array without dimensions."""
    if plist.get_fill_time() == h5d.FILL_TIME_NEVER:
        return np.zeros((), dtype=dtype)
    return declared_fill(plist, dtype)


def declared_fill(plist: Any, dtype: np.dtype[Any]) -> Any:
    """Return a dataset's fill value, zero where it has none, as an array without dimensions."""
    value = np.zeros((), dtype=dtype)
    if plist.fill_value_defined() != h5d.FILL_VALUE_UNDEFINED:
        plist.get_fill_value(value)
    return value


def breaks_bound(ids: Sequence[int], codec: int | None = None) -> list[int]:
    """Return the filters that come before ours, or before ``codec``: each changes what the bound is kept for."""
    last = registry().filter_id if codec is None else codec
    return list(ids[: list(ids).index(last)]) if last in ids else []
