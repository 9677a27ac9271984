# SPDX-License-Identifier: BSD-3-Clause
"""The request for a variable, as text (``lorenzo:absolute:0.1``) or as a table of a TOML file, made a codec."""

from __future__ import annotations

import dataclasses
import math
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pyfilter.codecs import CODECS, Auto, Codec, Lossless
from pyfilter.errors import InvalidArgument
from pyfilter.registry import registry

if TYPE_CHECKING:
    from collections.abc import Mapping

BOUNDS = tuple(mode for mode in registry().bounds if mode != "none")
#: what a text may be, for messages
FORMS = f"{', '.join(f'{mode}:X' for mode in BOUNDS)}, lossless or none"
_CODEC = "codec"


def from_text(
    text: str, where: str, name: str | None = None, parameters: Mapping[str, Any] = MappingProxyType({})
) -> Codec | None:
    """Return the codec of a wish: MODE:X, CODEC:MODE:X, lossless; None for "none".

    Parameters
    ----------
    text : str
        The wish.
    where : str
        Where it stands, for messages.
    name : str, optional
        The codec where the wish names none; without it `Auto`.
    parameters : mapping, optional
        Parameters for that codec.

    Raises
    ------
    InvalidArgument
        If it is no wish, or its codec does not take its bound.
    """
    if text == "none":
        return None
    if text == Lossless.codec_name:
        return Lossless(**_own(Lossless, parameters))
    head, colon, rest = text.partition(":")
    if colon and head in CODECS and ":" in rest:
        name, text, parameters = head, rest, {}
    kind, colon, number = text.partition(":")
    mode = kind.replace("-", "_")
    bound = _number(number)
    if mode not in BOUNDS or not colon or math.isnan(bound):
        message = f"{where} must be {FORMS}, with a codec in front if need be (lorenzo:absolute:X); got {text!r}"
        raise InvalidArgument(message)
    return _make(name, mode, bound, parameters, where)


def from_table(table: Any, where: str) -> Codec | None:
    """Return the codec of a value in a TOML file: a text as in `from_text`, or a table of a bound, codec, parameters.

    Raises
    ------
    InvalidArgument
        If it is none of these.
    """
    if isinstance(table, str):
        return from_text(table, where)
    if not isinstance(table, dict):
        message = f"{where} must be a text ({FORMS}) or a table such as {{ absolute = 0.1 }}; got {table!r}"
        raise InvalidArgument(message)
    modes = [mode for mode in BOUNDS if mode in table]
    name = table.get(_CODEC)
    if name is not None and name not in CODECS:
        message = f"{where}: codec must be one of {', '.join(CODECS)}; got {name!r}"
        raise InvalidArgument(message)
    parameters = {key: value for key, value in table.items() if key not in (*modes, _CODEC)}
    if name == Lossless.codec_name and not modes:
        return Lossless(**_known(Lossless, parameters, where))
    if len(modes) != 1:
        message = f"{where} must have one of {', '.join(BOUNDS)}; got {', '.join(modes) or 'none of them'}"
        raise InvalidArgument(message)
    value = table[modes[0]]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        message = f"{where}: {modes[0]} must be a number; got {value!r}"
        raise InvalidArgument(message)
    return _make(name, modes[0], value, parameters, where)


def _make(name: str | None, mode: str, bound: float, parameters: Mapping[str, Any], where: str) -> Codec:
    cls = Auto if name is None else CODECS[name]
    limits: dict[str, Any] = {mode: bound}
    if mode not in cls.spec().bounds:
        takers = [other for other, its in CODECS.items() if mode in its.spec().bounds]
        message = f"{where}: {cls.codec_name} takes no bound {mode}; {', '.join(takers)} do"
        raise InvalidArgument(message)
    return cls(**limits, **_known(cls, parameters, where))


def _known(cls: type[Codec], parameters: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the given parameters; the codec must have all of them."""
    given = {key: value for key, value in parameters.items() if value is not None}
    unknown = [key for key in given if key not in fields_of(cls)]
    if unknown:
        own = ", ".join(sorted(fields_of(cls) - set(BOUNDS))) or "none"
        message = f"{where}: {unknown[0]} is no parameter of {cls.codec_name}; it has {own}"
        raise InvalidArgument(message)
    return given


def _own(cls: type[Codec], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that a codec has."""
    return {key: value for key, value in parameters.items() if key in fields_of(cls) and value is not None}


def fields_of(cls: type[Codec]) -> set[str]:
    """Return the bounds and parameters that a codec has."""
    dataclass: Any = cls  # each codec is one
    return {field.name for field in dataclasses.fields(dataclass)}


def _number(text: str) -> float:
    """Return a number, NaN where there is none; large integers stay integers: the codec rounds them, down."""
    try:
        return int(text) if text.isdecimal() else float(text)
    except ValueError:
        return math.nan
