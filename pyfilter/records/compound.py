# SPDX-License-Identifier: BSD-3-Clause
"""`Compound`: the codecs of a compound type's fields, as h5py takes them, and their cd_values."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pyfilter.codecs.base import RECORD_LAYOUT, RECORD_STAMP, Codec, FilterRefBase
from pyfilter.codecs.lossless import Lossless
from pyfilter.errors import InvalidArgument, Unsupported
from pyfilter.registry import registry

if TYPE_CHECKING:
    from collections.abc import Sequence

#: as many as h5py reads of a dataset
MOST_WORDS = 256
_MOST_NAME_BYTES = 0xFFFF


class Compound(FilterRefBase):
    """Codecs for the fields of a compound type (a NumPy structured array); other fields come back bit for bit.

    Parameters
    ----------
    fields : mapping of str to Codec
        The codec of each field that has one. A field of a compound in the compound is named with a dot, as
        "position.x"; "position" stands for all of its fields. Elements of a field that is an array share the codec.
    others : Lossless
        How all other fields are encoded, and bytes that belong to no field.

    Raises
    ------
    TypeError
        If a codec is none, or ``others`` is not `Lossless` (`pyfilter.errors.Unsupported`).
    ValueError
        If a name is empty or too long.

    Notes
    -----
    Each field's column is an array of its own: a relative bound is taken of the field's own range. Whether the fields
    exist, and are of types that their codecs take, is checked when a dataset or a frame is made.

    Examples
    --------
    >>> Compound({"x": Cuszp2(absolute=1e-3), "t": Lorenzo(relative=1e-4)})
    Compound({'x': Cuszp2(absolute=0.001), 't': Lorenzo(relative=0.0001)})
    """

    def __init__(self, fields: Mapping[str, Codec], *, others: Lossless | None = None) -> None:
        others = Lossless() if others is None else others
        if not isinstance(fields, Mapping):
            message = f"fields must be a mapping of names to codecs, got {type(fields).__name__}"
            raise Unsupported(message)
        for name, codec in fields.items():
            if not isinstance(name, str) or not 0 < len(name.encode()) <= _MOST_NAME_BYTES or "\0" in name:
                message = f"a field's name must be a text of 1 to {_MOST_NAME_BYTES} bytes, got {name!r:.60}"
                raise InvalidArgument(message)
            if not isinstance(codec, Codec):
                message = f"field {name!r} needs a codec, such as pyfilter.Cuszp2(absolute=1e-3); got {codec!r}"
                raise Unsupported(message)
        if not isinstance(others, Lossless):
            message = f"others must be Lossless(): fields that are not named come back bit for bit; got {others!r}"
            raise Unsupported(message)
        self._fields = MappingProxyType(dict(fields))
        self._others = others

    @property
    def fields(self) -> Mapping[str, Codec]:
        """The codec of each field that has one."""
        return self._fields

    @property
    def others(self) -> Lossless:
        """How all other fields are encoded."""
        return self._others

    @property
    def filter_id(self) -> int:
        """The id of the HDF5 filter."""
        return registry().filter_id

    @property
    def filter_options(self) -> tuple[int, ...]:
        """The cd_values that ask for these codecs (docs/cd_values.md, Records)."""
        words = [RECORD_LAYOUT, len(self._fields), self._others.filter_options[5]]
        for name, codec in self._fields.items():
            _, number, mode, low, high, parameters = codec.filter_options
            text = name.encode()
            padded = text + bytes(-len(text) % 4)
            words += [number | mode << 8 | len(text) << 16, low, high, parameters]
            words += struct.unpack(f"<{len(padded) // 4}I", padded)
        if len(words) > MOST_WORDS:
            message = f"the fields take {len(words)} words of cd_values, at most {MOST_WORDS} are allowed: name fewer"
            raise InvalidArgument(message)
        return tuple(words)

    @property
    def is_lossless(self) -> bool:
        """Whether every field comes back bit for bit."""
        return all(codec.is_lossless for codec in self._fields.values())

    def codec_of(self, field: str) -> Codec:
        """Return the codec of a field by its full name ("position.x"): its own, or that of a compound it is in."""
        found: Codec = self._others
        for name, codec in self._fields.items():
            if names_field(name, field):
                found = codec
        return found

    @classmethod
    def from_cd_values(cls, cd_values: Iterable[int]) -> Compound:
        """Return the codecs that cd_values stand for: as a user gives them, or as a file stores them.

        Raises
        ------
        InvalidArgument
            If the words are not of records, or name a codec that this release does not know.
        """
        words = [int(word) & 0xFFFFFFFF for word in cd_values]
        if not is_of_records(words):
            message = (
                f"these are no cd_values of records (word 0 must be {RECORD_LAYOUT} or {RECORD_STAMP}): {words[:8]}"
            )
            raise InvalidArgument(message)
        fields: dict[str, Codec] = {}
        others = Codec.from_cd_values((registry().cd_values_version, Lossless.spec().id, 0, 0, 0, _at(words, 2)))
        place = 3
        for _ in range(_at(words, 1)):
            head = _at(words, place)
            size = head >> 16
            settings = [_at(words, place + number) for number in (1, 2, 3)]
            codec = Codec.from_cd_values((registry().cd_values_version, head & 0xFF, head >> 8 & 0xFF, *settings))
            end = place + 4 + -(-size // 4)
            _at(words, end - 1)
            name = struct.pack(f"<{end - place - 4}I", *words[place + 4 : end])[:size].decode("utf-8", "replace")
            fields[name] = codec
            place = end
        assert isinstance(others, Lossless)
        return cls(fields, others=others)

    def __repr__(self) -> str:
        """Return the call that makes this object, defaults left out."""
        more = "" if self._others == Lossless() else f", others={self._others!r}"
        return f"Compound({dict(self._fields)!r}{more})"


def names_field(name: str, field: str) -> bool:
    """Whether a name is that of a field, or of a compound that the field is in."""
    return field == name or field.startswith(f"{name}.")


def is_of_records(words: Sequence[int]) -> bool:
    """Whether cd_values are those of records, in either form."""
    return len(words) > 0 and words[0] in (RECORD_LAYOUT, RECORD_STAMP)


def _at(words: Sequence[Any], place: int) -> int:
    if place >= len(words):
        message = f"cd_values of records end within a field: {len(words)} words"
        raise InvalidArgument(message)
    return int(words[place])
