# SPDX-License-Identifier: BSD-3-Clause
"""Structured element types of NumPy as lists of fields, as filter/record_type.cpp does it for HDF5's types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pyfilter import dtypes
from pyfilter.errors import InvalidArgument, Unsupported
from pyfilter.records.compound import names_field

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyfilter.codecs.base import Codec
    from pyfilter.records.compound import Compound


@dataclass(frozen=True)
class Field:
    """A field of a record, or bytes that belong to none.

    Attributes
    ----------
    name : str
        With dots where it is in a compound in the compound; "" for bytes between fields.
    path : tuple of str
        The same as the names of members.
    offset, size : int
        Its first byte in the record, and its bytes.
    dtype : numpy.dtype
        Element type; of a field that is an array that of its elements.
    shape : tuple of int
        Of a field that is an array.
    is_number : bool
        Whether codecs know the element type. Other fields are encoded as bytes.
    """

    name: str
    path: tuple[str, ...]
    offset: int
    size: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    is_number: bool

    def of(self, records: Any) -> Any:
        """Return the field's part of an array of records, or of one record."""
        for name in self.path:
            records = records[name]
        return records


def fields_of(dtype: np.dtype[Any]) -> list[Field]:
    """Return the fields of a structured type in the order of their bytes, those of compounds in it as its own.

    Raises
    ------
    Unsupported
        If the type is not structured, has fields that refer to other memory, or fields that overlap.
    """
    if dtype.names is None:
        message = f"Compound is for structured types, got {dtype}: give the codec itself"
        raise Unsupported(message)
    if dtype.hasobject:
        message = f"fields of variable length, references and objects cannot be compressed, got {dtype}"
        raise Unsupported(message)
    found = sorted(_walk(dtype, (), 0), key=lambda field: field.offset)
    end = 0
    for field in found:
        if field.offset < end:
            message = f"field {field.name!r} overlaps another one"
            raise Unsupported(message)
        end = field.offset + field.size
    return found


def all_bytes_of(dtype: np.dtype[Any]) -> list[Field]:
    """Return the same with bytes between the fields as fields without a name: together all of the record."""
    found: list[Field] = []
    end = 0
    for field in [*fields_of(dtype), _bytes("", (), dtype.itemsize, 0)]:
        if field.offset > end:
            found.append(_bytes("", (), end, field.offset - end))
        if field.size:
            found.append(field)
        end = field.offset + field.size
    return found


def check_names(compound: Compound, fields: list[Field]) -> None:
    """Refuse codecs for fields that do not exist, and two for one field.

    Raises
    ------
    InvalidArgument
        The text names the field.
    """
    taken: dict[str, str] = {}
    for name in compound.fields:
        named = [field.name for field in fields if names_field(name, field.name)]
        if not named:
            known = ", ".join(field.name for field in fields if field.name)
            message = f"a codec is given for field {name!r}, but the type has {known}"
            raise InvalidArgument(message)
        for field in named:
            if field in taken:
                message = f"field {field!r} is given two codecs, for {taken[field]!r} and for {name!r}"
                raise InvalidArgument(message)
            taken[field] = name


def codec_for(compound: Compound, field: Field) -> Codec:
    """Return the codec of a field.

    Raises
    ------
    Unsupported
        If a bound is given for a field that is no number, or the codec does not take its type.
    """
    codec = compound.codec_of(field.name) if field.name else compound.others
    if not field.is_number:
        if not codec.is_lossless:
            message = f"field {field.name!r} is {field.dtype}, which is no number: {codec!r} cannot encode it"
            raise Unsupported(message)
        return compound.others
    if not dtypes.takes(codec.requested_spec.name, field.dtype):
        known = ", ".join(dtypes.names(codec.requested_spec.name))
        message = (
            f"field {field.name!r}: codec {codec.requested_spec.name} cannot encode {field.dtype}; it takes {known}"
        )
        raise Unsupported(message)
    dtypes.require_exact_enum(codec, field.dtype)
    return codec


def fill_of(field: Field, record: NDArray[Any] | None, codec: Codec) -> Any:
    """Return a field's part of the record that is the fill value; None without one.

    Raises
    ------
    Unsupported
        If a field with a bound is an array whose elements have different fill values.
    """
    if record is None or not field.is_number:
        return None
    values = np.asarray(field.of(record), dtype=dtypes.native(field.dtype)).reshape(-1)
    parts = np.ascontiguousarray(values).view(np.uint8).reshape(values.size, -1)
    if not codec.is_lossless and bool((parts != parts[:1]).any()):
        message = f"field {field.name!r}: its fill value has different elements; with a bound all must be the same"
        raise Unsupported(message)
    return values[0]


def record_of(value: object, dtype: np.dtype[Any]) -> NDArray[Any] | None:
    """Return a fill value as an array of one record without dimensions; None for None.

    Raises
    ------
    InvalidArgument
        If it is not one record of the type.
    """
    if value is None:
        return None
    try:
        record = np.array(value, dtype=dtype)
    except (TypeError, ValueError) as error:
        message = f"fill value {value!r} is not a record of {dtype}: {error}"
        raise InvalidArgument(message) from None
    if record.size != 1:
        message = f"one fill value is needed, got {record.size}"
        raise InvalidArgument(message)
    return record.reshape(())


def _walk(dtype: np.dtype[Any], path: tuple[str, ...], start: int) -> list[Field]:
    found: list[Field] = []
    for name in dtype.names or ():
        assert dtype.fields is not None
        member, offset = dtype.fields[name][:2]
        place, here = start + offset, (*path, name)
        if member.names is not None:
            found += _walk(member, here, place)
            continue
        base, shape = (member, ()) if member.subdtype is None else member.subdtype
        if member.itemsize == 0:
            continue
        if dtypes.code_of(base) is None:
            found.append(_bytes(".".join(here), here, place, member.itemsize, member))
        else:
            found.append(Field(".".join(here), here, place, member.itemsize, base, shape, True))
    return found


def _bytes(name: str, path: tuple[str, ...], offset: int, size: int, dtype: np.dtype[Any] | None = None) -> Field:
    return Field(name, path, offset, size, np.dtype(f"V{size}") if dtype is None else dtype, (), False)
