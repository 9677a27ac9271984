# SPDX-License-Identifier: BSD-3-Clause
"""Compares datasets of any type bit for bit: numbers without a codec, text, enumerations, compounds, references.

Numbers and opaque values are compared by their bytes, so that NaN and the sign of zero count. Text and ragged rows are
compared by their contents, references by the path (and the region) of their target. Padding between the members of a
compound, and bytes that a text of fixed length has after its end, are no part of a value.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
from h5py import h5r, h5s

from pyfilter import dtypes
from pyfilter._chunks import layout
from pyfilter.errors import Unsupported
from pyfilter.verification.bounds import Verification

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

_SLAB_BYTES = 32 << 20
_X87_BYTES = 10  # of the 12 or 16 that a long double of x86 takes in memory


def difference(before: h5py.Dataset, after: h5py.Dataset) -> str | None:
    """Return why two datasets cannot be the same: their types or shapes; None where they may be.

    The byte order, and where members of a compound lie in the file, do not matter.

    Raises
    ------
    Unsupported
        If h5py has no type for one of them.
    """
    kinds = [_dtype(dataset) for dataset in (before, after)]
    if not _same_type(*kinds):
        return f"the type is {shown(kinds[0])} in A and {shown(kinds[1])} in B"
    if before.shape != after.shape:
        return f"the shape is {before.shape} in A and {after.shape} in B"
    return None


def compare(before: h5py.Dataset, after: h5py.Dataset) -> Verification:
    """Compare two datasets that `difference` finds nothing about, value by value.

    Returns
    -------
    Verification
        With bound 0; ``max_error`` is NaN where values differ, as there is no measure for them.
    """
    regions: Iterable[tuple[slice, ...]] = ()
    if before.shape is not None:  # else it has no values at all
        regions = layout.slabs(before.shape, (1,) * before.ndim, max(before.dtype.itemsize, 1), _SLAB_BYTES)
    return summary(equal(_values(before, region), _values(after, region), before.id, after.id) for region in regions)


def summary(parts: Iterable[NDArray[np.bool_]]) -> Verification:
    """Return the result for values of which the parts say whether they are the same, one part behind the other."""
    count = bad = 0
    first: int | None = None
    for part in parts:
        same = part.reshape(-1)
        wrong = int(same.size - np.count_nonzero(same))
        if wrong and first is None:
            first = count + int(np.argmin(same))
        count += same.size
        bad += wrong
    return Verification(
        ok=bad == 0,
        bound=0.0,
        max_error=0.0 if bad == 0 else math.nan,
        psnr=math.inf if bad == 0 else math.nan,
        specials_kept=bad == 0,
        values=count,
        violations=bad,
        first_violation=first,
    )


def equal(x: NDArray[Any], y: NDArray[Any], file_x: Any, file_y: Any) -> NDArray[np.bool_]:
    """Return for each element whether it is the same in both arrays, which have one shape and type.

    Parameters
    ----------
    x, y : numpy.ndarray
        The values, as h5py reads them.
    file_x, file_y
        Low-level identifiers of something in the file of each, where references lead.
    """
    if x.dtype.names is not None:
        same = np.ones(x.shape, np.bool_)
        for name in x.dtype.names:
            member = equal(x[name], y[name], file_x, file_y)  # of an array type: with axes of its own
            same &= member.reshape(*x.shape, -1).all(axis=-1)
        return same
    if x.dtype.kind == "O":
        pairs = zip(x.reshape(-1), y.reshape(-1), strict=True)
        listed = [_same_object(a, b, file_x, file_y) for a, b in pairs]
        return np.array(listed, np.bool_).reshape(x.shape)
    native = dtypes.native(x.dtype)
    a, b = (np.ascontiguousarray(item, dtype=native) for item in (x, y))
    if native.itemsize == 0:
        return np.ones(x.shape, np.bool_)
    bytes_x, bytes_y = (item.view(np.uint8).reshape(-1, native.itemsize) for item in (a.reshape(-1), b.reshape(-1)))
    if native.char in "gG" and np.finfo(native).nmant == 63:
        parts = 2 if native.char == "G" else 1
        bytes_x, bytes_y = (
            item.reshape(len(item), parts, -1)[:, :, :_X87_BYTES].reshape(len(item), -1) for item in (bytes_x, bytes_y)
        )
    result: NDArray[np.bool_] = (bytes_x == bytes_y).all(axis=1).reshape(x.shape)
    return result


def type_of(dataset: h5py.Dataset) -> str:
    """Return the type of a dataset in a word or a few, also where h5py has none for it."""
    try:
        return shown(dataset.dtype)
    except TypeError:
        return "a type that h5py does not know"


def shown(dtype: np.dtype[Any]) -> str:
    """Return a type in a word or a few, for a report."""
    special = h5py.check_string_dtype(dtype)
    if special is not None:
        return "text of variable length" if special.length is None else f"text of {special.length} bytes"
    members = h5py.check_enum_dtype(dtype)
    if members is not None:
        return f"enumeration of {', '.join(map(str, members))}"
    reference = h5py.check_ref_dtype(dtype)
    if reference is not None:
        return "region reference" if reference is h5r.RegionReference else "object reference"
    base = h5py.check_vlen_dtype(dtype)
    if base is not None:
        return f"rows of {shown(np.dtype(base))}"
    if dtype.subdtype is not None:
        return f"array {dtype.shape} of {shown(dtype.base)}"
    if dtype.names is not None:
        return f"compound of {', '.join(dtype.names)}"
    return "opaque" if dtype.kind == "V" else dtype.name


def _dtype(dataset: h5py.Dataset) -> np.dtype[Any]:
    try:
        dtype: np.dtype[Any] = dataset.dtype
    except TypeError as error:
        message = f"h5py has no type for it: {error}"
        raise Unsupported(message) from error
    return dtype


def _values(dataset: h5py.Dataset, region: Any) -> NDArray[Any]:
    if dataset.shape == () and dataset.dtype.subdtype is None:  # h5py would hand out what a single element holds
        single: NDArray[Any] = np.empty((), dtype=dataset.dtype)
        dataset.id.read(h5s.ALL, h5s.ALL, single)
        return single
    return np.asarray(dataset[region])


def _same_type(x: np.dtype[Any], y: np.dtype[Any]) -> bool:
    if x.names is not None or y.names is not None:
        return x.names == y.names and all(_same_type(x[name], y[name]) for name in x.names or ())
    if x.subdtype is not None or y.subdtype is not None:
        return x.shape == y.shape and _same_type(x.base, y.base)
    if dtypes.native(x) != dtypes.native(y):
        return False
    if (h5py.check_enum_dtype(x), h5py.check_ref_dtype(x)) != (h5py.check_enum_dtype(y), h5py.check_ref_dtype(y)):
        return False
    text_x, text_y = h5py.check_string_dtype(x), h5py.check_string_dtype(y)
    if (text_x is None) != (text_y is None) or (text_x is not None and text_x.length != text_y.length):
        return False
    rows_x, rows_y = h5py.check_vlen_dtype(x), h5py.check_vlen_dtype(y)
    if text_x is not None or rows_x is None or rows_y is None:
        return text_x is not None or rows_x is rows_y
    return _same_type(np.dtype(rows_x), np.dtype(rows_y))


def _same_object(x: Any, y: Any, file_x: Any, file_y: Any) -> bool:
    if isinstance(x, h5r.Reference):
        return isinstance(y, h5r.Reference) and _meaning(x, file_x) == _meaning(y, file_y)
    if isinstance(x, np.ndarray) and isinstance(y, np.ndarray):
        return x.shape == y.shape and bool(equal(x, y, file_x, file_y).all())
    return type(x) is type(y) and bool(x == y)


def _meaning(reference: Any, file: Any) -> tuple[object, ...]:
    """Return what a reference leads to: a path, and the extent and places of a region."""
    if not reference:
        return ("nothing",)
    try:
        path = h5r.get_name(reference, file)
        if not isinstance(reference, h5r.RegionReference):
            return (path,)
        space = h5r.get_region(reference, file)
    except (ValueError, RuntimeError, OSError):  # its target was deleted
        return ("nothing that is there",)
    kind = space.get_select_type()
    places: Any = ()
    if kind == h5s.SEL_HYPERSLABS:
        places = space.get_select_hyper_blocklist().tolist()
    elif kind == h5s.SEL_POINTS:
        places = space.get_select_elem_pointlist().tolist()
    return (path, space.shape, kind, str(places))
