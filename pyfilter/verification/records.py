# SPDX-License-Identifier: BSD-3-Clause
"""Compares datasets of compound types field by field: by error bounds (bounds.py), or bit for bit (same_bits.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import h5py

from pyfilter import checking, dtypes, h5
from pyfilter._chunks import layout, pipeline
from pyfilter.errors import InvalidArgument, Unsupported
from pyfilter.records import Compound
from pyfilter.records import fields as record_fields
from pyfilter.records.datasets import Part
from pyfilter.verification import same_bits
from pyfilter.verification.bounds import Comparison, Verification

if TYPE_CHECKING:
    from pyfilter.codecs.base import Codec

_SLAB_BYTES = 32 << 20


def verify_records(
    before: h5py.Dataset, after: h5py.Dataset, compound: Compound | None = None
) -> dict[str, Verification]:
    """Compare two datasets of a compound type field by field, each to the bound of its codec.

    Fields without a bound must have the same bits. Bytes between fields are not compared: they are no part of a value.

    Parameters
    ----------
    before, after : h5py.Dataset
        The datasets before and after compression; of the same fields and shape.
    compound : Compound, optional
        The codecs of the fields; by default those of ``after``.

    Returns
    -------
    dict of str to Verification
        The findings for each field by its name ("x", "position.x"). Indices are those of the field's values: of a field
        that is an array, of its elements.

    Raises
    ------
    ValueError
        If shapes or types differ, or a codec is given for a field that does not exist.
    TypeError
        If these are no datasets of a compound type, or no codecs are known.
    """
    if compound is None:
        found = checking.codec_of(after)
        compound = found if isinstance(found, Compound) else None
    if compound is None or after.dtype.names is None:
        message = "datasets of a compound type are needed, the second one compressed by pyfilter.Compound"
        raise Unsupported(message)
    difference = same_bits.difference(before, after)
    if difference is not None:
        raise InvalidArgument(difference)
    fields = record_fields.fields_of(after.dtype)
    record_fields.check_names(compound, fields)
    fill = pipeline.fill_of(after.id.get_create_plist(), after.dtype)
    origins = {field.name: field for field in record_fields.fields_of(before.dtype)}
    found_by_name: dict[str, Verification] = {}
    for field in fields:
        codec = record_fields.codec_for(compound, field)
        parts = Part(before, origins[field.name]), Part(after, field)
        if not field.is_number or codec.is_lossless:
            found_by_name[field.name] = _compare_bits(*parts)
        else:
            found_by_name[field.name] = _compare_values(*parts, codec, record_fields.fill_of(field, fill, codec))
    return found_by_name


def has_padding(dataset: h5py.Dataset) -> bool:
    """Whether records of the dataset have bytes that belong to no field."""
    return any(not field.name for field in record_fields.all_bytes_of(dataset.dtype))


def _compare_values(x: Part, y: Part, codec: Codec, fill: Any) -> Verification:
    fill = fill if dtypes.pattern(fill, fill.dtype) != 0 else None
    resolved = h5.resolve(codec, x, fill, layout.choose(x.shape, x.dtype.itemsize))
    # special values and a single number have no range: then nothing may change at all
    mode, bound = resolved.bound if resolved.bound[0] in ("absolute", "pointwise_relative") else ("none", 0.0)
    comparison = Comparison(x.dtype, bound, () if fill is None else (fill,), fill, mode == "pointwise_relative")
    index = 0
    for region in layout.slabs(x.records.shape, (1,) * x.records.ndim, x.records.dtype.itemsize, _SLAB_BYTES):
        part = x[region]
        comparison.add(part, y[region], index)
        index += part.size
    return comparison.result()


def _compare_bits(x: Part, y: Part) -> Verification:
    regions = layout.slabs(x.records.shape, (1,) * x.records.ndim, x.records.dtype.itemsize, _SLAB_BYTES)
    return same_bits.summary(same_bits.equal(x[region], y[region], None, None) for region in regions)
