# SPDX-License-Identifier: BSD-3-Clause
"""netCDF-3 files (classic, 64-bit offset, 64-bit data) turned into netCDF-4 ones by netCDF itself."""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING, Any

from pyfilter._lib import netcdf_c
from pyfilter.errors import NetcdfError
from pyfilter.netcdf import require_netcdf4

if TYPE_CHECKING:
    from collections.abc import Iterator
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
    NetcdfError
        If netCDF-C refuses something; the text names the variable and the attribute.
    OSError
        If values cannot be read or written.
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
    library = netcdf_c.library()
    for name, dimension in before.dimensions.items():
        after.createDimension(name, None if dimension.isunlimited() else len(dimension))
    old, new = before._grpid, after._grpid
    classic = after.data_model != "NETCDF4"
    if classic:
        library.redef(new)
    for name in before.ncattrs():
        with _naming(f"attribute {name} of the file"):
            library.copy_att((old, netcdf_c.NC_GLOBAL), name, (new, netcdf_c.NC_GLOBAL))
    for key, variable in before.variables.items():
        dimensions = tuple(after.dimensions[name]._dimid for name in variable.dimensions)
        with _naming(f"variable {key}"):
            number = library.def_var(new, key, library.var_type(old, variable._varid), dimensions)
        for name in variable.ncattrs():
            with _naming(f"attribute {name} of variable {key}"):
                _copy_attribute(library, (old, variable._varid), name, (new, number))
    if classic:
        library.enddef(new)


def _copy_attribute(library: Any, source: tuple[int, int], name: str, target: tuple[int, int]) -> None:
    """Copy an attribute; a _FillValue as it is, too, where netCDF-4 would refuse it.

    It asks for one value of the variable's type. netCDF-3 files of other writers also have NaN of integers, text, ...
    """
    if name == "_FillValue" and library.att_type(source, name) != (library.var_type(*source), 1):
        library.copy_att_unchecked(source, name, target)
    else:
        library.copy_att(source, name, target)


@contextlib.contextmanager
def _naming(what: str) -> Iterator[None]:
    """Add the file, variable or attribute to the text of netCDF's errors."""
    try:
        yield
    except NetcdfError as error:
        message = f"{what} cannot be converted to netCDF-4: {error}"
        raise NetcdfError(message, error.code) from error
    except (RuntimeError, OSError) as error:
        message = f"{what} cannot be converted to netCDF-4: {error}"
        raise OSError(message) from error


def _fill(before: Any, after: Any) -> None:
    """Copy the values, as they are stored."""
    for dataset in (before, after):
        dataset.set_auto_maskandscale(False)
        dataset.set_auto_chartostring(False)
    for key, variable in before.variables.items():
        with _naming(f"variable {key}"):
            _copy_values(variable, after.variables[key])


def _copy_values(variable: Any, copy: Any) -> None:
    if variable.ndim == 0:
        copy[...] = variable[...]
        return
    row = max(math.prod(variable.shape[1:]) * variable.dtype.itemsize, 1)
    step = max(_SLAB_BYTES // row, 1)
    for start in range(0, variable.shape[0], step):
        part = slice(start, min(start + step, variable.shape[0]))
        copy[part] = variable[part]
