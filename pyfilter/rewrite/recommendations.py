# SPDX-License-Identifier: BSD-3-Clause
"""Tables of bounds in the format of the compression-recommendations project: YAML or JSON, for ``--config``.

A table is a list of recommendations. Each has filters, all of which must match a variable, and requirements, all of
which must hold. Requirements that a bound or a guarantee of ours can keep are taken over. A variable with any other
requirement (isovalues, two bounds of different types) is kept bit for bit, which keeps them all. No variable of a file
states a level or a tag, so filters on them are left out. The strictest of all recommendations for a name counts.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyfilter.codecs import Auto, Codec, Lossless
from pyfilter.errors import InvalidArgument, missing_extra

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SUFFIXES = (".yaml", ".yml", ".json")
# a bound on the largest error holds one on the mean
_MODES = {
    "max-pointwise-absolute-error-bound": "absolute",
    "mean-absolute-error-bound": "absolute",
    "max-pointwise-relative-error-bound": "pointwise_relative",
    "mean-relative-error-bound": "pointwise_relative",
    "max-pointwise-range-relative-error-bound": "relative",
    "mean-range-relative-error-bound": "relative",
}
_NAMES = {"cf-standard-name": "standard", "cf-short-name": "name", "grib-short-name": "name"}
_CONDITIONS = ("level-kind", "level-value", "tag")


@dataclass
class Wanted:
    """The requirements of a variable: bounds by their type, limits, and whether only equal bits meet them."""

    bounds: dict[str, float] = field(default_factory=dict)
    low: float = -math.inf
    high: float = math.inf
    exact: bool = False

    def add(self, other: Wanted) -> None:
        """Ask for more: the strictest of both."""
        for mode, bound in other.bounds.items():
            self.bounds[mode] = min(bound, self.bounds.get(mode, math.inf))
        self.low, self.high = max(self.low, other.low), min(self.high, other.high)
        self.exact |= other.exact

    @property
    def codec(self) -> Codec | None:
        """Return the codec, None where no bound is stated."""
        if self.exact or len(self.bounds) > 1 or 0.0 in self.bounds.values() or self.low > self.high:
            return Lossless()
        bounds: dict[str, Any] = dict(self.bounds)
        return Auto(**bounds) if bounds else None


def load(path: Path) -> tuple[dict[str, Wanted], dict[str, Wanted]]:
    """Read a table.

    Returns
    -------
    names, standard_names : dict
        The requirements, by variable name and by ``standard_name``.

    Raises
    ------
    InvalidArgument
        If it is no such table.
    MissingExtra
        If it is YAML and PyYAML is not installed.
    """
    found: dict[str, dict[str, Wanted]] = {"name": {}, "standard": {}}
    table = _parsed(path)
    entries = table.get("recommendations") if isinstance(table, dict) else None
    if not isinstance(entries, list):
        message = f"{path} must have a list of recommendations, each with filters and requirements"
        raise InvalidArgument(message)
    for number, entry in enumerate(entries, 1):
        where = f"{path}, recommendation {number}"
        filters, requirements = (_items(entry, key, where) for key in ("filters", "requirements"))
        names = _names({"kind": "all", "filters": filters}, where)
        wanted = _wanted({"kind": "all", "requirements": requirements}, where)
        for kind, name in names or ():
            found[kind].setdefault(name, Wanted()).add(wanted)
    return found["name"], found["standard"]


def _parsed(path: Path) -> Any:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        try:
            return json.loads(text)
        except ValueError as error:
            message = f"{path} is no JSON file: {error}"
            raise InvalidArgument(message) from error
    try:
        yaml = importlib.import_module("yaml")
    except ImportError as error:
        raise missing_extra("PyYAML", "yaml") from error
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        message = f"{path} is no YAML file: {error}"
        raise InvalidArgument(message) from error


def _items(entry: Any, key: str, where: str) -> list[Mapping[str, Any]]:
    items = entry.get(key) if isinstance(entry, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) and "kind" in item for item in items):
        message = f"{where}: {key} must be a list of tables with a kind"
        raise InvalidArgument(message)
    return items


def _names(item: Mapping[str, Any], where: str) -> set[tuple[str, str]] | None:
    """Return the names that a filter lets through, with their kind; None where it says nothing of names."""
    kind = item["kind"]
    if kind in _NAMES:
        return {(_NAMES[kind], str(item.get("value", "")))}
    if kind in _CONDITIONS:
        return None
    if kind == "not":
        return set()  # the values that it lets through cannot be listed
    if kind not in ("any", "all"):
        known = ", ".join((*_NAMES, *_CONDITIONS, "any", "all", "not"))
        message = f"{where}: filters are {known}; got {kind!r}"
        raise InvalidArgument(message)
    parts = [part for inner in _items(item, "filters", where) if (part := _names(inner, where)) is not None]
    if not parts:
        return None
    return set.union(*parts) if kind == "any" else set.intersection(*parts)


def _wanted(item: Mapping[str, Any], where: str) -> Wanted:
    """Return what a requirement asks for."""
    kind = item["kind"]
    if kind in _MODES:
        return Wanted({_MODES[kind]: _number(item, "value", where)})
    if kind == "data-limits":
        low, high = (
            _number(item, key, where, negative=True) if item.get(key) is not None else limit
            for key, limit in (("minimum", -math.inf), ("maximum", math.inf))
        )
        return Wanted(low=low, high=high)
    if kind == "all":
        found = Wanted()
        for inner in _items(item, "requirements", where):
            found.add(_wanted(inner, where))
        return found
    if kind == "any":  # one of them is enough: the first that needs no equal bits
        ways = [_wanted(inner, where) for inner in _items(item, "requirements", where)]
        return next((way for way in ways if way.codec is None or not way.codec.is_lossless), Wanted(exact=True))
    return Wanted(exact=True)  # lossless, isovalue, missing-value, and what later versions add


def _number(item: Mapping[str, Any], key: str, where: str, *, negative: bool = False) -> float:
    value = item.get(key)
    number = math.nan
    if isinstance(value, (int, float, str)) and not isinstance(value, bool):
        with contextlib.suppress(ValueError):
            number = float(value)  # YAML 1.1 reads 1e-07 as a text
    if not math.isfinite(number) or (number < 0 and not negative):
        sign = "" if negative else " of 0 or more"
        message = f"{where}: {key} of {item['kind']} must be a number{sign}, got {value!r}"
        raise InvalidArgument(message)
    return number
