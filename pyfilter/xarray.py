# SPDX-License-Identifier: BSD-3-Clause
"""Datasets of xarray: ``encoding`` for ``Dataset.to_netcdf``, and a ``to_netcdf`` that does what encoding cannot.

xarray can hand filters of others to h5netcdf but not to netCDF4, and forgets them when it reads a file: a dataset
saved again is either refused or silently uncompressed. (``import xarray`` in here is the real xarray.)
"""

from __future__ import annotations

import contextlib
import math
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from pyfilter import checking, chunks, dtypes, h5, netcdf, plugin, provenance
from pyfilter.codecs.base import Codec
from pyfilter.errors import InvalidArgument, MissingExtra, Unsupported, missing_extra

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

ENGINES = ("h5netcdf", "netcdf4")

# what h5py, and so xarray, calls every filter that is not its own
_UNKNOWN = "unknown"

# what CF encoding and both engines keep; the rest of a variable's encoding is about the file that it came from
_KEPT = frozenset(
    {
        "dtype", "_FillValue", "missing_value", "scale_factor", "add_offset", "_Unsigned", "units", "calendar",
        "coordinates", "grid_mapping", "chunksizes",
    }
)  # fmt: skip


def encoding(
    dataset: Any, codec: Codec | None = None, /, *, engine: str = "h5netcdf", **codecs: Codec | None
) -> dict[str, dict[str, Any]]:
    """Return the ``encoding`` argument of ``Dataset.to_netcdf`` that compresses variables.

    A relative bound (or psnr) is taken of the whole variable; dask arrays are computed for it.

    Parameters
    ----------
    dataset : xarray.Dataset
        What is to be saved.
    codec : Codec, optional
        For every data variable whose stored type it takes; coordinates are left as they are.
    engine : str
        Must be "h5netcdf": xarray's netcdf4 engine takes no filters of others, `to_netcdf` here does.
    **codecs : Codec or None
        For single variables, by their names; None leaves one uncompressed.

    Returns
    -------
    dict
        Encoding by variable, for those that get a codec; what else their encoding holds (type, packing, fill value,
        units) is kept.

    Raises
    ------
    ValueError
        If a name is not in the dataset, or the engine is not one of the two.
    TypeError
        If a codec does not take a variable's type, or for the netcdf4 engine.

    Examples
    --------
    >>> ds.to_netcdf("b.nc", engine="h5netcdf", encoding=encoding(ds, t=Cuszp2(absolute=0.01)))
    """
    _require_engine(engine)
    if engine == "netcdf4":
        message = "xarray's netcdf4 engine cannot be given a filter by encoding: use pyfilter.xarray.to_netcdf"
        raise Unsupported(message)
    chosen = _chosen(dataset, codec, codecs)
    return {name: _h5netcdf_encoding(dataset, name, item) for name, item in chosen.items() if item is not None}


def to_netcdf(
    dataset: Any,
    path: str | os.PathLike[str],
    *,
    codecs: Codec | Mapping[str, Codec | None] | None = None,
    engine: str | None = None,
    encoding: Mapping[str, Mapping[str, Any]] | None = None,
    history: bool = False,
    **kwargs: Any,
) -> None:
    """Save a dataset with compressed variables, by either engine.

    A variable that was read from a file in which pyfilter compressed it keeps its compression, unless ``codecs``
    says otherwise. A relative bound (or psnr) is taken of the whole variable; dask arrays are computed for it.

    Parameters
    ----------
    dataset : xarray.Dataset
        What to save.
    path : path-like
        The file.
    codecs : Codec, or mapping of name to Codec or None, optional
        One codec for every data variable whose stored type it takes, or codecs by variable; None for a variable
        leaves it uncompressed.
    engine : {"h5netcdf", "netcdf4"}, optional
        By default netcdf4 where netCDF4 is installed, as in xarray.
    encoding : mapping, optional
        Further encoding by variable, as in xarray.
    history : bool
        Whether to put a line that names the codecs into the global attribute ``history`` of the file, as CF wants it
        (provenance.py); ``dataset`` itself stays as it is.
    **kwargs
        As in ``xarray.Dataset.to_netcdf``: ``mode``, ``format`` ("NETCDF4" or "NETCDF4_CLASSIC"), ``group``,
        ``unlimited_dims``; with h5netcdf also the others.

    Raises
    ------
    ValueError
        If a name is not in the dataset, or the engine is not one of the two.
    TypeError
        If a codec does not take a variable's type.
    MissingExtra
        If xarray or the engine is not installed.
    """
    engine = _default_engine() if engine is None else engine
    _require_engine(engine)
    _require_dataset(dataset)
    plugin.refresh()
    chosen = _chosen(dataset, codecs, {}) if isinstance(codecs, Codec) else _chosen(dataset, None, dict(codecs or {}))
    chosen.update(stored_codecs(dataset, skip=chosen))
    extra = {str(name): dict(items) for name, items in (encoding or {}).items()}
    if history:
        line = provenance.entry("pyfilter.xarray.to_netcdf", {key: item for key, item in chosen.items() if item})
        before = dataset.attrs.get(provenance.ATTRIBUTE, "")
        dataset = dataset.assign_attrs({provenance.ATTRIBUTE: provenance.prepended(line, str(before))})
    if engine == "h5netcdf":
        for name, variable in dataset.variables.items():
            if variable.encoding.get("compression") == _UNKNOWN:
                chosen.setdefault(str(name), None)  # h5netcdf would refuse to write what it has read
        for name, item in chosen.items():
            given = extra.pop(name, {})
            ours = _kept_encoding(dataset, name) if item is None else _h5netcdf_encoding(dataset, name, item)
            extra[name] = {**ours, **given} if item is None else {**given, **_without_chunks(ours, given)}
        dataset.to_netcdf(path, engine=engine, encoding=extra, **kwargs)
    else:
        _by_netcdf4(dataset, path, chosen, extra, **kwargs)


