# SPDX-License-Identifier: BSD-3-Clause
"""Codecs as JSON: by names in Zarr's format 3, by cd_values in format 2, where netCDF-C (NCZarr) reads them too.

    {"codec": "lorenzo", "absolute": 0.01, "predictor": "auto", ..., "fill_value": 1e20}
    {"cd_values": [1, 3, 1, 1202590843, 1065646817, 0], "fill_value": 1e20}

Either form is read everywhere. ``fill_value`` may be missing. Without a codec a configuration decodes only: frames
describe themselves.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from pyfilter.codecs import CODECS
from pyfilter.codecs.base import Codec
from pyfilter.errors import InvalidArgument, Unsupported
from pyfilter.records import Compound
from pyfilter.registry import registry

if TYPE_CHECKING:
    from collections.abc import Mapping

#: the codec's name in both formats
NAME = registry().filter_name
_WORDS, _CODEC, _FILL = "cd_values", "codec", "fill_value"
# JSON has no numbers for these; Zarr's format 3 names them so
_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def require_codec(codec: object) -> None:
    """Refuse objects that are neither a codec nor None.

    Raises
    ------
    Unsupported
        With an example of a codec (a TypeError).
    """
    if isinstance(codec, Compound):
        message = f"Zarr arrays of records are not compressed: write each field as an array of its own; got {codec!r}"
        raise Unsupported(message)
    if codec is not None and not isinstance(codec, Codec):
        message = f"a codec is needed, such as pyfilter.Cuszp2(absolute=1e-3); got {codec!r}"
        raise Unsupported(message)


def codec_to_write_with(codec: Codec | None) -> Codec:
    """Return the codec.

    Raises
    ------
    InvalidArgument
        If there is none: a configuration that only decodes.
    """
    if codec is None:
        message = "this pyfilter codec has no configuration, so it only decodes: give it a codec to write with"
        raise InvalidArgument(message)
    return codec


def require_name(data: Mapping[str, Any], name: str) -> None:
    """Refuse Zarr's metadata of another codec.

    Raises
    ------
    InvalidArgument
        If the metadata name another one.
    """
    if data.get("name") != name:
        message = f"the codec's name must be {name!r}, got {data.get('name')!r}"
        raise InvalidArgument(message)


def plain_fill(value: object) -> int | float | None:
    """Return a fill value as a number of Python, None for none.

    Raises
    ------
    InvalidArgument
        If it is not one integer or float.
    """
    if value is None:
        return None
    if isinstance(value, str) and value in _NOT_FINITE:
        return _NOT_FINITE[value]
    given = np.asarray(value)
    if given.size != 1 or given.dtype.kind not in "fiu":
        message = f"fill_value must be one number, or one of {', '.join(map(repr, _NOT_FINITE))}; got {value!r}"
        raise InvalidArgument(message)
    plain: int | float = given.reshape(()).item()
    return math.nan if plain != plain else plain  # one NaN, which is equal to itself in tuples


def by_name(codec: Codec | None, fill: float | None) -> dict[str, Any]:
    """Return the configuration with the codec's fields by their names, for Zarr's format 3."""
    found: dict[str, Any] = {}
    if codec is not None:
        dataclass: Any = codec  # each codec is one
        fields = {field.name: getattr(codec, field.name) for field in dataclasses.fields(dataclass)}
        found = {_CODEC: codec.codec_name, **{name: value for name, value in fields.items() if value is not None}}
    return found | _fill_entry(fill)


def by_words(codec: Codec | None, fill: float | None) -> dict[str, Any]:
    """Return the configuration with cd_values, for Zarr's format 2 and netCDF-C."""
    found: dict[str, Any] = {} if codec is None else {_WORDS: list(codec.filter_options)}
    return found | _fill_entry(fill)


def _fill_entry(fill: float | None) -> dict[str, Any]:
    if fill is None:
        return {}
    if isinstance(fill, float) and not math.isfinite(fill):
        return {_FILL: "NaN" if math.isnan(fill) else "Infinity" if fill > 0 else "-Infinity"}
    return {_FILL: fill}


def parse(configuration: Mapping[str, Any]) -> tuple[Codec | None, int | float | None]:
    """Return the codec and the fill value of a configuration in either form.

    Raises
    ------
    InvalidArgument
        If a key, the codec's name or a value is not one of this release; the text names it and the known ones.
    """
    given = dict(configuration)
    fill = plain_fill(given.pop(_FILL, None))
    if _WORDS in given:
        words = given.pop(_WORDS)
        if given:
            message = f"{_WORDS} already describe the codec: leave out {', '.join(map(repr, given))}"
            raise InvalidArgument(message)
        if not isinstance(words, (list, tuple)):
            message = f"{_WORDS} must be a list of integers, got {words!r}"
            raise InvalidArgument(message)
        return Codec.from_cd_values(words), fill
    if _CODEC not in given:
        if given:
            message = f"{', '.join(map(repr, given))} need {_CODEC!r}, the codec's name"
            raise InvalidArgument(message)
        return None, fill
    name = given.pop(_CODEC)
    if not isinstance(name, str) or name not in CODECS:
        message = f"{_CODEC} must be one of {', '.join(map(repr, sorted(CODECS)))}; got {name!r}"
        raise InvalidArgument(message)
    dataclass: Any = CODECS[name]
    known = [field.name for field in dataclasses.fields(dataclass)]
    unknown = [key for key in given if key not in known]
    if unknown:
        message = f"{name} has no {', '.join(map(repr, unknown))}; it has {', '.join(known)}"
        raise InvalidArgument(message)
    codec: Codec = dataclass(**given)
    return codec, fill
