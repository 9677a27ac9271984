# SPDX-License-Identifier: BSD-3-Clause
"""Attributes, and references from one place of a file to another, carried over to a copy of the file.

Values without references are moved as they lie in memory, in the type of the file, so that nothing is converted.
References hold addresses inside their file: each is made anew from the object that it means.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
from h5py import h5, h5a, h5g, h5o, h5p, h5r, h5s, h5t

from pyfilter import checking
from pyfilter._lib import hdf5
from pyfilter.errors import Unsupported

if TYPE_CHECKING:
    from numpy.typing import NDArray


class ObjectMap:
    """Where the objects of the source are in the copy, and the types that were committed there.

    Parameters
    ----------
    target
        The copy.
    """

    def __init__(self, target: h5py.File) -> None:
        self.target = target
        self._paths: dict[tuple[int, int], bytes] = {}
        # an unnamed group for types that are used before their link is copied; HDF5 removes it when it is closed
        self._types = h5g.create(target.id, None)
        self._copied_types: dict[tuple[int, int], bytes] = {}

    def add(self, identity: Any, path: bytes) -> None:
        """Keep the path of an object's copy."""
        self._paths[checking.address(identity)] = path

    def path_of(self, identity: Any) -> bytes | None:
        """Return the path of an object's copy, None where it was not copied."""
        return self._paths.get(checking.address(identity))

    def type_of(self, tid: Any) -> Any:
        """Return the type to use in the copy: the committed one there, where the source's is committed."""
        if not tid.committed():
            return tid
        path = self.path_of(tid)
        return h5t.open(self.target.id, path) if path is not None else h5t.open(self._types, self._copy_type(tid))

    def link_type(self, tid: Any, group: Any, name: bytes, properties: Any) -> None:
        """Give a committed type its place in the copy, under ``name`` in ``group``."""
        group.links.create_hard(name, self._types, self._copy_type(tid), lcpl=properties)

    def _copy_type(self, tid: Any) -> bytes:
        """Return the name of a committed type's copy in the unnamed group, copying it there if need be."""
        place = checking.address(tid)
        if place not in self._copied_types:
            self._copied_types[place] = b"%d" % len(self._copied_types)
            tid.copy().commit(self._types, self._copied_types[place])
        return self._copied_types[place]

    def reference(self, reference: Any, source: Any) -> Any:
        """Return the reference that means in the copy what ``reference`` means in the source."""
        if not reference:
            return reference
        try:
            identity = h5r.dereference(reference, source)
        except (ValueError, RuntimeError, OSError):  # it pointed to nothing before
            identity = None
        path = self.path_of(identity) if identity is not None else None
        if path is None:
            return type(reference)()
        if isinstance(reference, h5r.RegionReference):
            space = h5r.get_region(reference, source)
            return h5r.create(self.target.id, path, h5r.DATASET_REGION, space)
        return h5r.create(self.target.id, path, h5r.OBJECT)

    def references(self, values: NDArray[Any], source: Any) -> NDArray[Any]:
        """Return an array with every reference in it replaced, inside compounds and sequences too."""
        if values.dtype.names is not None:
            fields: NDArray[Any] = values.copy()
            for name in values.dtype.names:
                fields[name] = self.references(values[name], source)
            return fields
        if values.dtype.kind != "O":
            return values
        out: NDArray[Any] = np.empty(values.shape, dtype=values.dtype)
        for index in np.ndindex(values.shape):
            item = values[index]
            if isinstance(item, (h5r.Reference, h5r.RegionReference)):
                out[index] = self.reference(item, source)
            elif isinstance(item, np.ndarray):
                out[index] = self.references(item, source)
            else:
                out[index] = item
        return out


def has_references(tid: Any) -> bool:
    """Whether a type holds references anywhere."""
    return _contains(tid, h5t.REFERENCE)


def has_sequences(tid: Any) -> bool:
    """Whether a type holds variable-length sequences or strings anywhere, so that its values are pointers."""
    return _contains(tid, h5t.VLEN)


