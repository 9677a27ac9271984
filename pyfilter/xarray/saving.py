# SPDX-License-Identifier: BSD-3-Clause
"""Saving by xarray: the ``encoding`` that gives variables their codecs, and ``to_netcdf`` for whatever xarray saves."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyfilter import netcdf, plugin
from pyfilter._chunks import blocks, layout
from pyfilter._hooks import xarray_stores
from pyfilter.codecs.base import Codec
from pyfilter.errors import InvalidArgument, MissingExtra, Unsupported, missing_extra
from pyfilter.xarray import choice, origin, streaming

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyfilter._chunks.blocks import Progress

ENGINES = xarray_stores.ENGINES

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

    A relative bound (or psnr) is taken of the whole variable, as in `to_netcdf`; dask arrays are computed for it.

    Parameters
    ----------
    dataset : xarray.Dataset
        The dataset to save.
    codec : Codec, optional
        For every data variable whose stored type it takes; coordinates are left as they are.
    engine : str
        Must be "h5netcdf": xarray's netcdf4 engine takes no filters of others, `to_netcdf` here does.
    **codecs : Codec or None
        For single variables, by their names; None leaves a variable uncompressed.

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
    if not isinstance(dataset, _xarray().Dataset):
        message = f"an xarray.Dataset is needed, got {type(dataset).__name__}: pyfilter.xarray.to_netcdf saves it"
        raise Unsupported(message)
    found = choice.chosen(dataset, codec, codecs, {})
    return {
        name: {
            **_chunked_encoding(dataset, name, item, {}),
            "compression": item.filter_id,
            "compression_opts": item.filter_options,
        }
        for name, item in found.items()
        if item is not None
    }


def to_netcdf(
    dataset: Any,
    path: str | os.PathLike[str] | io.IOBase | None = None,
    *,
    codecs: Codec | Mapping[str, Any] | None = None,
    engine: str | None = None,
    encoding: Mapping[str, Mapping[str, Any]] | None = None,
    history: bool = False,
    progress: bool | Progress = False,
    **kwargs: Any,
) -> Any:
    """Save a Dataset, DataArray or DataTree with compressed variables, by either engine.

    A variable that was read from a file in which pyfilter compressed it keeps its compression, unless ``codecs``
    says otherwise.

    A relative bound (or psnr) is resolved with the range of the whole variable, before anything is written: the file
    gets the resulting absolute bound. Chunks that are written in parts, by blocks of a dask array that end inside of
    them, keep it as all others do. For this range a dask array is computed once more than for writing, also with
    ``compute=False``, and then at once. Two kinds of variables keep the relative bound itself, which then holds for
    each chunk's own range: packed integers (``scale_factor``), and variables without a range.

    Only the bound holds: valid ranges, signs and regions need `pyfilter.netcdf.compress_file` afterwards.

    Variables of dask arrays are compressed by all workers of dask's scheduler. This process writes blocks as they
    arrive; a few are in work at a time. Blocks that end inside of chunks are rechunked. The file takes its name when
    all is written. With ``mode="a"``, ``compute=False`` or to memory, xarray writes them, a block at a time.

    Parameters
    ----------
    dataset : xarray.Dataset, xarray.DataArray or xarray.DataTree
        What to save. A DataArray is saved as xarray saves it: without a name as "__xarray_dataarray_variable__".
    path : path-like, file object or None
        The file; an object of Python only with h5netcdf. None returns the file's bytes.
    codecs : Codec, or mapping of name to Codec or None, optional
        One codec for every data variable whose stored type it takes, or codecs by variable; None for a variable
        leaves it uncompressed. For a DataTree: one codec, or by group ("/", "/ocean") the argument for a Dataset.
    engine : {"h5netcdf", "netcdf4"}, optional
        By default netcdf4 where netCDF4 is installed and ``path`` is no file object.
    encoding : mapping, optional
        Further encoding by variable, as in xarray; of a DataTree by group and variable.
    history : bool
        Whether to put a line that names the codecs into the global attribute ``history`` of the file, as CF wants it
        (rewrite/provenance.py); ``dataset`` itself stays as it is.
    progress : bool or callable
        For compressed variables of dask arrays, True shows a bar; or a function that is called with the number of
        blocks written and the number of all blocks.
    **kwargs
        As in xarray's own ``to_netcdf``: ``mode``, ``format`` ("NETCDF4" or "NETCDF4_CLASSIC"), ``group``,
        ``unlimited_dims``, ``compute`` and others.

    Returns
    -------
    None, dask.delayed.Delayed or memoryview
        What xarray returns: with ``compute=False`` a Delayed, whose ``compute()`` writes the values; the bytes where
        ``path`` is None.

    Raises
    ------
    ValueError
        If a name is not in the dataset, the engine is another one, or ``encoding`` has another compression for a
        variable with a codec.
    TypeError
        If a codec does not take a variable's type, or ``dataset`` is none of the three.
    MissingExtra
        If xarray or the engine is not installed.

    Warns
    -----
    UserWarning
        If a variable cannot keep its compression, or a variable that exists in the file (``mode="a"``) has another one.
    """
    engine = _default_engine(path) if engine is None else engine
    _require_engine(engine)
    xarray = _xarray()
    plugin.refresh()
    xarray_stores.install()
    if isinstance(dataset, getattr(xarray, "DataTree", ())):
        return _save_tree(dataset, path, codecs, engine, encoding, history, progress, **kwargs)
    if isinstance(dataset, xarray.DataArray):
        dataset = _as_dataset(dataset)
    if not isinstance(dataset, xarray.Dataset):
        message = f"an xarray.Dataset, DataArray or DataTree is needed, got {type(dataset).__name__}"
        raise Unsupported(message)
    if not _may_stream(path, kwargs):
        _require_scheduler(path, dataset.variables.values())
    found, extra = _plan(dataset, codecs, engine, encoding or {})
    streamed = _streamed(path, kwargs, [(dataset, found)])
    _require_netcdf4_format(kwargs.get("format"), found)
    if history:
        dataset = dataset.assign_attrs(_history(dataset.attrs, found))
    if kwargs.get("unlimited_dims") is None:
        limits = [name for name in dataset.encoding.get("unlimited_dims") or () if name in dataset.dims]
        kwargs["unlimited_dims"] = limits or None
    return _save(dataset, path, streamed, progress, engine=engine, encoding=extra, **kwargs)


def _save(thing: Any, path: Any, streamed: bool, progress: bool | Progress, **kwargs: Any) -> Any:
    """Have xarray save, and write compressed dask arrays where they are streamed."""
    if not streamed:
        with origin.codecs_decided():
            return thing.to_netcdf(path, **kwargs)
    from pyfilter import dask

    target = Path(path).expanduser().absolute()
    with dask.new_file(target) as temporary:
        with origin.codecs_decided(), streaming.collected() as found:
            thing.to_netcdf(temporary, **kwargs)
        with dask.shown(progress, target.name) as call:
            streaming.write(temporary, found, call)
    return None


def _may_stream(path: object, kwargs: Mapping[str, Any]) -> bool:
    """Whether compressed dask arrays can be written by this process as workers compress them: to a new file, now."""
    local = isinstance(path, (str, os.PathLike)) and "://" not in os.fspath(path)
    return local and kwargs.get("mode", "w") == "w" and kwargs.get("compute", True) is True


def _streamed(path: object, kwargs: Mapping[str, Any], parts: list[tuple[Any, Mapping[str, Codec | None]]]) -> bool:
    """Whether there are such arrays in datasets with their codecs; refuses others that cannot be saved."""
    if not _may_stream(path, kwargs):
        return False
    variables = [(found.get(str(name)), item) for data, found in parts for name, item in data.variables.items()]
    _require_scheduler(path, [variable for codec, variable in variables if codec is None])
    return any(codec is not None and variable.chunks for codec, variable in variables)


def _save_tree(
    tree: Any,
    path: Any,
    codecs: Any,
    engine: str,
    encoding: Mapping[str, Any] | None,
    history: bool,
    progress: bool | Progress,
    **kwargs: Any,
) -> Any:
    """Save a DataTree: each group is planned as a dataset of its own."""
    given = dict(encoding or {})
    groups = {group: data for group, data in _groups(tree, bool(kwargs.get("write_inherited_coords")))}
    by_group = {group: codecs for group in groups} if isinstance(codecs, Codec) else dict(codecs or {})
    for what in (by_group, given):
        for group in what:
            if group not in groups:
                message = f"{group!r} is not a group of the tree; there are {', '.join(map(repr, groups))}"
                raise InvalidArgument(message)
    if not _may_stream(path, kwargs):
        parts = [variable for _, data in _groups(tree, False) for variable in data.variables.values()]
        _require_scheduler(path, parts, tree_later=not kwargs.get("compute", True))
    named: dict[str, Codec | None] = {}
    extra = {}
    planned: list[tuple[Any, Mapping[str, Codec | None]]] = []
    for group, data in groups.items():
        found, extra[group] = _plan(data, by_group.get(group), engine, given.get(group) or {}, group)
        named.update({f"{group.rstrip('/')}/{name}": item for name, item in found.items()})
        planned.append((data, found))
    if history:
        tree = tree.copy(deep=False)
        tree.attrs.update(_history(tree.attrs, named))
    streamed = _streamed(path, kwargs, planned)
    return _save(tree, path, streamed, progress, engine=engine, encoding=extra, **kwargs)


def _groups(tree: Any, inherited: bool) -> Iterator[tuple[str, Any]]:
    """Yield the groups of a tree as datasets with the variables that xarray writes for them."""
    for node in tree.subtree:
        yield node.path, node.to_dataset(inherit=inherited or node is tree)


def _as_dataset(array: Any) -> Any:
    """Return the dataset that xarray saves for a DataArray."""
    from xarray.backends.api import DATAARRAY_NAME, DATAARRAY_VARIABLE

    if array.name is not None and array.name not in array.coords and array.name not in array.dims:
        return array.to_dataset()
    dataset = array.to_dataset(name=DATAARRAY_VARIABLE)
    if array.name is not None:
        dataset.attrs[DATAARRAY_NAME] = array.name
    return dataset


def _plan(
    dataset: Any, codecs: Any, engine: str, given: Mapping[str, Mapping[str, Any]], group: str | None = None
) -> tuple[dict[str, Codec | None], dict[str, dict[str, Any]]]:
    """Return the codec of each variable that is named or had one, and the encoding for xarray."""
    extra = {str(name): dict(items) for name, items in given.items()}
    if isinstance(codecs, Codec):
        found = choice.chosen(dataset, codecs, {}, extra)
    else:
        found = choice.chosen(dataset, None, _by_name(codecs), extra)
    with_other_compression = {
        name for name, items in extra.items() if any(items.get(key) for key in choice.COMPRESSIONS)
    }
    found.update(origin.stored_codecs(dataset, skip={*found, *with_other_compression}, group=group))
    for name, variable in dataset.variables.items():
        if variable.encoding.get("compression") == origin.UNKNOWN and name not in with_other_compression:
            found.setdefault(str(name), None)  # xarray would refuse to write attributes that it has read
    for name, item in found.items():
        ours = extra.get(name, {})
        if item is None:
            extra[name] = {**kept_encoding(dataset, name), **ours}
            continue
        extra[name] = {**_chunked_encoding(dataset, name, item, ours), **ours, **_missing(dataset, name, item, ours)}
        extra[name]["pyfilter"] = item
        if engine == "netcdf4":
            extra[name].update(zlib=False, shuffle=False)
    return found, extra


def _by_name(codecs: Any) -> dict[str, Codec | None]:
    try:
        return dict(codecs or {})
    except (TypeError, ValueError):
        message = f"codecs must be a codec, or a mapping of names to codecs; got {codecs!r}"
        raise Unsupported(message) from None


def _history(attributes: Mapping[str, Any], found: Mapping[str, Codec | None]) -> dict[str, str]:
    from pyfilter.rewrite import provenance

    line = provenance.entry("pyfilter.xarray.to_netcdf", {name: item for name, item in found.items() if item})
    return {provenance.ATTRIBUTE: provenance.prepended(line, str(attributes.get(provenance.ATTRIBUTE, "")))}


def kept_encoding(dataset: Any, name: str) -> dict[str, Any]:
    """Return the part of a variable's encoding that is about its values."""
    variable = dataset.variables[name]
    kept = {
        key: value
        for key, value in variable.encoding.items()
        if key in _KEPT and (value is not None or key == "_FillValue")
    }
    sizes = kept.pop("chunksizes", None)
    if sizes is not None and variable.encoding.get("original_shape", variable.shape) == variable.shape:
        kept["chunksizes"] = tuple(min(size, extent) for size, extent in zip(sizes, variable.shape, strict=True))
    return kept


