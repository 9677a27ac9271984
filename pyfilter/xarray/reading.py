# SPDX-License-Identifier: BSD-3-Clause
"""The stores that engine "pyfilter" reads with: xarray's own, with arrays of lazy.py for what pyfilter compressed."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Any, NamedTuple

from pyfilter import checking
from pyfilter._chunks import detached
from pyfilter.codecs.progressive import Progressive
from pyfilter.errors import InvalidArgument, PyfilterError, missing_extra
from pyfilter.xarray import stores
from pyfilter.xarray.lazy import AddressArray, AddressPlace, FileArray, FilePlace, How
from pyfilter.xarray.stores import H5netcdfStore, Netcdf4Store

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class Wanted(NamedTuple):
    """The user's request: a tolerated error (None: all stored bytes) for all variables or by name, and a device."""

    tolerance: float | Mapping[str, float] | None
    device: str | None

    def of(self, name: str, variable: Any) -> How:
        """Return how a variable of netCDF4 or h5netcdf, which pyfilter compressed, is read."""
        tolerance = self.tolerance if self.tolerance is None or isinstance(self.tolerance, float) else None
        if self.tolerance is not None and not isinstance(self.tolerance, float):
            tolerance = self.tolerance.get(name)
        if tolerance is not None and not is_progressive(variable):
            tolerance = None
        on_host = name in variable.dimensions or _is_time(variable)
        return How(tolerance, None if on_host else self.device)


class FileStore(Netcdf4Store):
    """netCDF4's store of a local file."""

    __slots__ = ("version", "wanted")

    def open_store_variable(self, name: str, var: Any) -> Any:
        """Return a variable to read."""
        variable = super(Netcdf4Store, self).open_store_variable(name, var)
        return stores.readable(self, variable, name, var, lambda name, store: self._array(name, var))

    def _array(self, name: str, variable: Any) -> Any:
        group = "/" + (self._group or "").strip("/")
        # netCDF-C renames a variable that is named like a dimension of its group but has other ones
        names = tuple(posixpath.join(group, form) for form in (f"_nc4_non_coord_{name}", name))
        return FileArray(name, self, FilePlace(self._filename, self.version, names), self.wanted.of(name, variable))

    def of_group(self, group: str) -> FileStore:
        """Return a store of another group."""
        found = type(self)(self._manager, group=group, mode=self._mode, lock=self.lock, autoclose=self.autoclose)
        found.version, found.wanted = self.version, self.wanted
        return found

    def progressive_variables(self) -> Iterator[str]:
        """Yield the names of the variables that can be read to a tolerance."""
        return (name for name, variable in self.ds.variables.items() if is_progressive(variable))


class ObjectStore(H5netcdfStore):
    """h5netcdf's store of a file at an address (``place``), or of a file object (None), which HDF5 reads."""

    __slots__ = ("place", "wanted")

    def open_store_variable(self, name: str, var: Any) -> Any:
        """Return a variable to read."""
        variable = super(H5netcdfStore, self).open_store_variable(name, var)
        return stores.readable(self, variable, name, var, lambda name, store: self._array(name, var))

    def _array(self, name: str, variable: Any) -> Any:
        return AddressArray(name, self, self.place, self.wanted.of(name, variable))

    def of_group(self, group: str) -> ObjectStore:
        """Return a store of another group."""
        found = type(self)(self._manager, group=group, mode=self._mode, lock=self.lock, autoclose=self.autoclose)
        found.place, found.wanted = self.place, self.wanted
        return found

    def progressive_variables(self) -> Iterator[str]:
        """Yield the names of the variables that can be read to a tolerance."""
        return (name for name, variable in self.ds.variables.items() if is_progressive(variable))


def open_path(path: str, group: str | None, wanted: Wanted) -> FileStore:
    """Return a store of a file that netCDF-C opens."""
    from xarray.backends.common import _normalize_path

    path = _normalize_path(path)
    store: FileStore = FileStore.open(path, group=group)
    try:
        version = detached.version_of(path)
    except OSError:  # not one file, such as a Zarr store: HDF5 reads no variable of it
        version = ()
    store.version, store.wanted = version, wanted
    return store


def open_object(target: Any, group: str | None, wanted: Wanted) -> ObjectStore:
    """Return a store of a file object, bytes, or a path where netCDF4 is not installed."""
    store: ObjectStore = ObjectStore.open(target, group=group)
    store.place, store.wanted = None, wanted
    return store


def open_address(address: str, group: str | None, wanted: Wanted, options: dict[str, Any]) -> ObjectStore:
    """Return a store of a file that fsspec reaches."""
    try:
        import fsspec
    except ImportError as error:
        raise missing_extra("fsspec", "remote") from error
    filesystem, path = fsspec.core.url_to_fs(address, **options)
    stream = filesystem.open(path, "rb", block_size=1 << 16)
    try:
        store: ObjectStore = ObjectStore.open(stream, group=group)
    except ValueError as error:
        message = f"{address} is no netCDF-4 or HDF5 file; engine netcdf4 reads OPeNDAP and other formats: {error}"
        raise InvalidArgument(message) from error
    store.place, store.wanted = AddressPlace(filesystem, path), wanted
    return store


def is_progressive(variable: Any) -> bool:
    """Whether pyfilter.Progressive compressed a variable of netCDF4 or h5netcdf."""
    try:
        return isinstance(checking.codec_of(variable), Progressive)
    except PyfilterError:  # the settings of a later release
        return False


def _is_time(variable: Any) -> bool:
    """Whether xarray decodes a variable to times or differences of times, which NumPy alone has."""
    attributes = variable.ncattrs() if hasattr(variable, "ncattrs") else list(variable.attrs)
    if "units" not in attributes:
        return False
    units = str(variable.getncattr("units") if hasattr(variable, "getncattr") else variable.attrs["units"])
    return " since " in units or units in ("days", "hours", "minutes", "seconds", "milliseconds", "microseconds")
