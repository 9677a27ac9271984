# SPDX-License-Identifier: BSD-3-Clause
"""The user's request, and the datasets that each name, pattern or standard name means."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import h5py

from pyfilter import checking
from pyfilter.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyfilter.codecs.base import Codec
    from pyfilter.guarantees import Guarantee
    from pyfilter.regions import Region

Value = TypeVar("Value")


@dataclass(frozen=True)
class Rules:
    """The user's request.

    Attributes
    ----------
    default : Codec or None
        For every dataset that is not named; None leaves them as they are.
    named : mapping
        By dataset path or name: its codec, None to leave it as it is.
    listed, standard_names : mapping
        By name, path or pattern of a dataset, and by ``standard_name``, for all datasets not in ``named``: the same,
        but no entry has to be in the file, and datasets that cannot be compressed are copied unchanged.
    lossy_coordinates : bool
        Whether a lossy default also holds for coordinates; else they are kept bit for bit.
    integers : bool
        Whether named integers get HierarchicalDelta with the bound of a codec that does not take them.
    ranges : mapping
        By dataset path or name: the lowest and the highest value that are valid.
    regions : mapping
        By dataset path or name: parts with a tighter bound.
    guarantees : mapping
        By dataset path or name: all that holds besides the bound, in the place of the other rules.
    listed_ranges, listed_regions : mapping
        As ``ranges`` and ``regions``, by name, path, pattern or ``standard_name``; none has to be in the file.
    valid_range : bool
        Whether ranges that attributes state are held too.
    keep_sign : bool
        Whether zeros stay zeros and signs stay, with absolute bounds.
    choose : bool
        Whether each dataset gets the smallest alternative at its bound (alternatives.py), and none becomes larger; else
        the codecs that are named here.
    fast : bool
        With ``choose``: without the codec that is slow to write.
    """

    default: Codec | None = None
    named: Mapping[str, Codec | None] = field(default_factory=dict)
    listed: Mapping[str, Codec | None] = field(default_factory=dict)
    standard_names: Mapping[str, Codec | None] = field(default_factory=dict)
    lossy_coordinates: bool = False
    integers: bool = False
    choose: bool = False
    fast: bool = False
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    regions: Mapping[str, Sequence[Region]] = field(default_factory=dict)
    guarantees: Mapping[str, Guarantee] = field(default_factory=dict)
    listed_ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    listed_regions: Mapping[str, Sequence[Region]] = field(default_factory=dict)
    valid_range: bool = False
    keep_sign: bool = False


def listed(path: str, dataset: h5py.Dataset, rules: Rules) -> tuple[Codec | None, bool]:
    """Return the codec for a dataset that the user did not name, and whether its very name or standard name is listed.

    The closest counts: its path, its name, a pattern, its standard name, the default.
    """
    key, exact = _key(path, rules.listed)
    if key is not None:
        codec = rules.listed[key]
        return codec, exact or codec is None
    standard = checking.text_attribute(dataset, "standard_name")
    if standard in rules.standard_names:
        return rules.standard_names[standard], True
    return rules.default, False


def closest(path: str, dataset: h5py.Dataset, table: Mapping[str, Value]) -> Value | None:
    """Return what a table has for a dataset: by its path, its name, a pattern, its standard name; None for nothing."""
    key, _ = _key(path, table)
    return table.get(checking.text_attribute(dataset, "standard_name") if key is None else key)


def _key(path: str, table: Mapping[str, object]) -> tuple[str | None, bool]:
    """Return a table's closest key for a dataset: its path, its name, or a pattern; and whether it is no pattern."""
    name = path.rpartition("/")[2]
    for key in (path, path.lstrip("/"), name):
        if key in table:
            return key, True
    patterns = (key for key in table if fnmatch.fnmatchcase(name, key) or fnmatch.fnmatchcase(path, key))
    return next(patterns, None), False


def unused(keys: Iterable[str], file: h5py.File) -> list[str]:
    """Return the names, patterns and standard names that no dataset of a file has."""
    left = set(keys)
    for dataset in checking.datasets(file):
        path = str(dataset.name)
        spellings = (path, path.lstrip("/"), path.rpartition("/")[2], checking.text_attribute(dataset, "standard_name"))
        left -= {key for key in left if any(fnmatch.fnmatchcase(text, key) for text in spellings if text)}
    return sorted(left)


def match(file: h5py.File, name: str, found: Mapping[str, h5py.Dataset]) -> str:
    """Return the path of a dataset given by path (any of its links) or by its last name."""
    inside = file.get(name)
    if isinstance(inside, h5py.Dataset):
        place = checking.address(inside.id)
        path = next((path for path, dataset in found.items() if checking.address(dataset.id) == place), None)
        if path is not None:
            return path
    matches = [item for item in found if item.rpartition("/")[2] == name]
    if not matches:
        message = f"there is no dataset {name!r}; there are {', '.join(found) or 'none'}"
        raise InvalidArgument(message)
    if len(matches) > 1:
        message = f"{name!r} means {len(matches)} datasets ({', '.join(matches)}): give a path"
        raise InvalidArgument(message)
    return matches[0]
