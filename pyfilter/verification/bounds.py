# SPDX-License-Identifier: BSD-3-Clause
"""Checks a bound: exactly, value by value, with special values bit for bit.

Integers are compared as integers; their differences are unsigned, so they cannot overflow. Of complex numbers each part
is compared.

x - y of two floats is s + e without error (Knuth's TwoSum: s the rounded difference, e its rounding error), and
rounding keeps order. So |s| < bound proves the bound kept, |s| > bound proves it broken, and where |s| == bound the
sign of e says which. float32 is looked at in float64, where both are the same values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from pyfilter import checking, dtypes, h5
from pyfilter._chunks import layout, pipeline
from pyfilter.codecs.base import Codec, positive_float
from pyfilter.errors import InvalidArgument, Unsupported
from pyfilter.frames import plain_array
from pyfilter.records import Compound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    Mask = NDArray[np.bool_]

_SLAB_BYTES = 32 << 20


@dataclass(frozen=True)
class Verification:
    """The result of a comparison.

    Attributes
    ----------
    ok : bool
        Every value keeps the bound, and special values are kept.
    bound : float
        The bound that was checked: absolute, in the unit of the data, or a fraction of each value where
        ``pointwise_relative`` says so; 0.0 where values must be bit-exact.
    max_error : float
        The largest error of a finite value, rounded to float64.
    psnr : float
        Peak signal-to-noise ratio in dB: 20 log10(range / root mean square error) of the finite values; infinite
        where there is no error.
    specials_kept : bool
        NaN (payload included), infinities and fill values came back bit for bit, and no other value became one.
    values : int
        How many values were compared.
    violations : int
        How many break the bound or are special and changed.
    first_violation : int or None
        The C-order index of the first of them.
    pointwise_relative : bool
        Whether the bound is a fraction of each value. Zeros then must come back bit for bit.
    """

    ok: bool
    bound: float
    max_error: float
    psnr: float
    specials_kept: bool
    values: int
    violations: int
    first_violation: int | None
    pointwise_relative: bool = False


class Comparison:
    """A comparison fed in pieces; see `verify`.

    Parameters
    ----------
    dtype
        Element type of both sides.
    bound
        Absolute bound; 0.0 asks for equal bits.
    specials
        Values that must come back bit for bit: the fill value and the like.
    sentinel
        The special value that no other value may turn into; None for none.
    pointwise
        Whether the bound is a fraction of each value.
    """

    def __init__(
        self,
        dtype: np.dtype[Any],
        bound: float,
        specials: Sequence[object] = (),
        sentinel: object = None,
        pointwise: bool = False,
    ) -> None:
        self.dtype = dtypes.native(dtype)
        # other values are compared bit by bit
        self.bound = bound if self.dtype.kind in "fiuc" or dtypes.is_bfloat16(self.dtype) else 0.0
        self.pointwise = pointwise
        self._special_bits = {dtypes.pattern(value, self.dtype) for value in specials}
        self._sentinel_bits = None if sentinel is None else dtypes.pattern(sentinel, self.dtype)
        self._max_error = 0.0
        self._squares = 0.0
        self._low, self._high = math.inf, -math.inf
        self._finite = self._values = self._violations = 0
        self._first: int | None = None
        self._specials_kept = True

    def add(self, original: NDArray[Any], stored: NDArray[Any], index: int = 0) -> None:
        """Compare two arrays of one shape; ``index`` is the C-order place of their first value in the whole."""
        x = np.ascontiguousarray(original, dtype=self.dtype).reshape(-1)
        y = np.ascontiguousarray(stored, dtype=self.dtype).reshape(-1)
        if self.dtype.kind not in "fiuc" and not dtypes.is_bfloat16(self.dtype):
            x, y = (item.view(dtypes.bits_dtype(self.dtype)) for item in (x, y))
        self._values += x.size
        special = np.zeros(x.shape, np.bool_)
        for pattern in self._special_bits:
            special |= dtypes.has_pattern(x, pattern)
        turned = np.zeros(x.shape, np.bool_)  # into the value that no other may turn into
        if self._sentinel_bits not in (None, 0):
            turned = dtypes.has_pattern(y, self._sentinel_bits) & ~dtypes.has_pattern(x, self._sentinel_bits)
        parts = 2 if self.dtype.kind == "c" else 1
        if parts == 2:
            x, y = (item.view(dtypes.part_of(self.dtype)) for item in (x, y))
            special, turned = np.repeat(special, 2), np.repeat(turned, 2)
        bits = dtypes.bits_dtype(self.dtype)
        same = x.view(bits) == y.view(bits)
        if dtypes.is_bfloat16(self.dtype):  # the upper halves of float32; ml_dtypes warns of NaNs
            x, y = ((item.view(bits).astype(np.uint32) << 16).view(np.float32) for item in (x, y))
        add = self._add_floats if x.dtype.kind == "f" else self._add_integers
        good = add(x, y, same, special, turned).reshape(-1, parts).all(axis=1)
        bad = int(good.size - np.count_nonzero(good))
        if bad:
            first = index + int(np.argmin(good))
            self._violations += bad
            self._first = first if self._first is None else min(self._first, first)

    def _add_floats(self, x: NDArray[Any], y: NDArray[Any], same: Mask, special: Mask, turned: Mask) -> Mask:
        finite = np.isfinite(x) & ~special
        kept = (same | finite) & ~turned
        if self.bound > 0.0:
            # a special value on one side only would make the arithmetic warn; such values are judged by their bits
            both = finite & np.isfinite(y)
            good: NDArray[np.bool_] = kept & np.where(both, self._within(x, y, both), same)
            if self.pointwise:
                good &= same | (x != 0)
        else:
            both = finite & np.isfinite(y)
            self._within(x, y, both)
            good = same
        self._specials_kept &= bool(np.all(kept & (np.isfinite(y) | ~finite)))
        return good

    def _within(self, x: NDArray[Any], y: NDArray[Any], both: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return whether |x - y| <= bound in exact arithmetic where ``both`` holds; keep the statistics."""
        a = np.where(both, x, 0).astype(np.float64)
        b = np.where(both, y, 0).astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            s = a - b
            z = s - a
            e = (a - (s - z)) - (b + z)  # TwoSum of a and -b
            size = np.abs(s)
            if self.pointwise:
                inside = self._within_parts(a, b, size)
            else:
                inside = (size < self.bound) | ((size == self.bound) & (np.where(s > 0, e, -e) <= 0))
            self._squares += float(np.sum(np.square(size)))
        if np.any(both):
            self._finite += int(np.count_nonzero(both))
            self._max_error = max(self._max_error, float(size.max()))
            chosen = a[both]
            self._low, self._high = min(self._low, float(chosen.min())), max(self._high, float(chosen.max()))
        return inside

    def _within_parts(self, a: NDArray[Any], b: NDArray[Any], size: NDArray[Any]) -> NDArray[np.bool_]:
        """Return whether |a - b| <= bound * |a|; ``size`` is the left side, rounded. Close cases use fractions."""
        most = self.bound * np.abs(a)
        tiny = most < 2.0**-1000
        inside: NDArray[np.bool_] = ((size < most * (1 - 2.0**-50)) & ~tiny) | (a == b)
        doubtful = ~inside & (tiny | (size <= most * (1 + 2.0**-50)))
        for i in np.flatnonzero(doubtful):
            exact = Fraction(float(a[i]))
            inside[i] = abs(exact - Fraction(float(b[i]))) <= Fraction(self.bound) * abs(exact)
        return inside

    def _add_integers(self, x: NDArray[Any], y: NDArray[Any], same: Mask, special: Mask, turned: Mask) -> Mask:
        unsigned = dtypes.bits_dtype(self.dtype)
        a, b = x.view(unsigned), y.view(unsigned)
        ordinary = ~special
        kept = (same | ordinary) & ~turned
        self._specials_kept &= bool(np.all(kept))
        error = np.where(x > y, a - b, b - a)  # modulo 2^bits, where it fits
        error[~ordinary] = 0
        if np.any(ordinary):
            self._finite += int(np.count_nonzero(ordinary))
            self._max_error = max(self._max_error, float(error.max()))
            self._squares += float(np.sum(np.square(error.astype(np.float64))))
            chosen = x[ordinary]
            self._low, self._high = min(self._low, int(chosen.min())), max(self._high, int(chosen.max()))
        most = min(math.floor(self.bound), int(np.iinfo(unsigned).max))
        good: NDArray[np.bool_] = kept & (same | (ordinary & (error <= unsigned.type(most))))
        return good

    def result(self) -> Verification:
        """Return the result so far."""
        return Verification(
            ok=self._violations == 0,
            bound=self.bound,
            max_error=self._max_error,
            psnr=self._psnr(),
            specials_kept=self._specials_kept,
            values=self._values,
            violations=self._violations,
            first_violation=self._first,
            pointwise_relative=self.pointwise,
        )

    def _psnr(self) -> float:
        if self._squares == 0.0 or self._finite == 0:
            return math.inf
        spread = self._high - self._low
        noise = math.sqrt(self._squares / self._finite)
        return 20.0 * math.log10(spread / noise) if spread > 0.0 and math.isfinite(noise) else -math.inf


