# SPDX-License-Identifier: BSD-3-Clause
"""Variables of netCDF4-python. It cannot set third-party filters, so netCDF-C is called for that (_lib/netcdf_c.py)."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from pyfilter import dtypes, plugin
from pyfilter._chunks import layout, pipeline
from pyfilter._lib import netcdf_c
from pyfilter.codecs.base import STAMP, Codec
from pyfilter.errors import InternalError, InvalidArgument, NetcdfError, Unsupported, missing_extra
from pyfilter.registry import registry

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from pyfilter.guarantees import Guarantee
    from pyfilter.rewrite import Report

# netCDF-C's error numbers that a user can do something about
_NO_FILTER = -136  # NC_ENOFILTER
_IN_DEFINE_MODE = -39  # NC_EINDEFINE, also what a variable with data answers
_AFTER_ENDDEF = -123  # NC_ELATEDEF
_BAD_ARGUMENT = -36  # NC_EINVAL: a scalar, a type or settings that the filter refuses
_NOT_NETCDF4 = -111  # NC_ENOTNC4

_NC_TYPES = {
    "i1": 1, "i2": 3, "i4": 4, "f4": 5, "f8": 6, "u1": 7, "u2": 8, "u4": 9, "i8": 10, "u8": 11,
}  # fmt: skip


def compress(variable: Any, codec: Codec) -> None:
    """Have a new variable compressed. Call it right after ``createVariable``, before values are written.

    A bound holds for the stored numbers: with ``scale_factor``, for the packed integers. A relative bound (or psnr) is
    taken of each chunk's own range (`pyfilter.xarray.to_netcdf` and the ``pyfilter compress`` command take the whole
    variable's). netCDF-C writes through HDF5's filter, which holds the bound alone; valid ranges, signs and regions
    need `compress_file` when the file is closed.

    Parameters
    ----------
    variable : netCDF4.Variable
        Of a file in the NETCDF4 format, in any group; one or more dimensions; created without ``zlib``,
        ``shuffle``, ``fletcher32`` or another ``compression``. A contiguous variable becomes chunked.
    codec : Codec
        Such as ``Cuszp2(absolute=0.01)``. The variable's fill value comes back bit for bit.

    Raises
    ------
    ValueError
        If the variable has other filters or values, or the settings do not fit it.
    TypeError
        If the codec does not take the variable's type, the variable is a scalar, or the file is of another format.
        In NETCDF4_CLASSIC files a variable cannot get a filter once it exists: use `create_variable`.
    NetcdfError
        If netCDF-C refuses for another reason.
    MissingExtra
        If netCDF4 is not installed.
    """
    library = netcdf_c.library()
    _require_variable(variable)
    if not isinstance(codec, Codec):
        message = f"a codec is needed, such as pyfilter.Cuszp2(absolute=1e-3); got {codec!r}"
        raise Unsupported(message)
    name = variable.name
    model = variable.group().data_model
    if not str(model).startswith("NETCDF4"):
        _refuse(_NOT_NETCDF4, name)
    dtype = _element_type(variable)
    if dtype is None:
        message = f"variable {name!r} is of a user-defined or string type; only plain numbers can be compressed"
        raise Unsupported(message)
    dtypes.require(codec.requested_spec.name, dtype)
    attributes = {key: variable.getncattr(key) for key in variable.ncattrs() if key == "_Unsigned"}
    require_plain_sign(name, dtype, codec, attributes)
    if variable.ndim == 0:
        message = f"variable {name!r} is a scalar: HDF5 compresses chunks, and a scalar has none"
        raise Unsupported(message)
    if codec.range_fraction is not None and variable.endian() == "big" and variable.group().disk_format != "HDF5":
        # the padding would count for the range: by 1e20 of the wrong byte order, 1.2e27, all values would become 0
        message = (
            f"variable {name!r} is big-endian in a Zarr store. There netCDF-C pads chunks with a fill value of the "
            f"wrong byte order, so {codec!r} cannot tell the range. Give an absolute bound, or make the variable "
            "little-endian"
        )
        raise Unsupported(message)
    group, number = variable._grpid, variable._varid
    _refuse_other_filters(library, name, group, number)
    plugin.refresh()
    try:
        words = _filter_words(library, variable, codec)
        library.def_var_filter(group, number, registry().filter_id, words)
    except NetcdfError as error:
        if model == "NETCDF4_CLASSIC" and error.code in (_IN_DEFINE_MODE, _AFTER_ENDDEF):
            message = (
                f"variable {name!r} exists already, and a NETCDF4_CLASSIC file takes a filter only together with a "
                "new variable: use pyfilter.netcdf.create_variable instead of createVariable"
            )
            raise Unsupported(message) from error
        _refuse(error.code, name, error)


def create_variable(
    dataset: Any,
    name: str,
    datatype: Any,
    dimensions: Sequence[str],
    codec: Codec,
    *,
    fill_value: object = None,
    chunksizes: Sequence[int] | None = None,
) -> Any:
    """Create a compressed variable in a NETCDF4 or NETCDF4_CLASSIC file.

    Parameters
    ----------
    dataset : netCDF4.Dataset or netCDF4.Group
        Where to create it, open for writing.
    name : str
        The variable's name.
    datatype : str or numpy.dtype
        A number type that the codec takes.
    dimensions : sequence of str
        Names of existing dimensions, slowest first; at least one.
    codec : Codec
        Such as ``Cuszp2(absolute=0.01)``.
    fill_value : scalar or False, optional
        As in ``createVariable``: becomes the ``_FillValue`` attribute; False for no filling at all.
    chunksizes : sequence of int, optional
        Chunk shape; by default a shape of up to 4 MiB.

    Returns
    -------
    netCDF4.Variable
        The variable, without values.

    Raises
    ------
    ValueError, TypeError, NetcdfError, MissingExtra
        As `compress`.
    """
    library = netcdf_c.library()
    netCDF4 = require_netcdf4()
    dtype = np.dtype(datatype)
    dtypes.require(codec.requested_spec.name, dtype)
    if not dimensions:
        message = f"variable {name!r} is a scalar: HDF5 compresses chunks, and a scalar has none"
        raise Unsupported(message)
    if not str(dataset.data_model).startswith("NETCDF4"):
        _refuse(_NOT_NETCDF4, name)
    found = [_dimension(dataset, dimension) for dimension in dimensions]
    if chunksizes is None:
        shape = [len(dimension) for dimension in found]
        limits = [None if dimension.isunlimited() else len(dimension) for dimension in found]
        chunksizes = layout.choose(shape, dtype.itemsize, limits, codec.edges)
    elif len(chunksizes) != len(found):
        message = f"chunksizes must have {len(found)} numbers, one for each dimension; got {tuple(chunksizes)!r}"
        raise InvalidArgument(message)
    if dataset.data_model == "NETCDF4":
        variable = dataset.createVariable(
            name, dtype, tuple(dimensions), fill_value=fill_value, chunksizes=tuple(chunksizes), shuffle=False
        )
        compress(variable, codec)
        return variable
    if dtypes.is_big_endian(dtype):
        message = f"big-endian variables of NETCDF4_CLASSIC files are not supported, got {dtype.str!r}"
        raise Unsupported(message)
    plugin.refresh()
    group = dataset._grpid
    library.redef(group)
    try:
        number = library.def_var(group, name, _nc_type(dtype), tuple(dimension._dimid for dimension in found))
        library.def_var_chunking(group, number, tuple(chunksizes))
        if fill_value is False:
            library.def_var_fill(group, number, None)
        elif fill_value is not None:
            bits = dtypes.pattern(fill_value, dtype)
            library.def_var_fill(group, number, dtypes.value_of(bits, dtype).tobytes())
        words = _unfilled_words(codec, dtype) if fill_value is False else codec.filter_options
        library.def_var_filter(group, number, registry().filter_id, words)
    except NetcdfError as error:
        _refuse(error.code, name, error)
    finally:
        library.enddef(group)
    try:
        variable = netCDF4.Variable(dataset, name, dtype, tuple(found), id=number)
    except (AttributeError, KeyError, TypeError, ValueError):  # older netCDF4 takes names only
        variable = netCDF4.Variable(dataset, name, dtype, tuple(dimensions), id=number)
    dataset.variables[name] = variable
    return variable


def compress_file(
    path: str | os.PathLike[str], codecs: Mapping[str, Codec], guarantees: Mapping[str, Guarantee]
) -> Report:
    """Compress variables of a finished file so that more than the bound holds: valid ranges, signs, zeros, regions.

    netCDF4, h5netcdf and xarray write through HDF5's filter, which holds the bound alone. So let them write these
    variables without a codec, or with ``Lossless()``, and call this when the file is closed. Every value is checked
    before the new file takes the place of the old one, and attributes say what holds.

    Parameters
    ----------
    path : path-like
        A netCDF-4 or HDF5 file, which nobody has open.
    codecs : mapping
        By name or path of a variable, its codec. Other variables are copied as they are stored.
    guarantees : mapping
        By name or path of a variable in ``codecs``, a `pyfilter.Guarantee`, in the unit of the stored numbers.

    Returns
    -------
    Report
        What became of each variable.

    Raises
    ------
    ValueError
        If a name is not in the file or in ``codecs``, a region does not fit, or values have a lossy codec already.
    TypeError
        If a codec does not take a variable's type.
    RuntimeError
        If a value breaks its bound or guarantee (`pyfilter.PyfilterError`); the file is then unchanged.
    """
    import h5py

    from pyfilter import checking
    from pyfilter.rewrite import Rules
    from pyfilter.rewrite import compress_file as compress

    file_path = Path(path)
    missing = [name for name in guarantees if name not in codecs]
    if missing:
        message = f"{missing[0]!r} has a guarantee and no codec; codecs are given for {', '.join(codecs) or 'none'}"
        raise InvalidArgument(message)
    plugin.refresh()
    with h5py.File(file_path, "r") as file:
        for dataset in checking.datasets(file):
            before = checking.codec_of(dataset)
            asked = {str(dataset.name), str(dataset.name).lstrip("/"), str(dataset.name).rpartition("/")[2]}
            if before is not None and not before.is_lossless and asked & set(codecs):
                message = f"{dataset.name} is compressed with loss already ({before!r}): write it with Lossless() first"
                raise InvalidArgument(message)
    with tempfile.TemporaryDirectory(prefix=f".{file_path.name}.", dir=file_path.resolve().parent) as folder:
        result = Path(folder) / "result"
        report = compress(file_path, result, Rules(named=codecs, guarantees=guarantees), attributes=True)
        if not report.ok:
            wrong = ", ".join(row.path for row in report.rows if not row.ok)
            message = (
                f"{file_path} was not changed: some compressed values of {wrong} broke the bound; please report it"
            )
            raise InternalError(message)
        result.chmod(file_path.stat().st_mode)
        result.replace(file_path.resolve())
    return report


def require_plain_sign(name: str, dtype: np.dtype[Any], codec: Codec, attributes: Mapping[str, Any]) -> None:
    """Refuse integers whose ``_Unsigned`` attribute contradicts the sign of their type.

    A bound holds for the stored numbers: -1 of an i1 that means 255 might come back as 0.

    Raises
    ------
    Unsupported
        If the codec is lossy and the type's sign is not what the attribute says.
    """
    said = str(attributes.get("_Unsigned", "")).lower()
    if codec.is_lossless or said not in ("true", "false") or dtype.kind not in "iu":
        return
    if (said == "true") != (dtype.kind == "u"):
        message = (
            f"variable {name!r} is stored as {dtype} with _Unsigned = {said!r}, so a bound would be in the wrong "
            "unit. Store it with a type of that sign, or use Lossless()"
        )
        raise Unsupported(message)


def codec_of(variable: Any) -> Codec | None:
    """Return the codec of a netCDF4 variable, None where pyfilter has no part in it.

    Parameters
    ----------
    variable : netCDF4.Variable
        Of a file of any format.

    Raises
    ------
    ValueError
        If this release does not know the stored settings.
    """
    library = netcdf_c.library()
    _require_variable(variable)
    group, number = variable._grpid, variable._varid
    try:
        if registry().filter_id not in library.filter_ids(group, number):
            return None
        return Codec.from_cd_values(library.filter_words(group, number, registry().filter_id))
    except NetcdfError as error:
        if error.code == _NOT_NETCDF4:
            return None
        raise


def _require_variable(variable: Any) -> None:
    if not isinstance(variable, require_netcdf4().Variable):
        message = f"a netCDF4.Variable is needed, got {type(variable).__name__}"
        raise Unsupported(message)


def _filter_words(library: netcdf_c.Netcdf, variable: Any, codec: Codec) -> tuple[int, ...]:
    """Return the cd_values for a variable."""
    unfilled = library.is_unfilled(variable._grpid, variable._varid)
    dtype = _element_type(variable)
    return _unfilled_words(codec, dtype) if unfilled and dtype is not None else codec.filter_options


def _element_type(variable: Any) -> np.dtype[Any] | None:
    """Return the type of a variable's numbers, None for other values.

    netCDF4 shows a compound type of two floats as complex numbers where the file was opened with auto_complex.
    """
    if isinstance(variable.datatype, np.dtype):
        return variable.datatype
    return np.dtype(variable.dtype) if isinstance(variable.dtype, np.dtype) and variable.dtype.kind == "c" else None


def _unfilled_words(codec: Codec, dtype: np.dtype[Any]) -> tuple[int, ...]:
    """Return the stored form (docs/cd_values.md): it says that there is no fill value, which the user form cannot."""
    return (STAMP, *codec.filter_options[1:6], dtypes.code_of(dtype) or 0, 0, 0, 0, *[0, 0] * (dtype.kind == "c"))


def _refuse_other_filters(library: netcdf_c.Netcdf, name: str, group: int, number: int) -> None:
    others = {pipeline.filter_name(identity) for identity in library.filter_ids(group, number)}
    if library.is_shuffled(group, number):
        others.add("shuffle")
    if library.is_checksummed(group, number):
        others.add("fletcher32")
    if registry().filter_name in others:
        message = f"variable {name!r} is compressed by {registry().filter_name} already"
        raise InvalidArgument(message)
    if others:
        message = (
            f"variable {name!r} has {', '.join(sorted(others))} set, which netCDF would put before the codec: the "
            "bound would not hold; create the variable without it"
        )
        raise InvalidArgument(message)


def _refuse(code: int, name: str, error: NetcdfError | None = None) -> NoReturn:
    """Raise what a netCDF error number means here."""
    if code == _NO_FILTER:
        message = (
            f"netCDF does not find the filter {registry().filter_id} for variable {name!r}: call "
            f"pyfilter.register(), or set {plugin.VARIABLE}={plugin.plugin_folder()} before netCDF4 is imported"
        )
        raise NetcdfError(message, code) from error
    if code in (_IN_DEFINE_MODE, _AFTER_ENDDEF):
        message = f"variable {name!r} exists in the file already: compress it before values are written or synced"
        raise InvalidArgument(message) from error
    if code == _NOT_NETCDF4:
        message = f"variable {name!r} is not in a NETCDF4 or NETCDF4_CLASSIC file: netCDF-3 has no compression"
        raise Unsupported(message) from error
    if code == _BAD_ARGUMENT:
        message = f"netCDF refuses the settings for variable {name!r}: {error}"
        raise InvalidArgument(message) from error
    if error is not None:
        raise error
    message = f"variable {name!r}: netCDF error {code}"
    raise NetcdfError(message, code)


def _dimension(dataset: Any, name: str) -> Any:
    """Return a dimension by name, from the group or the nearest parent that has it."""
    group = dataset
    while group is not None:
        if name in group.dimensions:
            return group.dimensions[name]
        group = group.parent
    message = f"dimension {name!r} does not exist; create it first"
    raise InvalidArgument(message)


def _nc_type(dtype: np.dtype[Any]) -> int:
    return _NC_TYPES[f"{dtype.kind}{dtype.itemsize}"]


def require_netcdf4() -> Any:
    """Return the netCDF4 package, or say which extra installs it."""
    try:
        import netCDF4
    except ImportError as error:
        raise missing_extra("netCDF4", "netcdf") from error
    return netCDF4
