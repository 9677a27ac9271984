# SPDX-License-Identifier: BSD-3-Clause
"""Copies an HDF5 file object by object, with a hand on the datasets that are to be compressed.

Groups are made again with their creation properties. H5Ocopy copies datasets as they are stored, except those with a
new codec, a committed type or references inside. Links keep their order, and attributes are copied last, when every
object that they may refer to exists. So hidden attributes (dimension scales, netCDF's dimension ids) need no knowledge
of their meaning.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
from h5py import h5d, h5f, h5g, h5l, h5o, h5p, h5s, h5t, h5z

from pyfilter import checking, dtypes
from pyfilter._chunks import layout, pipeline, stored, transfer
from pyfilter._lib import hdf5
from pyfilter.errors import Unsupported
from pyfilter.rewrite import alternatives, values
from pyfilter.rewrite.alternatives import ShuffleDeflate
from pyfilter.rewrite.values import ObjectMap

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pyfilter.codecs.base import Codec
    from pyfilter.guarantees import Guarantee
    from pyfilter.rewrite.alternatives import Choice

_ALL_FILTERS = 0  # H5Z_FILTER_ALL


@dataclass(frozen=True)
class Compression:
    """The storage of a dataset in the copy.

    Attributes
    ----------
    codec : Codec or ShuffleDeflate
        Ours, or HDF5's own filters.
    chunk : tuple of int
        The chunk shape.
    fill : scalar or None
        The fill value for HDF5; None: unchanged.
    choice : Choice or None
        What a sample showed, where something else may take the codec's place.
    guarantee : Guarantee or None
        What holds besides the bound of a lossy codec.
    """

    codec: Codec | ShuffleDeflate
    chunk: tuple[int, ...]
    fill: np.generic | None
    choice: Choice | None = None
    guarantee: Guarantee | None = None


class FileCopy:
    """A copy of a file.

    Parameters
    ----------
    source
        The file to copy, open for reading.
    target
        The new file, from `create_like`.
    compressions
        By path, the datasets to compress; None for one that is copied as it is stored.
    progress
        Called with the number of values of each piece that was written to a compressed dataset.
    slab_bytes
        How much of a dataset is read at a time.
    """

    def __init__(
        self,
        source: h5py.File,
        target: h5py.File,
        compressions: Mapping[str, Compression | None],
        progress: Callable[[int], None] | None = None,
        slab_bytes: int = transfer.SLAB_BYTES,
    ) -> None:
        self.slab_bytes = slab_bytes
        self.source = source
        self.target = target
        self.compressions = compressions
        self.progress = progress
        self.objects = ObjectMap(target)
        #: by path, what took the place of a compression that made a dataset larger; None: stored unchanged
        self.replaced: dict[str, Compression | None] = {}
        # objects whose attributes are still to be copied, and whether they keep their order of creation
        self._pending: list[tuple[Any, Any, bool]] = []
        self._referring: list[tuple[h5py.Dataset, h5py.Dataset]] = []

    def run(self) -> None:
        """Copy everything."""
        root = self.source["/"].id
        self.objects.add(root, b"/")
        self._copy_group(root, self.target["/"].id, b"/")
        for original, copy in self._referring:
            self._copy_references(original, copy)
        for original, copy, by_creation in self._pending:
            values.copy_attributes(original, copy, self.objects, by_creation=by_creation)
            comment = hdf5.comment_of(original.id)
            if comment:
                h5o.set_comment(copy, comment)

    def _copy_group(self, source: Any, target: Any, path: bytes) -> None:
        """Copy the links of a group in their order, and their targets."""
        properties = source.get_create_plist()
        self._pending.append((source, target, bool(properties.get_attr_creation_order() & h5p.CRT_ORDER_TRACKED)))
        for name, kind, charset in checking.links(source):
            properties = values.link_properties(charset)
            if kind == h5l.TYPE_HARD:
                self._copy_object(source, target, name, path.rstrip(b"/") + b"/" + name, properties)
            elif kind == h5l.TYPE_SOFT:
                target.links.create_soft(name, source.links.get_val(name), lcpl=properties)
            elif kind == h5l.TYPE_EXTERNAL:
                file, inner = source.links.get_val(name)
                target.links.create_external(name, file, inner, lcpl=properties)
            else:
                message = f"{_text(path)}: link {_text(name)!r} is user-defined (kind {kind}) and cannot be copied"
                raise Unsupported(message)

    def _copy_object(self, source: Any, target: Any, name: bytes, path: bytes, properties: Any) -> None:
        original = h5o.open(source, name)
        known = self.objects.path_of(original)
        if known is not None:
            target.links.create_hard(name, self.target.id, known, lcpl=properties)
            return
        self.objects.add(original, path)
        if isinstance(original, h5g.GroupID):
            copy = h5g.create(target, name, properties, group_properties(original))
            self._copy_group(original, copy, path)
        elif isinstance(original, h5d.DatasetID):
            copy = self._copy_dataset(original, target, name, path, properties)
            kept = original.get_create_plist().get_attr_creation_order() & h5p.CRT_ORDER_TRACKED
            self._pending.append((original, copy, bool(kept)))
        else:  # a committed type
            self.objects.link_type(original, target, name, properties)
            self._pending.append((original, h5o.open(target, name), False))

    def _copy_dataset(self, original: Any, target: Any, name: bytes, path: bytes, properties: Any) -> Any:
        compression = self.compressions.get(_text(path))
        tid = original.get_type()
        refers = values.has_references(tid)
        dcpl = original.get_create_plist()
        elsewhere = dcpl.get_layout() == h5d.VIRTUAL or dcpl.get_external_count() > 0
        # H5Ocopy loses the fill value of variable-length strings, and with it netCDF its way to open the file
        made_anew = compression is not None or refers or tid.committed() or values.has_sequences(tid)
        if not made_anew or (elsewhere and compression is None and not refers and not tid.committed()):
            values.copy_whole(self.source.id, path, target, name, properties)
            return h5o.open(target, name)
        if compression is not None:
            dcpl = compressed_properties(original, compression)
        elif elsewhere:
            message = f"{_text(path)}: virtual and external datasets of committed or reference types cannot be copied"
            raise Unsupported(message)
        copy = h5d.create(target, name, self.objects.type_of(tid), original.get_space(), dcpl, properties)
        dataset, result = h5py.Dataset(original), h5py.Dataset(copy)
        if compression is not None:
            self._compress(dataset, result, compression)
            better = self._better(dataset, result, compression)
            if better is not None:
                target.unlink(name)
                self._replace(_text(path), compression, better)
                return self._copy_dataset(original, target, name, path, properties)
        elif refers:
            self._referring.append((dataset, result))
        else:
            _copy_values(dataset, result)
        return copy

    def _better(self, source: h5py.Dataset, target: h5py.Dataset, compression: Compression) -> Choice | None:
        """Return a smaller alternative to a dataset as written; None where nothing is, or nothing else may be."""
        if compression.choice is None:
            return None
        size = int(target.id.get_storage_size())
        return alternatives.better(compression.choice, size, source, compression.chunk)

    def _replace(self, path: str, compression: Compression, better: Choice) -> None:
        changed = None
        if better.codec is not None:
            changed = replace(compression, codec=better.codec, choice=better)
        self.compressions = {**self.compressions, path: changed}
        self.replaced[path] = changed

    def _compress(self, source: h5py.Dataset, target: h5py.Dataset, compression: Compression) -> None:
        if isinstance(compression.codec, ShuffleDeflate):
            tid = source.id.get_type()
            for region in layout.slabs(source.shape, target.chunks, source.dtype.itemsize, self.slab_bytes):
                values.write_raw(target, region, values.read_raw(source, region), tid)
                self._advance(region)
            return
        how = pipeline.chunk_codec(target)
        guarantee = None if compression.codec.is_lossless else compression.guarantee
        if guarantee is not None:
            if how is None:
                message = (
                    f"{source.name}: {guarantee.words} cannot be held, as HDF5 itself makes its chunks (a "
                    "checksum, or edge chunks without filters); give --no-valid-range, or --var NAME=lossless"
                )
                raise Unsupported(message)
            transfer.write_chunks(target, how, source, self.progress, self.slab_bytes, guarantee.encode)
            return
        if how is not None and dtypes.code_of(source.dtype) == dtypes.code_of(how.dtype):
            transfer.write_chunks(target, how, source, self.progress, self.slab_bytes)
            return
        for region in layout.slabs(source.shape, target.chunks, source.dtype.itemsize, self.slab_bytes):
            target[region] = source[region]  # a checksum follows our filter: HDF5 has to make it
            self._advance(region)

    def _advance(self, region: tuple[slice, ...]) -> None:
        if self.progress is not None:
            self.progress(math.prod(part.stop - part.start for part in region))

    def _copy_references(self, source: h5py.Dataset, target: h5py.Dataset) -> None:
        if source.size in (None, 0):
            return
        contents = np.empty(source.shape, dtype=source.dtype)
        source.id.read(h5s.ALL, h5s.ALL, contents)
        target.id.write(h5s.ALL, h5s.ALL, self.objects.references(contents, source.id))


def create_like(source: h5py.File, path: Path) -> h5py.File:
    """Create a new file with the creation properties of another one, to be readable by the same releases of HDF5."""
    properties = source.id.get_create_plist()
    _keep_orders(source["/"].id, properties)  # the file's own list does not have what the root group keeps
    access = h5p.create(h5p.FILE_ACCESS)
    access.set_fclose_degree(h5f.CLOSE_STRONG)
    superblock = properties.get_version()[0]
    low = h5f.LIBVER_EARLIEST if superblock < 2 else h5f.LIBVER_V18
    access.set_libver_bounds(low, h5f.LIBVER_LATEST)
    return h5py.File(h5f.create(bytes(path), h5f.ACC_EXCL, fcpl=properties, fapl=access))


def group_properties(group: Any) -> Any:
    """Return the creation properties for the copy of a group.

    HDF5's own list for an existing group cannot be used: of a group with many links it holds addresses in its file.
    """
    properties = h5p.create(h5p.GROUP_CREATE)
    _keep_orders(group, properties)
    return properties


def _keep_orders(group: Any, properties: Any) -> None:
    before = group.get_create_plist()
    properties.set_link_creation_order(before.get_link_creation_order())
    properties.set_attr_creation_order(before.get_attr_creation_order())
    properties.set_attr_phase_change(*before.get_attr_phase_change())


def compressed_properties(original: Any, compression: Compression) -> Any:
    """Return the creation properties of a dataset with its filters replaced by the new ones.

    Its fill value, fill time and the order of its attributes are kept; a checksum stays, behind the filters.
    """
    before = original.get_create_plist()
    checksum = any(identity == h5z.FILTER_FLETCHER32 for identity, _ in hdf5.filters_of(before.id))
    if before.get_layout() == h5d.VIRTUAL or before.get_external_count():
        dcpl = h5p.create(h5p.DATASET_CREATE)
        dcpl.set_attr_creation_order(before.get_attr_creation_order())
        dcpl.set_fill_time(before.get_fill_time())
        if before.fill_value_defined() == h5d.FILL_VALUE_USER_DEFINED:
            value = np.zeros((), dtype=original.dtype)
            before.get_fill_value(value)
            dcpl.set_fill_value(value)
    else:
        dcpl = before
        if dcpl.get_nfilters():
            dcpl.remove_filter(_ALL_FILTERS)
    dcpl.set_chunk(compression.chunk)
    dcpl.set_alloc_time(h5d.ALLOC_TIME_INCR)
    if compression.fill is not None:
        dcpl.set_fill_value(np.asarray(compression.fill))
    if isinstance(compression.codec, ShuffleDeflate):
        dcpl.set_shuffle()
        dcpl.set_deflate(compression.codec.level)
    else:
        dcpl.set_filter(compression.codec.filter_id, h5z.FLAG_OPTIONAL, compression.codec.filter_options)
    if checksum:
        dcpl.set_fletcher32()
    return dcpl


def _copy_values(source: h5py.Dataset, target: h5py.Dataset) -> None:
    """Copy the values of a dataset without references as they are stored, or as they lie in memory."""
    if source.size in (None, 0):
        return
    tid = source.id.get_type()
    if source.chunks is not None and not values.has_sequences(tid):
        for offset in stored.origins_of(source):
            mask, data = source.id.read_direct_chunk(offset)
            target.id.write_direct_chunk(offset, data, mask)
        return
    if source.id.get_storage_size() == 0:
        return  # nothing was ever written
    contents = np.empty(source.shape, dtype=values.raw_dtype(tid))
    source.id.read(h5s.ALL, h5s.ALL, contents, mtype=tid)
    target.id.write(h5s.ALL, h5s.ALL, contents, mtype=tid)
    if values.has_sequences(tid):
        hdf5.reclaim(tid.id, source.id.get_space().id, contents.ctypes.data)


def _text(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")


def is_number(tid: Any) -> bool:
    """Whether a dataset's type is a plain IEEE float, two's complement integer or complex number, of either order."""
    if tid.get_class() not in (h5t.INTEGER, h5t.FLOAT):
        try:
            return bool(tid.dtype.kind == "c" and dtypes.code_of(tid.dtype) is not None)
        except TypeError:  # a type that h5py does not know
            return False
    return any(
        tid.equal(standard)
        for standard in (
            h5t.IEEE_F16LE, h5t.IEEE_F16BE, h5t.IEEE_F32LE, h5t.IEEE_F32BE, h5t.IEEE_F64LE, h5t.IEEE_F64BE,
            h5t.STD_I8LE, h5t.STD_U8LE, h5t.STD_I16LE, h5t.STD_I16BE, h5t.STD_U16LE, h5t.STD_U16BE,
            h5t.STD_I32LE, h5t.STD_I32BE, h5t.STD_U32LE, h5t.STD_U32BE,
            h5t.STD_I64LE, h5t.STD_I64BE, h5t.STD_U64LE, h5t.STD_U64BE,
        )
    )  # fmt: skip
