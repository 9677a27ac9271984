# SPDX-License-Identifier: BSD-3-Clause
"""Datasets of compound types: their creation, with bounds of whole fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyfilter import h5, plugin
from pyfilter._chunks import creation, layout
from pyfilter.errors import Unsupported
from pyfilter.records import fields as record_fields
from pyfilter.records.compound import Compound, names_field

if TYPE_CHECKING:
    from collections.abc import Mapping

    import h5py
    from numpy.typing import NDArray

    from pyfilter.codecs.base import Codec
    from pyfilter.records.fields import Field

_SLAB_BYTES = 32 << 20


class Part:
    """A field of an array or dataset of records, read in slices of it. The dims of an array field come last."""

    def __init__(self, records: Any, field: Field) -> None:
        self.records, self._field = records, field
        self.dtype = field.dtype
        self.shape = (*records.shape, *field.shape)
        self.ndim = len(self.shape)

    def __getitem__(self, region: Any) -> NDArray[Any]:
        """Return the field's values in a region; of an array field all elements."""
        own = region[: self.records.ndim] if isinstance(region, tuple) else region
        return np.asarray(self._field.of(self.records[own]))


def resolve(compound: Compound, source: Any, fill_value: object, chunk: tuple[int, ...]) -> Compound:
    """Return the same with each field's relative bound, or psnr, resolved to an absolute one for all of ``source``.

    Raises
    ------
    Unsupported, InvalidArgument
        If the codecs do not fit the type.
    """
    fields = record_fields.fields_of(source.dtype)
    record_fields.check_names(compound, fields)
    record = record_fields.record_of(fill_value, source.dtype)
    resolved: dict[str, Codec] = {}
    for name, codec in compound.fields.items():
        members = [field for field in fields if names_field(name, field.name)]
        for field in members:
            found = record_fields.codec_for(compound, field)
            fill = record_fields.fill_of(field, record, found)
            part = Part(source, field)
            if field.is_number and found.range_fraction is not None:
                resolved[field.name] = h5.resolve(found, part, fill, (*chunk, *field.shape))
            elif len(members) == 1 or codec.range_fraction is not None:
                resolved[field.name] = found
            else:
                resolved[name] = codec
    return Compound(resolved, others=compound.others)


def create(
    group: h5py.Group,
    name: str | None,
    data: Any,
    compound: Compound,
    *,
    chunks: tuple[int, ...] | bool | None = None,
    fillvalue: object = None,
    maxshape: tuple[int | None, ...] | bool | None = None,
    attributes: Mapping[str, object] | None = None,
    **kwargs: Any,
) -> h5py.Dataset:
    """Create a dataset of records for `pyfilter.create_dataset`; HDF5 hands each chunk to the filter.

    Raises
    ------
    Unsupported, InvalidArgument
        If the codecs do not fit the type, or an argument does not go with records.
    """
    refused = [key for key in ("guarantee", "devices", "comm") if kwargs.pop(key, None) is not None]
    if refused:
        message = f"{', '.join(refused)} cannot be given for records (a compound type)"
        raise Unsupported(message)
    creation.refuse_settings(kwargs, "the data gives the shape")
    plugin.refresh()
    source = h5.source_of(data)
    wanted = kwargs.pop("dtype", None)
    dtype = np.dtype(source.dtype if wanted is None else wanted)
    creation.require_chunks(source)
    if dtype != source.dtype:
        source = np.asarray(source[...]).astype(dtype)
    limits = (None,) * len(source.shape) if maxshape is True else maxshape
    shape = layout.chosen(chunks, source.shape, dtype.itemsize, limits or None, (32,))
    record = record_fields.record_of(fillvalue, dtype)
    codec = resolve(compound, source, None if record is None else record[()], shape)
    made = {"dtype": dtype, "fillvalue": None if record is None else record[()], "compression": codec, **kwargs}
    dataset = group.create_dataset(name, shape=source.shape, chunks=shape, maxshape=limits or None, **made)
    with creation.removed_on_failure(group, name):
        for region in layout.slabs(source.shape, shape, dtype.itemsize, _SLAB_BYTES):
            dataset[region] = source[region]
        for key, value in (attributes or {}).items():
            dataset.attrs[key] = value
    return dataset
