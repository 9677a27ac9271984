# SPDX-License-Identifier: BSD-3-Clause
"""Chooses each variable's codec: checks that it takes the stored type, resolves its bound for the whole variable."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from pyfilter import dtypes, h5, netcdf
from pyfilter._chunks import layout
from pyfilter.codecs.base import Codec, absolute_of
from pyfilter.errors import InvalidArgument, Unsupported

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Encodings = Mapping[str, Mapping[str, Any]]

#: types that xarray stores as other numbers than in memory: times, differences of times, booleans, objects
_ENCODED_KINDS = frozenset("mMbO")

#: parts of an encoding that ask for another filter than ours
COMPRESSIONS = ("zlib", "szip", "zstd", "bzip2", "blosc", "compression", "shuffle", "fletcher32")


def chosen(
    dataset: Any, codec: Codec | None, codecs: Mapping[str, Codec | None], given: Encodings
) -> dict[str, Codec | None]:
    """Return the codec of each variable that is spoken of, relative bounds resolved.

    Parameters
    ----------
    dataset : xarray.Dataset
        The dataset to save.
    codec : Codec, optional
        For every data variable whose stored type it takes.
    codecs : mapping
        By variable, and then it must take the type; None for no codec.
    given : mapping
        The encodings that the user gave, by variable.
    """
    found: dict[str, Codec | None] = {}
    for name in codecs:
        if name not in dataset.variables:
            message = f"{name!r} is not a variable of the dataset; there are {', '.join(map(str, dataset.variables))}"
            raise InvalidArgument(message)
    if codec is not None:
        require_codec(codec)
        for name in dataset.data_vars:
            variable = dataset.variables[name]
            if variable.ndim and name not in codecs and _suits(codec, name, variable, given.get(name, {})):
                found[str(name)] = codec
    for name, item in codecs.items():
        found[name] = item
        if item is not None:
            require_codec(item)
            _require_fit(item, name, dataset.variables[name], given.get(name, {}))
    return {
        name: item if item is None else _resolve(item, name, dataset.variables[name], given.get(name, {}))
        for name, item in found.items()
    }


def require_codec(codec: object) -> None:
    """Refuse objects that are no codec."""
    if not isinstance(codec, Codec):
        message = f"a codec is needed, such as pyfilter.Cuszp2(absolute=1e-3); got {codec!r}"
        raise Unsupported(message)


def stored_dtype(name: str, variable: Any, given: Mapping[str, Any]) -> np.dtype[Any]:
    """Return the element type that the variable will have in the file."""
    encoding = {**variable.encoding, **given}
    if variable.dtype.kind in _ENCODED_KINDS and not (variable.dtype.kind == "O" and variable.chunks):
        from xarray import conventions

        encoded = variable.copy(deep=False)
        encoded.encoding = encoding
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # xarray says it when it saves
            try:
                stored: np.dtype[Any] = np.dtype(conventions.encode_cf_variable(encoded, name=name).dtype)
            except (TypeError, ValueError):  # nothing that can be saved, as xarray will say
                stored = np.dtype(object)
        return stored
    try:
        stored = np.dtype(encoding.get("dtype") or variable.dtype)
    except TypeError:  # str and other types that are none of NumPy's
        stored = np.dtype(object)
    return stored


def _suits(codec: Codec, name: str, variable: Any, given: Mapping[str, Any]) -> bool:
    """Whether one codec for all data variables is meant for this one."""
    if any(given.get(key) for key in COMPRESSIONS):
        return False
    if not codec.is_lossless and variable.dtype.kind in _ENCODED_KINDS:
        return False
    stored = stored_dtype(name, variable, given)
    meant = stored.kind in "fc" or codec.is_lossless  # integers get a bound of theirs by name only
    return meant and dtypes.takes(codec.requested_spec.name, stored)


def _require_fit(codec: Codec, name: str, variable: Any, given: Mapping[str, Any]) -> None:
    if variable.ndim == 0:
        message = f"variable {name!r} is a scalar: HDF5 compresses chunks, and a scalar has none"
        raise Unsupported(message)
    stored = stored_dtype(name, variable, given)
    if not dtypes.takes(codec.requested_spec.name, stored):
        known = ", ".join(dtypes.names(codec.requested_spec.name))
        message = f"variable {name!r} is stored as {stored}, which {codec!r} does not take; it takes {known}"
        raise Unsupported(message)
    if variable.dtype.kind in _ENCODED_KINDS and not codec.is_lossless:
        message = (
            f"variable {name!r} holds {variable.dtype} and is stored as {stored}: a bound would be one of the stored "
            f"numbers, whose unit the file chooses. Use Lossless() for it, not {codec!r}"
        )
        raise Unsupported(message)
    others = [f"{key}={given[key]!r}" for key in COMPRESSIONS if given.get(key)]
    if others:
        message = (
            f"variable {name!r} has {codec!r} in codecs= and {', '.join(others)} in encoding=: a variable is "
            "compressed by one of them; leave the other out"
        )
        raise InvalidArgument(message)
    netcdf.require_plain_sign(name, stored, codec, {**variable.attrs, **variable.encoding, **given})


def fill_value(name: str, codec: Codec, variable: Any, given: Mapping[str, Any]) -> Any:
    """Return the value that means "missing" in the file, None where there is none.

    A lossy codec keeps one such value bit for bit: that which HDF5 knows, ``_FillValue``.

    Raises
    ------
    Unsupported
        If ``missing_value`` says another one, or several, and the codec is lossy.
    """
    declared: list[Any] = []
    for key in ("_FillValue", "missing_value"):
        value = {**variable.attrs, **variable.encoding, **given}.get(key)
        for item in [] if value is None else np.asarray(value).reshape(-1):
            if not any(item == other or (item != item and other != other) for other in declared):  # NaN is no NaN
                declared.append(item)
    if len(declared) > 1 and not codec.is_lossless:
        message = (
            f"variable {name!r} has several values for missing ones, {', '.join(map(str, declared))}: {codec!r} would "
            "keep only _FillValue bit for bit. Make them one value (xarray does when it decodes), or use Lossless()"
        )
        raise Unsupported(message)
    return declared[0] if declared else None


def _resolve(codec: Codec, name: str, variable: Any, given: Mapping[str, Any]) -> Codec:
    """Return the codec with the absolute bound that its relative one means for the whole variable."""
    fraction = codec.range_fraction
    stored = stored_dtype(name, variable, given)
    if fraction is None or variable.size == 0 or (stored.kind in "iu" and stored != variable.dtype):
        return codec  # the range of packed integers is the stored integers' own, chunk by chunk
    missing = fill_value(name, codec, variable, given)
    if variable.chunks is None:
        data: NDArray[Any] = np.asarray(variable.values)
        if missing is not None and not _holds(data.dtype, missing):
            missing = None
        return h5.resolve(codec, data, missing, layout.choose(data.shape, data.dtype.itemsize))
    return resolved_of_dask(codec, variable.data, missing)


def resolved_of_dask(codec: Codec, data: Any, missing: Any) -> Codec:
    """Return the codec with the absolute bound that its relative one means for all of a dask array, computed now."""
    fraction = codec.range_fraction
    if fraction is None or data.size == 0:
        return codec
    low, high = _limits(data, missing)
    whole = data.dtype.kind in "iu"
    absolute = absolute_of(fraction, (low, high), whole=whole) if 0 < high - low < math.inf else 0.0
    return codec.with_absolute(absolute) if absolute > 0.0 or (whole and low < high) else codec


def _holds(dtype: np.dtype[Any], value: Any) -> bool:
    """Whether an array of this type can have the value in it."""
    return dtype.kind in "fc" or bool(np.asarray(value).astype(dtype) == value)


def _limits(data: Any, missing: Any) -> tuple[Any, Any]:
    """Return the lowest and the highest finite value of a dask array that are not missing, in one pass over it."""
    import dask
    from dask import array

    if data.dtype.kind == "c":  # of both parts
        missing = None if missing is None else complex(missing)
        good = array.ones_like(data, dtype=bool) if missing is None else data != missing
        parts = [array.where(good, part, np.nan) for part in (data.real, data.imag)]
        limits = [_limits(part, None) for part in parts]
        return min(low for low, _ in limits), max(high for _, high in limits)
    if data.dtype.kind == "f":
        least, most, good = -np.inf, np.inf, array.isfinite(data)
    else:
        info = np.iinfo(data.dtype)
        least, most, good = info.min, info.max, array.ones_like(data, dtype=bool)
    if missing is not None:
        good = good & (data != missing)
    least, most = data.dtype.type(least), data.dtype.type(most)
    low, high = dask.compute(array.where(good, data, most).min(), array.where(good, data, least).max())
    return low.item(), high.item()
