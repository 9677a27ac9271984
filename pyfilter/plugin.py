# SPDX-License-Identifier: BSD-3-Clause
"""Makes the filter known to every libhdf5 of the process.

A filter is known to one libhdf5, and wheels bring their own: h5py and netCDF4 have two. On import we register with each
libhdf5 that is loaded, and extend HDF5_PLUGIN_PATH for those loaded later. We also watch for packages that bring one
(_hooks/imports.py), because HDF5 loads no plugin to append to an existing dataset. It would silently store raw chunks.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import h5py

from pyfilter import errors
from pyfilter._hooks import imports, xarray_stores
from pyfilter._lib import hdf5, library

if TYPE_CHECKING:
    from collections.abc import Iterable

VARIABLE = "HDF5_PLUGIN_PATH"

_registered: dict[str, None] = {}
_modules_seen = -1


def plugin_folder() -> str:
    """Return the folder that HDF5 programs need in HDF5_PLUGIN_PATH, also where the library is missing."""
    path = library.path()
    return str(path.parent if path is not None else Path(__file__).resolve().parent / "lib")


def register(force: bool = False) -> list[str]:
    """Register the filter with every libhdf5 in this process.

    Called on import and after the import of packages known to bring a libhdf5 (netCDF4, tables, ...). Call it after
    loading HDF5 in a way that Python does not see.

    Parameters
    ----------
    force
        Register again where that was done before.

    Returns
    -------
    list of str
        The files of the libraries that know the filter now.

    Raises
    ------
    LibraryMissing
        If pyfilter's own compiled library is not there.
    """
    global _modules_seen
    library.load()
    _modules_seen = len(sys.modules)
    present = hdf5.mapped_libraries()
    folder = plugin_folder()
    for path in present:
        if path in _registered and not force:
            continue
        with h5py._objects.phil:  # HDF5 is not to be entered twice at a time
            with contextlib.suppress(errors.PyfilterError):
                library.register(path)
                _registered[path] = None
            hdf5.append_plugin_folder(path, folder)
    return [path for path in present if path in _registered]


def refresh() -> None:
    """Register with each libhdf5 loaded since the last call; cheap where nothing was imported meanwhile."""
    if len(sys.modules) != _modules_seen:
        register()


def extended_path(current: str | None, folder: str, others: Iterable[str]) -> str:
    """Return the new value of HDF5_PLUGIN_PATH.

    Parameters
    ----------
    current
        Its present value, None where it is unset.
    folder
        Ours.
    others
        What would be searched, or set by others, if the variable stayed unset. Only used then.
    """
    parts = list(others) if current is None else [part for part in current.split(os.pathsep) if part]
    return os.pathsep.join(dict.fromkeys([*parts, folder]))


def _folders_of_others() -> list[str]:
    """Return the plugin folders used without the variable: netCDF4's wheel's, and HDF5's defaults."""
    found: list[str] = []
    # netCDF4 points the variable to its own folder on import, but only where it is unset (netCDF4/__init__.py).
    with contextlib.suppress(ImportError, ValueError, AttributeError):
        spec = importlib.util.find_spec("netCDF4")
        for location in (spec.submodule_search_locations or []) if spec is not None else []:
            plugins = Path(location) / "plugins"
            if any(plugins.glob("*__nczhdf5filters.*")):
                found.append(str(plugins))
    with contextlib.suppress(Exception):
        found += [os.fsdecode(h5py.h5pl.get(index)) for index in range(h5py.h5pl.size())]
    # HDF5 before 1.14 gives up its search at the first folder that does not exist
    return [folder for folder in found if Path(folder).is_dir()]


def install() -> None:
    """Do what the import of pyfilter does; warns and goes on where the compiled library is missing."""
    try:
        library.load()
    except errors.LibraryMissing as error:
        warnings.warn(str(error), RuntimeWarning, stacklevel=3)
        return
    register()  # before the variable changes: h5py's HDF5 keeps the search path that it started with
    os.environ[VARIABLE] = extended_path(os.environ.get(VARIABLE), plugin_folder(), _folders_of_others())
    xarray_stores.install()  # where xarray was imported before
    brings_hdf5 = dict.fromkeys(imports.WATCHED, _after_import)
    imports.install({**brings_hdf5, **dict.fromkeys(xarray_stores.MODULES, xarray_stores.install)})


def _after_import() -> None:
    # netCDF4 may just have set the variable, or another package changed it
    os.environ[VARIABLE] = extended_path(os.environ.get(VARIABLE), plugin_folder(), ())
    with contextlib.suppress(errors.PyfilterError):
        register()
