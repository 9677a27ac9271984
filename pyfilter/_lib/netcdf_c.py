# SPDX-License-Identifier: BSD-3-Clause
"""Calls into netCDF-C, the library that the netCDF4 package is linked to and has loaded."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from pyfilter import errors

NC_GLOBAL = -1
NC_CONTIGUOUS = 1
NC_CHUNKED = 0
NC_ENFILTER_ABSENT = -136


class Netcdf:
    """The netCDF-C library that the netCDF4 package is linked to."""

    def __init__(self) -> None:
        try:
            from netCDF4 import _netCDF4
        except ImportError as error:
            raise errors.missing_extra("netCDF4", "netcdf") from error
        self._library = ctypes.CDLL(str(_netCDF4.__file__))
        self._library.nc_strerror.restype = ctypes.c_char_p

    def _call(self, name: str, *arguments: Any) -> None:
        """Call a function and raise NetcdfError for a status other than 0."""
        try:
            function = getattr(self._library, name)
        except AttributeError:
            message = f"the installed netCDF-C has no {name}; netCDF-C 4.7.4 or later is needed"
            raise errors.Unsupported(message) from None
        status = int(function(*arguments))
        if status != 0:
            text = self._library.nc_strerror(status)
            message = f"{name}: {text.decode('utf-8', 'replace') if text else 'unknown error'} ({status})"
            raise errors.NetcdfError(message, status)

    def def_var_filter(self, group: int, variable: int, filter_id: int, words: tuple[int, ...]) -> None:
        """Put a filter at the end of a variable's pipeline."""
        values = (ctypes.c_uint * len(words))(*words)
        self._call("nc_def_var_filter", group, variable, ctypes.c_uint(filter_id), ctypes.c_size_t(len(words)), values)

    def filter_ids(self, group: int, variable: int) -> list[int]:
        """Return the ids of a variable's filters in their order."""
        count = ctypes.c_size_t(0)
        self._call("nc_inq_var_filter_ids", group, variable, ctypes.byref(count), None)
        ids = (ctypes.c_uint * max(count.value, 1))()
        self._call("nc_inq_var_filter_ids", group, variable, ctypes.byref(count), ids)
        return list(ids[: count.value])

    def filter_words(self, group: int, variable: int, filter_id: int) -> list[int]:
        """Return the cd_values of one of a variable's filters."""
        count = ctypes.c_size_t(0)
        identity = ctypes.c_uint(filter_id)
        self._call("nc_inq_var_filter_info", group, variable, identity, ctypes.byref(count), None)
        words = (ctypes.c_uint * max(count.value, 1))()
        self._call("nc_inq_var_filter_info", group, variable, identity, ctypes.byref(count), words)
        return list(words[: count.value])

    def is_shuffled(self, group: int, variable: int) -> bool:
        """Whether the shuffle filter is set on a variable."""
        shuffle, deflate, level = ctypes.c_int(0), ctypes.c_int(0), ctypes.c_int(0)
        self._call(
            "nc_inq_var_deflate", group, variable, ctypes.byref(shuffle), ctypes.byref(deflate), ctypes.byref(level)
        )
        return bool(shuffle.value)

    def is_checksummed(self, group: int, variable: int) -> bool:
        """Whether fletcher32 is set on a variable."""
        value = ctypes.c_int(0)
        self._call("nc_inq_var_fletcher32", group, variable, ctypes.byref(value))
        return bool(value.value)

    def redef(self, dataset: int) -> None:
        """Enter define mode."""
        self._call("nc_redef", dataset)

    def enddef(self, dataset: int) -> None:
        """Leave define mode."""
        self._call("nc_enddef", dataset)

    def def_var(self, group: int, name: str, nc_type: int, dimensions: tuple[int, ...]) -> int:
        """Define a variable and return its id."""
        variable = ctypes.c_int(-1)
        ids = (ctypes.c_int * max(len(dimensions), 1))(*dimensions)
        self._call("nc_def_var", group, name.encode("utf-8"), nc_type, len(dimensions), ids, ctypes.byref(variable))
        return variable.value

    def var_type(self, group: int, variable: int) -> int:
        """Return a variable's ``nc_type``."""
        kind = ctypes.c_int(0)
        self._call("nc_inq_vartype", group, variable, ctypes.byref(kind))
        return kind.value

    def def_var_chunking(self, group: int, variable: int, chunks: tuple[int, ...]) -> None:
        """Set a variable's chunk shape."""
        sizes = (ctypes.c_size_t * len(chunks))(*chunks)
        self._call("nc_def_var_chunking", group, variable, NC_CHUNKED, sizes)

    def def_var_fill(self, group: int, variable: int, value: bytes | None) -> None:
        """Set a variable's fill value (bytes of one native value), or no filling at all for None."""
        if value is None:
            self._call("nc_def_var_fill", group, variable, 1, None)
        else:
            self._call("nc_def_var_fill", group, variable, 0, ctypes.c_char_p(value))

    def is_unfilled(self, group: int, variable: int) -> bool:
        """Whether nothing is written where a variable has no values (netCDF's mode "no fill")."""
        no_fill = ctypes.c_int(0)
        self._call("nc_inq_var_fill", group, variable, ctypes.byref(no_fill), None)
        return bool(no_fill.value)

    def copy_att(self, source: tuple[int, int], name: str, target: tuple[int, int]) -> None:
        """Copy an attribute between variables, each given as (dataset or group id, variable id)."""
        self._call("nc_copy_att", *source, name.encode("utf-8"), *target)

    def att_type(self, source: tuple[int, int], name: str) -> tuple[int, int]:
        """Return the ``nc_type`` of an attribute, and how many values it has."""
        kind, count = ctypes.c_int(0), ctypes.c_size_t(0)
        self._call("nc_inq_att", *source, name.encode("utf-8"), ctypes.byref(kind), ctypes.byref(count))
        return kind.value, count.value

    def copy_att_unchecked(self, source: tuple[int, int], name: str, target: tuple[int, int]) -> None:
        """As `copy_att`, of an atomic type: by another name first, so that netCDF does not ask if the type fits."""
        own, other = name.encode("utf-8"), b"pyfilter" + name.encode("utf-8")
        kind, count = self.att_type(source, name)
        values = ctypes.create_string_buffer(8 * max(count, 1))
        self._call("nc_get_att", *source, own, values)
        self._call("nc_put_att", *target, other, kind, ctypes.c_size_t(count), values)
        self._call("nc_rename_att", *target, other, own)


@cache
def library() -> Netcdf:
    """Return the one wrapper of netCDF-C.

    Raises
    ------
    MissingExtra
        If the netCDF4 package is not installed.
    """
    return Netcdf()
