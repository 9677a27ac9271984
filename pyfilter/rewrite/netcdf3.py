# SPDX-License-Identifier: BSD-3-Clause
"""netCDF-3 files (classic, 64-bit offset, 64-bit data) turned into netCDF-4 ones by netCDF itself."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pyfilter import _foreign
from pyfilter.netcdf import require_netcdf4

if TYPE_CHECKING:
    from pathlib import Path

_SLAB_BYTES = 64 << 20
_UNSIGNED_OR_64_BITS = ("NETCDF3_64BIT_DATA", "NETCDF3_CDF5")


def is_netcdf3(path: Path) -> bool:
    """Whether a file starts as netCDF-3 files do."""
    with path.open("rb") as file:
        start = file.read(4)
    return len(start) == 4 and start[:3] == b"CDF" and start[3] in (1, 2, 5)


def convert(source: Path, target: Path) -> None:
    """Write a netCDF-3 file as an uncompressed netCDF-4 one (of the classic model where that holds its types).

    Raises
    ------
    MissingExtra
        If netCDF4 is not installed.
    """
    netCDF4 = require_netcdf4()
    with netCDF4.Dataset(str(source)) as before:
        large = before.data_model in _UNSIGNED_OR_64_BITS
        with netCDF4.Dataset(str(target), "w", format="NETCDF4" if large else "NETCDF4_CLASSIC") as after:
            _define(before, after)
        with netCDF4.Dataset(str(target), "r+") as after:
            _fill(before, after)


def _define(before: Any, after: Any) -> None:
    """Define dimensions, variables and attributes in their order; netCDF4's own calls would put _FillValue first."""
    library = _foreign.netcdf()
    for name, dimension in before.dimensions.items():
        after.createDimension(name, None if dimension.isunlimited() else len(dimension))
    old, new = before._grpid, after._grpid
    classic = after.data_model != "NETCDF4"
    if classic:
        library.redef(new)
    for name in before.ncattrs():
        library.copy_att((old, _foreign.NC_GLOBAL), name, (new, _foreign.NC_GLOBAL))
    for key, variable in before.variables.items():
        dimensions = tuple(after.dimensions[name]._dimid for name in variable.dimensions)
        number = library.def_var(new, key, library.var_type(old, variable._varid), dimensions)
        for name in variable.ncattrs():
            library.copy_att((old, variable._varid), name, (new, number))
    if classic:
        library.enddef(new)


def _fill(before: Any, after: Any) -> None:
    """Copy the values, as they are stored."""
    for dataset in (before, after):
        dataset.set_auto_maskandscale(False)
        dataset.set_auto_chartostring(False)
    for key, variable in before.variables.items():
        copy = after.variables[key]
        if variable.ndim == 0:
            copy[...] = variable[...]
            continue
        row = max(math.prod(variable.shape[1:]) * variable.dtype.itemsize, 1)
        step = max(_SLAB_BYTES // row, 1)
        for start in range(0, variable.shape[0], step):
            part = slice(start, min(start + step, variable.shape[0]))
            copy[part] = variable[part]
