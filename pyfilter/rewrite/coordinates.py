# SPDX-License-Identifier: BSD-3-Clause
"""Finds the coordinates of a file: what must stay bit for bit, and what shows it.

Coordinates are HDF5's dimension scales (netCDF's coordinate variables), and datasets that attributes of CF and UGRID
name. A dataset's own attributes can also make it a coordinate: units of latitude, longitude or time, `standard_name`,
`axis`, `positive`. Files without such attributes are common, so a few plain names (lat, nav_lon, ...) count, too.
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

import h5py
import numpy as np

from pyfilter import checking

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: attributes of CF and UGRID that name other variables: places, cells, areas, and what these are computed from
NAMING_ATTRIBUTES = (
    "coordinates", "bounds", "climatology", "grid_mapping", "ancillary_variables", "cell_measures", "formula_terms",
    "node_coordinates", "face_coordinates", "edge_coordinates", "volume_coordinates", "nodes", "geometry",
)  # fmt: skip
# "area: cell_area", "a: sigma ps: surface_pressure": the words with a colon are no variables
_KEYED_ATTRIBUTES = ("cell_measures", "formula_terms")
_STANDARD_NAMES = frozenset(
    {
        "latitude", "longitude", "time", "grid_latitude", "grid_longitude", "projection_x_coordinate",
        "projection_y_coordinate", "projection_x_angular_coordinate", "projection_y_angular_coordinate",
        "forecast_reference_time", "forecast_period",
    }
)  # fmt: skip
_NAMES = frozenset({"lat", "lon", "latitude", "longitude", "nav_lat", "nav_lon", "xlat", "xlong", "time"})
_PLACE_UNITS = re.compile(r"degrees?_?(north|east|west|n|e|w)")  # without _ and s, "degreeS" would be plain degrees
_TIME_UNITS = re.compile(r"\S+\s+since\s+\S")
_NOT_A_COORDINATE = "_nc4_non_coord_"  # netCDF-4's name in HDF5 for a variable that shares one with a dimension


def reasons(file: h5py.File, found: Mapping[str, h5py.Dataset]) -> dict[str, str]:
    """Return the paths of all coordinates, and for each what shows that it is one.

    Parameters
    ----------
    file : h5py.File
        The file; attributes of its groups count.
    found : mapping
        Its datasets by path.

    Returns
    -------
    dict
        By path, a few words such as "dimension scale" or "named by coordinates of /t".
    """
    result: dict[str, str] = {}
    for path, dataset in found.items():
        if checking.text_attribute(dataset, "CLASS") == "DIMENSION_SCALE":
            result[path] = "dimension scale"
    for group in sorted({"/"} | {parent for path in found for parent in _parents(path)}):
        _add_named(result, file[group], group, found)
    for path, dataset in found.items():
        _add_named(result, dataset, path, found)
    for path, dataset in found.items():
        reason = _own_reason(path, dataset)
        if reason:
            result.setdefault(path, reason)
    return result


def _add_named(
    result: dict[str, str], holder: h5py.Group | h5py.Dataset, path: str, found: Mapping[str, h5py.Dataset]
) -> None:
    """Add what the attributes of a group or dataset name."""
    group = path if isinstance(holder, h5py.Group) else posixpath.dirname(path)
    whose = "the file" if path == "/" else path
    for attribute in NAMING_ATTRIBUTES:
        for word in re.split(r"[\s,]+", _text(holder, attribute)):
            if word.endswith(":") and attribute in _KEYED_ATTRIBUTES:
                continue
            named = _resolve(word.rstrip(":"), group, found)
            if named is not None and named != path:
                result.setdefault(named, f"named by {attribute} of {whose}")


def _own_reason(path: str, dataset: h5py.Dataset) -> str:
    """Return what a dataset says of itself that makes it a coordinate, "" where nothing does."""
    units = _text(dataset, "units").strip()
    if _PLACE_UNITS.fullmatch(units.casefold()) or _TIME_UNITS.match(units):
        return f"units {units}"
    standard = _text(dataset, "standard_name")
    if standard.split()[:1] and standard.split()[0] in _STANDARD_NAMES:
        return f"standard_name {standard}"
    if "axis" in dataset.attrs:
        return f"axis {_text(dataset, 'axis')}".strip()
    if _text(dataset, "_CoordinateAxisType"):
        return f"_CoordinateAxisType {_text(dataset, '_CoordinateAxisType')}"
    positive = _text(dataset, "positive").strip()
    # CMIP's fluxes and stresses have the attribute, too: for their sign, and with the attributes of data
    if positive.casefold() in ("up", "down") and not (
        {"cell_methods", "cell_measures"} & set(dataset.attrs) or re.search("flux|stress", standard)
    ):
        return f"positive {positive}"
    name = posixpath.basename(path).removeprefix(_NOT_A_COORDINATE)
    return f"the name {name}" if name.casefold() in _NAMES else ""


def _resolve(word: str, group: str, found: Mapping[str, h5py.Dataset]) -> str | None:
    """Return the path of what a word in an attribute names: from its group upwards, as CF has it."""
    if not word:
        return None
    for place in (group, *_parents(group)):
        path = posixpath.normpath(posixpath.join(place, word))
        for candidate in (path, posixpath.join(posixpath.dirname(path), _NOT_A_COORDINATE + posixpath.basename(path))):
            if candidate in found:
                return candidate
    return None


def _parents(path: str) -> Iterator[str]:
    """Yield the groups above a path, the nearest first, the root last."""
    while path not in ("/", ""):
        path = posixpath.dirname(path)
        yield path


def _text(holder: h5py.Group | h5py.Dataset, name: str) -> str:
    """Return a text attribute, several texts with spaces between; "" where there is none or it is no text."""
    single = checking.text_attribute(holder, name)
    if single:
        return single
    try:
        value = holder.attrs.get(name)
    except (OSError, TypeError):  # a type that h5py cannot read
        return ""
    if not isinstance(value, np.ndarray):
        return ""
    parts = [item.decode("utf-8", "replace") if isinstance(item, bytes) else item for item in value.reshape(-1)]
    return " ".join(part for part in parts if isinstance(part, str))
