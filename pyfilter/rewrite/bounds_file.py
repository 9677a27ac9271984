# SPDX-License-Identifier: BSD-3-Clause
"""Files of bounds, one for many variables and many files: ``bounds.toml``.

    default = { relative = 1e-4 }

    [variables]
    "tas*" = { absolute = 0.01 }
    pr = "pointwise_relative:1e-3"
    mask = "lossless"

    [standard_names]
    air_temperature = { absolute = 0.01, codec = "lorenzo" }

    [ranges]
    cloud_area_fraction = [0, 1]

    [regions]
    tas = ["0.001@0:10,:,20:40", "0@/land"]

A name or path goes before a pattern, a pattern before a ``standard_name``, that before the default.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyfilter.errors import InvalidArgument
from pyfilter.regions import parse_region
from pyfilter.rewrite import recommendations, wishes

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from pyfilter.codecs.base import Codec
    from pyfilter.regions import Region

_TABLES = ("variables", "standard_names", "ranges", "regions")


@dataclass(frozen=True)
class BoundsFile:
    """The contents of a file of bounds.

    Attributes
    ----------
    default : Codec or None
        For variables that nothing else names; None leaves them as they are.
    variables, standard_names : mapping
        By name, path or pattern of a variable, and by ``standard_name``: a codec, None to leave variables as they are.
    ranges, regions : mapping
        By name, path, pattern or ``standard_name``: valid limits (infinite for none), and parts with a tighter bound.
    shared : bool
        Whether it is a community's table, which names much that no input has.
    """

    default: Codec | None = None
    variables: Mapping[str, Codec | None] = field(default_factory=dict)
    standard_names: Mapping[str, Codec | None] = field(default_factory=dict)
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    regions: Mapping[str, Sequence[Region]] = field(default_factory=dict)
    shared: bool = False


def load(path: Path) -> BoundsFile:
    """Read a file of bounds, TOML, or a table of recommendations (recommendations.py), YAML or JSON.

    Raises
    ------
    InvalidArgument
        If it is neither, or an entry is no bound.
    OSError
        If it cannot be read.
    """
    if path.suffix in recommendations.SUFFIXES:
        return _shared(path)
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        message = f"{path} is no TOML file: {error}"
        raise InvalidArgument(message) from error
    for key, value in found.items():
        if key not in ("default", *_TABLES) or (key in _TABLES and not isinstance(value, dict)):
            message = f"{path}: known are default = ... and [{'], ['.join(_TABLES)}]; got {key} = {value!r}"
            raise InvalidArgument(message)
    default = found.get("default")
    tables: list[dict[str, Codec | None]] = [
        {name: wishes.from_table(wish, f"{path}, {table}: {name}") for name, wish in found.get(table, {}).items()}
        for table in _TABLES[:2]
    ]
    ranges = {name: _range(pair, f"{path}, ranges: {name}") for name, pair in found.get("ranges", {}).items()}
    regions = {name: _regions(texts, f"{path}, regions: {name}") for name, texts in found.get("regions", {}).items()}
    default = None if default is None else wishes.from_table(default, f"{path}: default")
    return BoundsFile(default, tables[0], tables[1], ranges, regions)


def _shared(path: Path) -> BoundsFile:
    names, standard_names = recommendations.load(path)
    tables = [
        {name: wanted.codec for name, wanted in table.items() if wanted.codec is not None}
        for table in (names, standard_names)
    ]
    ranges = {
        name: (item.low, item.high) for name, item in {**standard_names, **names}.items() if item.low <= item.high
    }
    return BoundsFile(None, tables[0], tables[1], ranges, shared=True)


def _range(pair: Any, where: str) -> tuple[float, float]:
    numbers = isinstance(pair, list) and all(type(item) in (int, float) for item in pair)
    if not numbers or len(pair) != 2 or not pair[0] <= pair[1]:
        message = f"{where} must be [LOW, HIGH], -inf or inf for no limit; got {pair!r}"
        raise InvalidArgument(message)
    return float(pair[0]), float(pair[1])


def _regions(texts: Any, where: str) -> list[Region]:
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        message = f'{where} must be a list of texts, such as ["0.001@0:10,:"]; got {texts!r}'
        raise InvalidArgument(message)
    return [parse_region(text) for text in texts]


def dumps(entries: Iterable[tuple[str, Mapping[str, Any], str]], heading: str = "") -> str:
    """Return the text of a file of bounds.

    Parameters
    ----------
    entries : iterable
        Of each variable its path, its table (such as ``{"absolute": 0.1}``) and a comment; an empty one for none.
    heading : str
        Comment lines for its beginning.
    """
    lines = [f"# {line}" for line in heading.splitlines()]
    lines += ["", "[variables]"] if lines else ["[variables]"]
    for name, table, comment in entries:
        inner = ", ".join(f"{key} = {_value(value)}" for key, value in table.items())
        lines.append(f"{_quoted(name)} = {{ {inner} }}" + (f"  # {comment}" if comment else ""))
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    return _quoted(value) if isinstance(value, str) else repr(value)


def _quoted(text: str) -> str:
    """Return a TOML text: JSON's escapes are a part of TOML's, which also wants one for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