def _contains(tid: Any, kind: int) -> bool:
    own = tid.get_class()
    if own == kind or (kind == h5t.VLEN and own == h5t.STRING and tid.is_variable_str()):
        return True
    if own in (h5t.VLEN, h5t.ARRAY):
        return _contains(tid.get_super(), kind)
    if own == h5t.COMPOUND:
        return any(_contains(tid.get_member_type(index), kind) for index in range(tid.get_nmembers()))
    return False


def raw_dtype(tid: Any) -> np.dtype[Any]:
    """Return the NumPy type for values that are moved as they lie in memory."""
    return np.dtype(f"V{tid.get_size()}")


def read_raw(dataset: h5py.Dataset, region: tuple[slice, ...]) -> NDArray[Any]:
    """Return a part of a dataset of a type of fixed size, its values as they lie in the file."""
    space, memory = _spaces(dataset, region)
    tid = dataset.id.get_type()
    block = np.empty([part.stop - part.start for part in region], dtype=raw_dtype(tid))
    dataset.id.read(memory, space, block, mtype=tid)
    return block


def write_raw(dataset: h5py.Dataset, region: tuple[slice, ...], block: NDArray[Any], tid: Any) -> None:
    """Write a part of a dataset, from values as they lie in a file in the type ``tid``."""
    space, memory = _spaces(dataset, region)
    dataset.id.write(memory, space, block, mtype=tid)


def _spaces(dataset: h5py.Dataset, region: tuple[slice, ...]) -> tuple[Any, Any]:
    extents = tuple(part.stop - part.start for part in region)
    space = dataset.id.get_space()
    space.select_hyperslab(tuple(part.start for part in region), extents)
    return space, h5s.create_simple(extents)


def copy_attributes(source: Any, target: Any, objects: ObjectMap, *, by_creation: bool) -> None:
    """Copy all attributes of an object, in the order in which they were made where the object keeps it.

    Parameters
    ----------
    source, target
        Low-level identifiers of the object and its copy.
    objects
        Where references and committed types lead.
    by_creation
        Whether the source keeps the order.
    """
    order = h5.INDEX_CRT_ORDER if by_creation else h5.INDEX_NAME
    for index in range(h5a.get_num_attrs(source)):
        attribute = h5a.open(source, index=index, index_type=order)
        tid, space = attribute.get_type(), attribute.get_space()
        copy = h5a.create(target, attribute.name, objects.type_of(tid), space)
        if space.get_simple_extent_type() == h5s.NULL or space.get_simple_extent_npoints() == 0:
            continue
        if has_references(tid):
            values = np.empty(attribute.shape, dtype=_readable(attribute.dtype, attribute.name))
            attribute.read(values)
            copy.write(objects.references(values, source))
        else:
            raw = np.empty(attribute.shape, dtype=raw_dtype(tid))
            attribute.read(raw, mtype=tid)
            copy.write(raw, mtype=tid)
            if has_sequences(tid):
                hdf5.reclaim(tid.id, space.id, raw.ctypes.data)


def _readable(dtype: Any, name: bytes) -> Any:
    if dtype is None:
        message = f"attribute {name.decode('utf-8', 'replace')!r} has a type with references that h5py cannot read"
        raise Unsupported(message)
    return dtype


def copy_whole(source: Any, path: bytes, target: Any, name: bytes, properties: Any) -> None:
    """Copy an object without its attributes by HDF5's own copy: stored bytes stay as they are."""
    how = h5p.create(h5p.OBJECT_COPY)
    how.set_copy_object(h5o.COPY_WITHOUT_ATTR_FLAG)
    h5o.copy(source, path, target, name, copypl=how, lcpl=properties)


def link_properties(cset: int) -> Any:
    """Return the link creation properties for a name in this character set."""
    properties = h5p.create(h5p.LINK_CREATE)
    properties.set_char_encoding(cset)
    return properties
