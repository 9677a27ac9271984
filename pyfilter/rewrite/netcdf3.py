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
            _copy(before, after)


def _copy(before: Any, after: Any) -> None:
    library = _foreign.netcdf()
    for dataset in (before, after):
        dataset.set_auto_maskandscale(False)
        dataset.set_auto_chartostring(False)
    for name, dimension in before.dimensions.items():
        after.createDimension(name, None if dimension.isunlimited() else len(dimension))
    classic = after.data_model != "NETCDF4"
    created: dict[str, Any] = {}
    for name, variable in before.variables.items():
        fill = variable.getncattr("_FillValue") if "_FillValue" in variable.ncattrs() else None
        created[name] = after.createVariable(name, variable.dtype.newbyteorder("="), variable.dimensions, fill_value=fill)
    if classic:
        library.redef(after._grpid)
    for name in before.ncattrs():
        library.copy_att((before._grpid, _foreign.NC_GLOBAL), name, (after._grpid, _foreign.NC_GLOBAL))
    for key, variable in before.variables.items():
        for name in variable.ncattrs():
            if name != "_FillValue":
                library.copy_att((before._grpid, variable._varid), name, (after._grpid, created[key]._varid))
    if classic:
        library.enddef(after._grpid)
    for key, variable in before.variables.items():
        copy = created[key]
        copy.set_auto_maskandscale(False)
        copy.set_auto_chartostring(False)
        if variable.ndim == 0:
            copy[...] = variable[...]
            continue
        row = max(math.prod(variable.shape[1:]) * variable.dtype.itemsize, 1)
        step = max(_SLAB_BYTES // row, 1)
        for start in range(0, variable.shape[0], step):
            part = slice(start, min(start + step, variable.shape[0]))
            copy[part] = variable[part]
