# SPDX-License-Identifier: BSD-3-Clause
"""The engine "pyfilter" of xarray: netCDF-4 files opened lazily, compressed chunks decoded by several threads.

Names, coordinates, attributes and encodings equal engine netcdf4's, whose store reads them (h5netcdf's for addresses
and file objects). If no engine is named, xarray imports the engines of all installed packages to choose one. So a
process knows the filter, for engines netcdf4 and h5netcdf too.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from xarray.backends import BackendEntrypoint, StoreBackendEntrypoint

from pyfilter import plugin
from pyfilter.errors import InvalidArgument, MissingExtra
from pyfilter.gpu import arrays
from pyfilter.netcdf import require_netcdf4

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class PyfilterBackendEntrypoint(BackendEntrypoint):  # type: ignore[misc]
    """Opens netCDF-4 and HDF5 files; chunks that pyfilter compressed are decoded in parallel, past HDF5.

    The lazy arrays can be used by threads (dask's share the cores among them) and sent to processes, which import
    pyfilter for it. docs/howto/xarray-engine.md has examples.
    """

    description = "Open netCDF-4 files; what pyfilter compressed is decoded by several threads"
    url = "https://docs.xarray.dev/en/stable/user-guide/io.html"
    supports_groups = True

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        mask_and_scale: Any = True,
        decode_times: Any = True,
        concat_characters: Any = True,
        decode_coords: Any = True,
        drop_variables: Any = None,
        use_cftime: Any = None,
        decode_timedelta: Any = None,
        group: str | None = None,
        tolerance: float | Mapping[str, float] | None = None,
        device: str | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Any:
        """Open a file, or a group of it.

        Parameters
        ----------
        filename_or_obj : path, address or file object
            A path of any file that netCDF-C reads; an address that fsspec knows (``https://``, ``s3://``, ...), from
            which bytes are fetched when needed; a file object or bytes, read by HDF5.
        mask_and_scale, decode_times, concat_characters, decode_coords, drop_variables, use_cftime, decode_timedelta
            As in ``xarray.open_dataset``.
        group : str, optional
            The group to open, the root group by default.
        tolerance : float, or mapping of name to float, optional
            The largest accepted error of variables compressed by `pyfilter.Progressive`, in the unit of the stored
            numbers (before ``scale_factor``). Fewer bytes are read then. Other variables are read as they are.
        device : {"cpu", "cuda", "cuda:0", ...}, optional
            "cuda": variables that pyfilter compressed are decoded there, and are CuPy arrays. Variables named like
            their dimension, and times, are NumPy arrays.
        storage_options : mapping, optional
            Further arguments for fsspec's file system.

        Returns
        -------
        xarray.Dataset
            Of lazy arrays, as of any engine.

        Raises
        ------
        InvalidArgument
            If a tolerance is no number >= 0 or of a variable that has none, or the device is not there.
        OSError
            If the file is not there or cannot be read.
        MissingExtra
            If fsspec or h5netcdf is needed and not installed.
        """
        decoding = {
            "mask_and_scale": mask_and_scale,
            "decode_times": decode_times,
            "concat_characters": concat_characters,
            "decode_coords": decode_coords,
            "drop_variables": drop_variables,
            "use_cftime": use_cftime,
            "decode_timedelta": decode_timedelta,
        }
        store = _opened(filename_or_obj, group, tolerance, device, storage_options)
        try:
            _require_tolerances(tolerance, [store])
            return StoreBackendEntrypoint().open_dataset(store, **decoding)
        except BaseException:
            store.close()
            raise

    def open_groups_as_dict(
        self,
        filename_or_obj: Any,
        *,
        group: str | None = None,
        tolerance: float | Mapping[str, float] | None = None,
        device: str | None = None,
        storage_options: Mapping[str, Any] | None = None,
        **decoding: Any,
    ) -> dict[str, Any]:
        """Open a group, the root group by default, and all below it; arguments as for `open_dataset`.

        Returns
        -------
        dict of str to xarray.Dataset
            By the paths of groups: from the root ("/"), or relative to ``group`` (".").
        """
        first = "/" + (group or "").strip("/")
        store = _opened(filename_or_obj, first, tolerance, device, storage_options)
        found: dict[str, Any] = {}
        try:
            stores = {path: store.of_group(path) for path in _groups(store.ds, first)}
            _require_tolerances(tolerance, list(stores.values()))
            for path, inner in stores.items():
                below = path.removeprefix(first).strip("/") or "."
                found[below if group else path] = StoreBackendEntrypoint().open_dataset(inner, **decoding)
        except BaseException:
            store.close()
            raise
        return found

    def open_datatree(self, filename_or_obj: Any, **options: Any) -> Any:
        """Open all groups of a file as an ``xarray.DataTree``; arguments as for `open_dataset`."""
        from xarray import DataTree

        groups = self.open_groups_as_dict(filename_or_obj, **options)
        try:
            tree = DataTree.from_dict(groups)
        except BaseException:
            for dataset in groups.values():
                dataset.close()
            raise
        for path, dataset in groups.items():
            tree[path].set_close(dataset._close)
        return tree


def _groups(group: Any, path: str) -> Iterator[str]:
    yield path
    for name, inner in group.groups.items():
        yield from _groups(inner, f"{path.rstrip('/')}/{name}")


def _opened(target: Any, group: str | None, tolerance: Any, device: str | None, options: Any) -> Any:
    """Return a store for a path, an address, a file object or bytes."""
    from pyfilter.xarray import reading

    if device is not None:
        arrays.device_number(device)
    wanted = reading.Wanted(_checked(tolerance), None if device == "cpu" else device)
    plugin.refresh()
    path = os.fspath(target) if isinstance(target, (str, os.PathLike)) else None
    if path is not None and "://" in path and "#mode=" not in path:
        return reading.open_address(path, group, wanted, dict(options or {}))
    if options:
        message = f"storage_options are for addresses such as https://..., got {target!r}"
        raise InvalidArgument(message)
    if path is None:
        return reading.open_object(target, group, wanted)
    try:
        require_netcdf4()
    except MissingExtra:
        return reading.open_object(os.path.abspath(os.path.expanduser(path)), group, wanted)  # noqa: PTH100, PTH111
    return reading.open_path(path, group, wanted)


def _checked(tolerance: Any) -> Any:
    """Return a tolerance, or tolerances by variable, as numbers."""
    if tolerance is None:
        return None
    if hasattr(tolerance, "items"):
        return {str(name): _number(value) for name, value in tolerance.items()}
    return _number(tolerance)


def _number(tolerance: Any) -> float:
    try:
        number = float(tolerance)
    except (TypeError, ValueError):
        number = -1.0
    if not number >= 0.0:
        message = f"tolerance must be a number >= 0, or such numbers by variable; got {tolerance!r}"
        raise InvalidArgument(message)
    return number


def _require_tolerances(tolerance: Any, stores: list[Any]) -> None:
    """Refuse a tolerance for a variable that is not progressive."""
    if not hasattr(tolerance, "items"):
        return
    there = sorted({name for store in stores for name in store.progressive_variables()})
    for name in tolerance:
        if name not in there:
            message = (
                f"tolerance is given for {name!r}, which is not a variable that pyfilter.Progressive compressed; "
                f"there are {', '.join(map(repr, there)) or 'none'}"
            )
            raise InvalidArgument(message)