def _chunked_encoding(dataset: Any, name: str, codec: Codec, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the kept encoding with chunks (the earlier ones, or chunks that fit a dask array) and a fill value."""
    variable = dataset.variables[name]
    kept = kept_encoding(dataset, name)
    if "chunksizes" not in kept and "chunksizes" not in given:
        unlimited = dataset.encoding.get("unlimited_dims") or ()
        shape = tuple(max(sizes) for sizes in variable.chunks) if variable.chunks else variable.shape
        limits = [None if name in unlimited else extent for name, extent in zip(variable.dims, shape, strict=True)]
        itemsize = choice.stored_dtype(name, variable, given).itemsize
        kept["chunksizes"] = layout.choose(shape, itemsize, limits, codec.edges)
    return {**kept, **_missing(dataset, name, codec, given)}


def _missing(dataset: Any, name: str, codec: Codec, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fill value where only ``missing_value`` says it: HDF5, and so the filter, knows ``_FillValue``."""
    variable = dataset.variables[name]
    value = None if codec.is_lossless else choice.fill_value(name, codec, variable, given)
    declared = {**variable.attrs, **variable.encoding, **given}.get("_FillValue")
    return {} if value is None or declared is not None else {"_FillValue": value}


def _default_engine(path: object) -> str:
    if isinstance(path, io.IOBase):
        return "h5netcdf"
    try:
        netcdf.require_netcdf4()
    except MissingExtra:
        return "h5netcdf"
    return "netcdf4"


def _require_engine(engine: object) -> None:
    if engine not in ENGINES:
        message = f"engine must be one of {', '.join(map(repr, ENGINES))}; got {engine!r}"
        raise InvalidArgument(message)


def _require_netcdf4_format(file_format: str | None, found: Mapping[str, Codec | None]) -> None:
    """Refuse to compress in a netCDF-3 file, before a file that is there is overwritten."""
    compressed = [f"{name!r} by {item!r}" for name, item in found.items() if item is not None]
    if compressed and str(file_format).upper().startswith("NETCDF3"):
        message = (
            f"format {file_format!r} has no compression, and {', '.join(compressed)} would be compressed: use "
            "NETCDF4 or NETCDF4_CLASSIC, or None in codecs= for each of them"
        )
        raise Unsupported(message)


def _require_scheduler(path: object, variables: Iterable[Any], *, tree_later: bool = False) -> None:
    """Refuse what xarray cannot have dask write in other processes; its own errors do not say that it is this."""
    scheduler = blocks.scheduler() if any(variable.chunks for variable in variables) else None
    in_memory = path is None or isinstance(path, io.IOBase)
    if scheduler is None or (scheduler == "distributed" and not in_memory and not tree_later):
        return
    where = "to memory" if in_memory else "of a DataTree with compute=False" if tree_later else "to a file"
    message = (
        f"xarray cannot save dask arrays {where} by dask's scheduler {scheduler!r}. Save them with "
        'dask.config.set(scheduler="threads"), or after load()'
    )
    raise Unsupported(message)


def _xarray() -> Any:
    try:
        import xarray
    except ImportError as error:
        raise missing_extra("xarray", "xarray") from error
    return xarray
