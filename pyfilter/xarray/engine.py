# SPDX-License-Identifier: BSD-3-Clause
"""The engine "pyfilter" of ``xarray.open_dataset``, by which a process that lets xarray choose knows the filter.

Where no engine is named, xarray imports those of all installed packages to choose one: pyfilter among them, so that
engines netcdf4 and h5netcdf can read what it compressed. The engine itself is for data that is opened here and read in
other processes, which it has import pyfilter.
"""

from __future__ import annotations

from typing import Any

from xarray.backends import BackendEntrypoint, StoreBackendEntrypoint

from pyfilter import plugin
from pyfilter.errors import MissingExtra
from pyfilter.netcdf import require_netcdf4


class PyfilterBackendEntrypoint(BackendEntrypoint):  # type: ignore[misc]
    """Opens netCDF-4 and HDF5 files as engine netcdf4 does, or h5netcdf where netCDF4 is not installed.

    A process that the lazy data is sent to imports pyfilter.
    """

    description = "Open netCDF-4 files, in any process that the data is sent to, with pyfilter's filter"
    url = "https://docs.xarray.dev/en/stable/user-guide/io.html"

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        mask_and_scale: bool = True,
        decode_times: Any = True,
        concat_characters: bool = True,
        decode_coords: Any = True,
        drop_variables: Any = None,
        use_cftime: Any = None,
        decode_timedelta: Any = None,
        group: str | None = None,
    ) -> Any:
        """Open a file, or a group of it."""
        from pyfilter.xarray import stores

        try:
            require_netcdf4()
            engine = "netcdf4" if isinstance(filename_or_obj, str) or hasattr(filename_or_obj, "__fspath__") else ""
        except MissingExtra:
            engine = ""
        plugin.refresh()
        store = stores.STORES[engine or "h5netcdf"].open(filename_or_obj, group=group)
        try:
            return StoreBackendEntrypoint().open_dataset(
                store,
                mask_and_scale=mask_and_scale,
                decode_times=decode_times,
                concat_characters=concat_characters,
                decode_coords=decode_coords,
                drop_variables=drop_variables,
                use_cftime=use_cftime,
                decode_timedelta=decode_timedelta,
            )
        except BaseException:
            store.close()
            raise