def stored_codecs(dataset: Any, skip: Container[str] = ()) -> dict[str, Codec]:
    """Return the codecs of the variables in the files that they were read from, for those that have one."""
    by_source: dict[str, list[str]] = {}
    for name, variable in dataset.variables.items():
        source = variable.encoding.get("source") if name not in skip else None
        if isinstance(source, (str, os.PathLike)) and Path(source).is_file():
            by_source.setdefault(os.fspath(source), []).append(str(name))
    found: dict[str, Codec] = {}
    for source, names in by_source.items():
        # a netCDF-3 file, or one that is open for writing: nothing of ours to keep
        with contextlib.suppress(OSError), h5py.File(source, "r") as file:
            for name in names:
                codec = _codec_in(file, name, dataset.variables[name].encoding)
                if codec is not None:
                    found[name] = codec
    return found


def _codec_in(file: h5py.File, name: str, encoding: Mapping[str, Any]) -> Codec | None:
    """Return the codec of a variable by its name, shape and chunks; xarray does not keep the group."""
    sizes = encoding.get("chunksizes")
    expected = {"shape": encoding.get("original_shape"), "chunks": None if sizes is None else tuple(sizes)}
    matches = {
        checking.codec_of(item)
        for item in checking.datasets(file)
        if str(item.name).rpartition("/")[2] == name and expected == {"shape": item.shape, "chunks": item.chunks}
    }
    if encoding.get("compression") == _UNKNOWN:
        matches.discard(None)
    if len(matches) > 1:
        message = (
            f"{file.filename} has several variables {name!r} with different compression, and xarray does not say "
            "which one this is: it is saved uncompressed unless codecs= says otherwise"
        )
        warnings.warn(message, UserWarning, stacklevel=4)
        return None
    return next(iter(matches), None)


def _chosen(dataset: Any, codec: Codec | None, codecs: Mapping[str, Codec | None]) -> dict[str, Codec | None]:
    """Return the codec of each variable that is spoken of, relative bounds resolved."""
    _require_dataset(dataset)
    chosen: dict[str, Codec | None] = {}
    for name in codecs:
        if name not in dataset.variables:
            message = f"{name!r} is not a variable of the dataset; there are {', '.join(map(str, dataset.variables))}"
            raise InvalidArgument(message)
    if codec is not None:
        _require_codec(codec)
        for name in dataset.data_vars:
            variable = dataset.variables[name]
            stored = _stored_dtype(variable)
            meant = stored.kind == "f" or codec.is_lossless  # integers get a bound of theirs by name only
            if variable.ndim and meant and dtypes.takes(codec.spec().name, stored):
                chosen[str(name)] = codec
    for name, item in codecs.items():
        chosen[name] = item
        if item is None:
            continue
        _require_codec(item)
        variable = dataset.variables[name]
        if variable.ndim == 0:
            message = f"variable {name!r} is a scalar: it has no chunks, so nothing can be compressed"
            raise Unsupported(message)
        stored = _stored_dtype(variable)
        if not dtypes.takes(item.spec().name, stored):
            known = ", ".join(dtypes.names(item.spec().name))
            message = f"variable {name!r} is stored as {stored}, which {item!r} does not take; it takes {known}"
            raise Unsupported(message)
        netcdf.require_plain_sign(name, stored, item, {**variable.attrs, **variable.encoding})
    return {name: item if item is None else _resolve(item, dataset.variables[name]) for name, item in chosen.items()}


def _stored_dtype(variable: Any) -> np.dtype[Any]:
    """Return the element type that the variable will have in the file."""
    try:
        stored: np.dtype[Any] = np.dtype(variable.encoding.get("dtype", variable.dtype))
    except TypeError:  # str and other types that are none of NumPy's
        stored = np.dtype(object)
    return stored


def _resolve(codec: Codec, variable: Any) -> Codec:
    fraction = codec.range_fraction
    stored = _stored_dtype(variable)
    if fraction is None or (stored.kind in "iu" and stored != variable.dtype):
        return codec  # of packed integers the range is that of what is stored, chunk by chunk
    data = variable.data
    if isinstance(data, np.ndarray):
        return h5.resolve(codec, data, None, chunks.choose(data.shape, data.dtype.itemsize))
    finite = variable.where(np.isfinite(variable))
    low, high = float(finite.min()), float(finite.max())
    absolute = h5.absolute_of(fraction, (low, high)) if math.isfinite(high - low) else 0.0
    return codec.with_absolute(absolute) if absolute > 0.0 else codec


