# SPDX-License-Identifier: BSD-3-Clause
"""xarray's stores of netCDF4 and h5netcdf, which here give a new variable its codec and warn if one is lost.

The codec comes in the variable's encoding, under `KEY`. For everything else these are xarray's own stores: threads,
processes and dask's clusters write through them as they do there. The arrays of compressed variables are classes of
this module. So a process that unpickles one, such as a worker of dask started before pyfilter was imported, imports
pyfilter and knows the filter. The stores themselves are pickled as xarray's, so that a process without pyfilter can
work on uncompressed variables.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from xarray.backends import H5NetCDFStore, NetCDF4DataStore
from xarray.backends.h5netcdf_ import H5NetCDFArrayWrapper
from xarray.backends.netCDF4_ import NetCDF4ArrayWrapper
from xarray.core import indexing

from pyfilter import checking, netcdf, plugin
from pyfilter.codecs.base import Codec
from pyfilter.errors import PyfilterError
from pyfilter.registry import registry
from pyfilter.xarray import origin, streaming

if TYPE_CHECKING:
    from collections.abc import Callable

#: where the encoding of a variable has its codec
KEY = "pyfilter"


class Netcdf4Array(NetCDF4ArrayWrapper):  # type: ignore[misc]
    """A compressed variable of netCDF4."""

    __slots__ = ()


class H5netcdfArray(H5NetCDFArrayWrapper):  # type: ignore[misc]
    """A compressed variable of h5netcdf."""

    __slots__ = ()


class Netcdf4Store(NetCDF4DataStore):  # type: ignore[misc]
    """xarray's store for netCDF4, with codecs."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle as xarray's own store."""
        return _as_xarrays(self, NetCDF4DataStore)

    def prepare_variable(
        self, name: str, variable: Any, check_encoding: bool = False, unlimited_dims: Any = None
    ) -> tuple[Any, Any]:
        """Create a variable, if the file does not have it, and give it its codec before values are written."""
        codec = variable.encoding.pop(KEY, None)
        before = self.ds.variables.get(name)
        if codec is None and before is None:
            origin.warn_of_lost_codec(name, variable.encoding)
        if codec is None:
            return _prepared(super(), name, variable, check_encoding, unlimited_dims)
        plugin.refresh()
        if before is not None:
            _warn_of_kept_codec(name, codec, before)
        elif self.format != "NETCDF4":  # there a variable gets its filter together with its definition only
            netcdf.create_variable(
                self.ds,
                name,
                variable.dtype,
                variable.dims,
                codec,
                fill_value=variable.attrs.get("_FillValue"),
                chunksizes=variable.encoding.get("chunksizes"),
            )
        _, source = _prepared(super(), name, variable, check_encoding, unlimited_dims)
        if before is None and self.format == "NETCDF4":
            netcdf.compress(self.ds.variables[name], codec)
        if before is not None:
            return Netcdf4Array(name, self), source
        return streaming.later(self._group, name, Netcdf4Array(name, self), source, unlimited_dims or (), variable.dims)

    def open_store_variable(self, name: str, var: Any) -> Any:
        """Return a variable to read."""
        return readable(self, super().open_store_variable(name, var), name, var, Netcdf4Array)


class H5netcdfStore(H5NetCDFStore):  # type: ignore[misc]
    """xarray's store for h5netcdf, with codecs."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle as xarray's own store."""
        return _as_xarrays(self, H5NetCDFStore)

    def prepare_variable(
        self, name: str, variable: Any, check_encoding: bool = False, unlimited_dims: Any = None
    ) -> tuple[Any, Any]:
        """Create a variable, if the file does not have it, with its codec."""
        codec = variable.encoding.pop(KEY, None)
        before = self.ds.variables.get(name)
        if codec is not None:
            plugin.refresh()
            variable.encoding["compression"] = codec.filter_id
            variable.encoding["compression_opts"] = codec.filter_options
        if before is None:
            origin.warn_of_lost_codec(name, variable.encoding)
        elif codec is not None:
            _warn_of_kept_codec(name, codec, before)
        ours = variable.encoding.get("compression") == registry().filter_id
        target, source = _prepared(super(), name, variable, check_encoding, unlimited_dims)
        if not ours:
            return target, source
        if codec is None or before is not None:
            return H5netcdfArray(name, self), source
        return streaming.later(
            self._group, name, H5netcdfArray(name, self), source, unlimited_dims or (), variable.dims
        )

    def open_store_variable(self, name: str, var: Any) -> Any:
        """Return a variable to read."""
        return readable(self, super().open_store_variable(name, var), name, var, H5netcdfArray)


STORES: dict[str, Any] = {"netcdf4": Netcdf4Store, "h5netcdf": H5netcdfStore}


def _prepared(store: Any, name: str, variable: Any, check_encoding: bool, unlimited_dims: Any) -> tuple[Any, Any]:
    target, source = store.prepare_variable(name, variable, check_encoding, unlimited_dims=unlimited_dims)
    return target, source


def _as_xarrays(store: Any, kind: Any) -> Any:
    """Return what pickle needs to make a store of xarray's own class, with the same file behind it."""
    slots = {slot for base in kind.__mro__ for slot in getattr(base, "__slots__", ())}
    return object.__new__, (kind,), (None, {slot: getattr(store, slot) for slot in sorted(slots)})


def readable(store: Any, variable: Any, name: str, stored: Any, kind: Callable[[str, Any], Any]) -> Any:
    """Return a variable to read, with an array that ``kind`` makes where pyfilter compressed it."""
    try:
        ours = checking.codec_of(stored) is not None
    except PyfilterError:  # the settings of a later release: the error of reading names it
        ours = True
    if not ours:
        return variable
    array = indexing.LazilyIndexedArray(kind(name, store))
    return type(variable)(variable.dims, array, variable.attrs, variable.encoding)


def _warn_of_kept_codec(name: str, codec: Codec, variable: Any) -> None:
    """Warn where values go into a variable that the file has already, and that is compressed otherwise."""
    stored = checking.codec_of(variable)
    if stored == codec:
        return
    message = (
        f"variable {name!r} exists in the file and is compressed by {stored!r}, which stays: {codec!r} was "
        "asked for. A codec is chosen when a variable is created. Save to a new file to change it"
    )
    warnings.warn(message, UserWarning, stacklevel=origin.user_level())