def verify(
    original: ArrayLike, stored: ArrayLike, codec: Codec | Compound | float | None = None, *, fill_value: object = None
) -> Verification:
    """Compare values with the decoded ones, and tell whether the bound is kept.

    The comparison of every value with the bound is exact. Close and reopen the file first: values read from an open
    dataset may come from HDF5's chunk cache, and then show no error.

    Parameters
    ----------
    original : array_like or dataset
        The values before.
    stored : array_like or dataset
        The values after; of the same shape and element type.
    codec : Codec or float, optional
        The bound: a codec, or an absolute bound in the unit of the data (0 asks for equal bits). By default the bound
        of ``stored`` if it is a dataset with our filter. A relative bound (or psnr) is taken of the original's whole
        range.
    fill_value : scalar, optional
        Must come back bit for bit, and is left out of the range. By default the bound of ``stored``, if that is a
        dataset with our filter.

    Returns
    -------
    Verification
        The findings; ``ok`` sums them up.

    Raises
    ------
    ValueError
        If shapes or types differ, or no bound is known.
    """
    if codec is None or isinstance(codec, Compound):
        known = isinstance(getattr(stored, "_h5ds", stored), h5py.Dataset) or checking.is_netcdf_variable(stored)
        found = codec if codec is not None else checking.codec_of(stored) if known else None
        if isinstance(found, Compound):
            message = "records are compared field by field: verification.verify_records, or pyfilter verify A B"
            raise Unsupported(message)
        codec = found
        if codec is None:
            message = "no bound is known: pass a codec or an absolute bound"
            raise InvalidArgument(message)
    if fill_value is None and isinstance(stored, h5py.Dataset):
        fill = pipeline.fill_of(stored.id.get_create_plist(), dtypes.native(stored.dtype))[()]
        fill_value = fill if dtypes.pattern(fill, fill.dtype) != 0 else None
    x, y = (item if isinstance(item, h5py.Dataset) else plain_array(item) for item in (original, stored))
    if x.shape != y.shape or dtypes.native(x.dtype) != dtypes.native(y.dtype):
        message = f"shapes and types must be equal, got {x.shape}, {x.dtype} and {y.shape}, {y.dtype}"
        raise InvalidArgument(message)
    if dtypes.code_of(x.dtype) is None:
        message = f"values of type {x.dtype} cannot be compared: numbers are needed"
        raise Unsupported(message)
    chunk = layout.choose(x.shape, x.dtype.itemsize)
    if isinstance(codec, Codec):
        resolved = h5.resolve(codec, x, fill_value, chunk)
        # special values and a single number have no range: then nothing may change at all
        mode, bound = resolved.bound if resolved.bound[0] in ("absolute", "pointwise_relative") else ("none", 0.0)
    else:
        mode = "absolute"
        bound = positive_float("the bound", codec, or_zero=True)
    specials = () if fill_value is None else (fill_value,)
    comparison = Comparison(x.dtype, bound, specials, fill_value, mode == "pointwise_relative")
    index = 0
    for slab in layout.slabs(x.shape, (1,) * len(x.shape), x.dtype.itemsize, _SLAB_BYTES):
        part = np.asarray(x[slab])
        comparison.add(part, np.asarray(y[slab]), index)
        index += part.size
    return comparison.result()