def _kept_encoding(dataset: Any, name: str) -> dict[str, Any]:
    """Return the part of a variable's encoding that is about its values."""
    variable = dataset.variables[name]
    kept = {key: value for key, value in variable.encoding.items() if key in _KEPT and value is not None}
    sizes = kept.pop("chunksizes", None)
    if sizes is not None and variable.encoding.get("original_shape", variable.shape) == variable.shape:
        kept["chunksizes"] = tuple(min(size, extent) for size, extent in zip(sizes, variable.shape, strict=True))
    return kept


def _chunked_encoding(dataset: Any, name: str, codec: Codec) -> dict[str, Any]:
    """Return the kept encoding with chunks: those of before, or such as a dask array's fit."""
    variable = dataset.variables[name]
    kept = _kept_encoding(dataset, name)
    if "chunksizes" not in kept:
        unlimited = dataset.encoding.get("unlimited_dims") or ()
        shape = tuple(max(sizes) for sizes in variable.chunks) if variable.chunks else variable.shape
        limits = [None if name in unlimited else extent for name, extent in zip(variable.dims, shape, strict=True)]
        itemsize = _stored_dtype(variable).itemsize
        kept["chunksizes"] = chunks.choose(shape, itemsize, limits, codec.edges)
    return kept


def _h5netcdf_encoding(dataset: Any, name: str, codec: Codec) -> dict[str, Any]:
    return {
        **_chunked_encoding(dataset, name, codec),
        "compression": codec.filter_id,
        "compression_opts": codec.filter_options,
    }


def _without_chunks(ours: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return our encoding, but the caller's own wish for everything that is not the compression."""
    return {key: value for key, value in ours.items() if key.startswith("compression") or key not in given}


def _by_netcdf4(
    dataset: Any,
    path: str | os.PathLike[str],
    chosen: Mapping[str, Codec | None],
    extra: dict[str, dict[str, Any]],
    *,
    mode: str = "w",
    format: str | None = None,
    group: str | None = None,
    unlimited_dims: Any = None,
) -> None:
    """Save by xarray's own store for netCDF4; each new variable gets its codec before values are written."""
    netcdf.require_netcdf4()
    from xarray.backends import NetCDF4DataStore
    from xarray.backends.common import ArrayWriter

    def prepare_variable(self: Any, name: str, variable: Any, *args: Any, **kwargs: Any) -> Any:
        codec = chosen.get(name)
        fresh = name not in self.ds.variables
        if codec is not None and fresh and self.format != "NETCDF4":
            netcdf.create_variable(
                self.ds,
                name,
                variable.dtype,
                variable.dims,
                codec,
                fill_value=variable.attrs.get("_FillValue"),
                chunksizes=variable.encoding.get("chunksizes"),
            )
        prepared = NetCDF4DataStore.prepare_variable(self, name, variable, *args, **kwargs)
        if codec is not None and fresh and self.format == "NETCDF4":
            netcdf.compress(self.ds.variables[name], codec)
        return prepared

    for name, item in chosen.items():
        given = extra.get(name, {})
        ours = _kept_encoding(dataset, name) if item is None else _chunked_encoding(dataset, name, item)
        extra[name] = {**ours, **given, "zlib": False, "shuffle": False}
    if unlimited_dims is None:
        unlimited_dims = [name for name in dataset.encoding.get("unlimited_dims") or () if name in dataset.dims]
    store_class: Any = type("Store", (NetCDF4DataStore,), {"prepare_variable": prepare_variable})
    store = store_class.open(os.fspath(path), mode=mode, format=format or "NETCDF4", group=group)
    try:
        writer = ArrayWriter()
        dataset.dump_to_store(store, writer=writer, encoding=extra, unlimited_dims=unlimited_dims)
        writer.sync()
    finally:
        store.close()


def _default_engine() -> str:
    try:
        netcdf.require_netcdf4()
    except MissingExtra:
        return "h5netcdf"
    return "netcdf4"


def _require_engine(engine: object) -> None:
    if engine not in ENGINES:
        message = f"engine must be one of {', '.join(map(repr, ENGINES))}; got {engine!r}"
        raise InvalidArgument(message)


def _require_dataset(dataset: Any) -> None:
    try:
        import xarray
    except ImportError as error:
        raise missing_extra("xarray", "xarray") from error
    if not isinstance(dataset, xarray.Dataset):
        message = f"an xarray.Dataset is needed, got {type(dataset).__name__}"
        raise Unsupported(message)


def _require_codec(codec: object) -> None:
    if not isinstance(codec, Codec):
        message = f"a codec is needed, such as pyfilter.Cuszp2(absolute=1e-3); got {codec!r}"
        raise Unsupported(message)
