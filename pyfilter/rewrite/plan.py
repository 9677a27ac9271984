# SPDX-License-Identifier: BSD-3-Clause
"""Decides what each dataset of a file gets: its codec with an absolute bound, its chunks, its fill value."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
from h5py import h5d

from pyfilter import checking, dtypes, guarantees, netcdf
from pyfilter._chunks import layout, pipeline, transfer
from pyfilter.codecs import Auto, Codec, HierarchicalDelta, Lossless
from pyfilter.codecs.base import absolute_of
from pyfilter.errors import InvalidArgument, Unsupported
from pyfilter.frames import make_request
from pyfilter.rewrite import alternatives, coordinates, rounding, values
from pyfilter.rewrite import rules as rule_book
from pyfilter.rewrite.copy import Compression, is_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyfilter._chunks.layout import Region as Slices
    from pyfilter.regions import Region
    from pyfilter.rewrite.rules import Rules

#: smaller datasets are copied as they are unless named: a chunk's index in the file costs more than they have
SMALL_BYTES = 4096
# chunks of the source are kept where they are of a size that suits the codecs
_KEPT_CHUNK_BYTES = (64 << 10, 64 << 20)
# read at a time to find a range: several arrays of this size are made of it
_SURVEY_BYTES = 16 << 20
# enough to see how values were rounded
_ROUNDING_SAMPLE_BYTES = 1 << 20
_SENTINEL_ATTRIBUTES = ("_FillValue", "missing_value")
#: notes of datasets that are copied as they are
INTEGERS, SMALL, FILTERED, UNSUITED = "integers", "small", "filtered already", "no codec takes the type"
KEPT_LOSSLESS = "bit for bit"
EXCLUDED, NOT_NAMED = "left as it is", "not named"
SMALLEST = "nothing else is smaller"


@dataclass(frozen=True)
class Decision:
    """What one dataset gets.

    Attributes
    ----------
    path : str
        The dataset.
    compression : Compression or None
        None: it is copied as it is stored.
    specials : tuple
        Values that must come back bit for bit.
    note : str
        Why the request was not followed; empty where it is.
    coordinate : str
        What shows that it is a coordinate and therefore kept bit for bit; empty for all others.
    rounded : str
        How values that get a lossy codec were rounded before (rounding.py); empty where they were not.
    """

    path: str
    compression: Compression | None
    specials: tuple[np.generic, ...] = ()
    note: str = ""
    coordinate: str = ""
    rounded: str = ""


def make_plan(file: h5py.File, rules: Rules) -> list[Decision]:
    """Return a decision for each dataset, in the order of the file.

    Raises
    ------
    InvalidArgument
        If a named dataset does not exist, or a name means several.
    Unsupported
        If a named dataset cannot be compressed by its codec.
    """
    everything = checking.datasets(file)
    found = {str(dataset.name): dataset for dataset in everything if not checking.is_bare_dimension(dataset)}
    limits = {rule_book.match(file, name, found): pair for name, pair in rules.ranges.items()}
    held = {rule_book.match(file, name, found): guarantee for name, guarantee in rules.guarantees.items()}
    parts = {rule_book.match(file, name, found): regions for name, regions in rules.regions.items()}
    named = {rule_book.match(file, name, found): codec for name, codec in rules.named.items()}
    why = {} if rules.lossy_coordinates else coordinates.reasons(file, found)
    decisions: list[Decision] = []
    for path, dataset in found.items():
        if path in named:
            decision, asked = _by_name(path, dataset, named[path], rules), named[path]
        else:
            asked, exact = rule_book.listed(path, dataset, rules)
            if exact and asked is not None and not asked.is_lossless and is_large(dataset, "iu"):
                decision = _by_name(path, dataset, asked, rules)
            elif asked is None:
                decision = Decision(path, None, note=EXCLUDED if exact else NOT_NAMED)
            else:
                reason = "" if exact or asked.is_lossless else why.get(path, "")
                decision = replace(_by_default(path, dataset, asked, bool(reason)), coordinate=reason)
        if path in held:
            decision = _held(decision, dataset, held[path])
        else:
            decision = _guarded(decision, dataset, limits.get(path), parts.get(path), rules)
        chosen = rules.choose and isinstance(asked, (Auto, Lossless))
        decisions.append(_smallest(decision, dataset, rules.fast) if chosen else decision)
    return decisions


def _guarded(
    decision: Decision,
    dataset: h5py.Dataset,
    stated: tuple[float, float] | None,
    regions: Sequence[Region] | None,
    rules: Rules,
) -> Decision:
    """Return a decision with the guarantees that hold besides the bound."""
    asked = decision.compression
    if asked is None or asked.codec.is_lossless:
        return decision
    if dataset.dtype.kind == "c":  # complex numbers have no order: an attribute that says a range is not for them
        stated, regions = stated or (-math.inf, math.inf), regions or ()
    if stated is None:
        stated = guarantees.of_attributes(dataset) if rules.valid_range else (-math.inf, math.inf)
        listed = rule_book.closest(decision.path, dataset, rules.listed_ranges)
        if listed is not None and max(stated[0], listed[0]) <= min(stated[1], listed[1]):
            stated = max(stated[0], listed[0]), min(stated[1], listed[1])
    if regions is None:
        regions = rule_book.closest(decision.path, dataset, rules.listed_regions) or ()
    found = guarantees.Guarantee(*stated, rules.keep_sign, (), tuple(regions))
    return _held(decision, dataset, found) if found.limits or regions else decision


def _held(decision: Decision, dataset: h5py.Dataset, guarantee: guarantees.Guarantee) -> Decision:
    asked = decision.compression
    if asked is None or asked.codec.is_lossless:
        return decision
    guarantee = replace(guarantee, specials=decision.specials).fitted(dataset)
    return replace(decision, compression=replace(asked, guarantee=guarantee))


def _by_name(path: str, dataset: h5py.Dataset, codec: Codec | None, rules: Rules) -> Decision:
    """Return the decision for a dataset that the user named: what cannot be done for it is an error."""
    if codec is None:
        return Decision(path, None, note=EXCLUDED)
    codec = _for_integers(dataset, codec, rules)
    _require_compressible(path, dataset, codec)
    return _decide(path, dataset, codec)


def _for_integers(dataset: h5py.Dataset, codec: Codec, rules: Rules) -> Codec:
    if rules.integers and dataset.dtype.kind in "iu" and not codec.takes_integers():
        bound: dict[str, Any] = {codec.bound[0]: codec.bound[1]}
        return HierarchicalDelta(**bound)
    return codec


def _smallest(decision: Decision, dataset: h5py.Dataset, fast: bool) -> Decision:
    """Return a decision with the alternative that needs the fewest bytes on a sample."""
    if decision.note == SMALL or not _has_choice(dataset):
        small = decision.compression is None and not is_large(dataset, "fiuc") and is_number(dataset.id.get_type())
        return replace(decision, note=SMALL) if small else decision
    asked = decision.compression
    number = is_number(dataset.id.get_type())
    if asked is None:  # integers, compounds and the like: bit for bit
        asked = Compression(Lossless(), chunk_of(dataset, Lossless().edges), None)
    assert isinstance(asked.codec, Codec)
    choice = alternatives.choose(dataset, asked.codec, asked.chunk, asked.fill, number=number, fast=fast)
    if choice.codec is None:
        return replace(decision, compression=None, note=SMALLEST)
    note = decision.note
    if decision.compression is None:
        note = KEPT_LOSSLESS
    elif choice.codec.is_lossless and not asked.codec.is_lossless:
        note = f"kept lossless: smaller than {asked.codec.bound[0]} {asked.codec.bound[1]:.4g}"
    return replace(decision, compression=replace(asked, codec=choice.codec, choice=choice), note=note)


def is_large(dataset: h5py.Dataset, kinds: str) -> bool:
    """Whether a dataset has numbers of one of these kinds, and enough of them to be compressed by default."""
    number = is_number(dataset.id.get_type()) and dataset.dtype.kind in kinds
    return number and _cannot(dataset) is None and bool(dataset.size * dataset.dtype.itemsize >= SMALL_BYTES)


def _has_choice(dataset: h5py.Dataset) -> bool:
    """Whether a dataset may get other filters: values of a fixed size, in this file, enough of them."""
    if _cannot(dataset) is not None:
        return False
    tid = dataset.id.get_type()
    if values.has_references(tid) or values.has_sequences(tid):
        return False
    return bool(dataset.size * tid.get_size() >= SMALL_BYTES) and alternatives.kept_bytes(dataset) is not None


def _by_default(path: str, dataset: h5py.Dataset, codec: Codec, is_coordinate: bool) -> Decision:
    """Return the decision for a dataset that was not named: what cannot be compressed is copied as it is."""
    if not is_number(dataset.id.get_type()):
        return Decision(path, None, note=UNSUITED)
    if dataset.dtype.kind not in "fc" and not codec.is_lossless:  # a pattern or a default is for floats
        return Decision(path, None, note=INTEGERS)
    if dataset.dtype.kind not in "fc" and pipeline.pipeline_of(dataset).ids:
        return Decision(path, None, note=FILTERED)
    if not is_large(dataset, "fiuc"):
        return Decision(path, None, note=SMALL)
    if is_coordinate:
        return replace(_decide(path, dataset, Lossless()), note="coordinate, kept lossless")
    return _decide(path, dataset, codec)


def _decide(path: str, dataset: h5py.Dataset, codec: Codec) -> Decision:
    chunk = chunk_of(dataset, codec.edges)
    fill, change, others = missing_values(dataset)
    specials = tuple(value for value in (fill, *others) if value is not None)
    note = ""
    if not codec.is_lossless and (codec.range_fraction is not None or others):
        survey = _survey(dataset, specials, chunk)
        missing = next((value for value in others if survey.counts[_bits(value)]), None)
        if (
            missing is not None
            and change is None
            and "_FillValue" not in dataset.attrs
            and (fill is None or not survey.counts[_bits(fill)])
        ):
            # the fill value is netCDF's default and not in use: the one in use may take its place
            fill = change = missing
            missing = next((value for value in others if value is not fill and survey.counts[_bits(value)]), None)
        if missing is not None:
            codec, note = Lossless(), f"{missing} is missing_value but not the fill value: kept lossless"
        elif (fraction := codec.range_fraction) is not None:
            whole = dataset.dtype.kind in "iu"
            absolute = absolute_of(fraction, survey.limits, whole=whole) if survey.limits is not None else 0.0
            if absolute > 0.0:
                codec = codec.with_absolute(absolute)
            else:
                codec, note = Lossless(), _no_range(survey.limits)
    rounded = ""
    if dataset.dtype.kind == "f" and not codec.is_lossless:
        regions = alternatives.sample_regions(dataset.shape, chunk, dataset.dtype.itemsize, _ROUNDING_SAMPLE_BYTES)
        dtype = dtypes.native(dataset.dtype)
        rounded = rounding.described((np.asarray(dataset[region], dtype=dtype) for region in regions), specials)
    return Decision(path, Compression(codec, chunk, change), specials, note, rounded=rounded)


@dataclass
class _Survey:
    """A pass over a dataset: its range without special values, and how often each special value occurs."""

    limits: tuple[float, float] | None
    counts: dict[int, int]


def _survey(dataset: h5py.Dataset, specials: tuple[np.generic, ...], chunk: tuple[int, ...]) -> _Survey:
    counts = {_bits(value): 0 for value in specials}

    class Masked:
        """The dataset without special values (floats: NaN in their place), counting them."""

        shape = dataset.shape
        dtype = dtypes.native(dataset.dtype)

        def __getitem__(self, region: Slices) -> Any:
            part = np.asarray(dataset[region], dtype=self.dtype, order="C")
            plain = np.ones(part.shape, np.bool_)
            for bits in counts:
                hits = dtypes.has_pattern(part, bits)
                counts[bits] += int(np.count_nonzero(hits))
                plain &= ~hits
            if np.all(plain):
                return part
            return part[plain] if self.dtype.kind != "f" else np.where(plain, part, self.dtype.type(np.nan))

    request = make_request(HierarchicalDelta(absolute=1.0), Masked.dtype, ())  # says the type only
    return _Survey(transfer.value_range(Masked(), request, chunk, _SURVEY_BYTES), counts)


def _no_range(limits: tuple[float, float] | None) -> str:
    if limits is None or limits[0] == limits[1]:
        return "all values are equal or missing: kept lossless"
    return "the bound is below 1, of integers: kept lossless"


def missing_values(dataset: h5py.Dataset) -> tuple[np.generic | None, np.generic | None, tuple[np.generic, ...]]:
    """Return the fill value of the copy (None: zero), the change to make for it, and other values for "missing"."""
    dtype = dtypes.native(dataset.dtype)
    plist = dataset.id.get_create_plist()
    declared: dict[int, np.generic] = {}
    for name in _SENTINEL_ATTRIBUTES:
        with contextlib.suppress(InvalidArgument, OSError, TypeError, KeyError):
            for sentinel in np.asarray(dataset.attrs[name]).reshape(-1):
                bits = dtypes.pattern(sentinel, dtype)
                declared[bits] = dtypes.value_of(bits, dtype)
    own: np.generic | None = None
    change: np.generic | None = None
    if plist.fill_value_defined() == h5d.FILL_VALUE_USER_DEFINED:
        stored = np.zeros(1, dtype=dtype)
        plist.get_fill_value(stored)
        own = stored[0]
    elif declared:
        own = change = next(iter(declared.values()))
    # zero and NaN come back bit for bit in any case
    kept = {0} if own is None else {0, _bits(own)}
    others = tuple(
        value for bits, value in declared.items() if bits not in kept and not (dtype.kind == "f" and np.isnan(value))
    )
    return own if own is not None and _bits(own) != 0 else None, change, others


def chunk_of(dataset: h5py.Dataset, edges: tuple[int, ...]) -> tuple[int, ...]:
    """Return the chunk shape for a copy: that of the dataset where it suits the codecs, else one for these edges."""
    itemsize = dataset.dtype.itemsize
    if dataset.chunks is not None:
        size = math.prod(dataset.chunks) * itemsize
        if _KEPT_CHUNK_BYTES[0] <= size <= _KEPT_CHUNK_BYTES[1]:
            return tuple(dataset.chunks)
    return layout.choose(dataset.shape, itemsize, dataset.maxshape, edges)


def _cannot(dataset: h5py.Dataset) -> str | None:
    """Return why a dataset cannot be chunked, None where it can."""
    if dataset.shape is None or dataset.shape == ():
        return "it is a scalar"
    if 0 in dataset.shape:
        return "it has no values"
    return None


def _require_compressible(path: str, dataset: h5py.Dataset, codec: Codec) -> None:
    reason = _cannot(dataset)
    if reason is not None:
        message = f"{path} cannot be compressed: {reason}"
        raise Unsupported(message)
    if not is_number(dataset.id.get_type()) and dtypes.code_of(dataset.dtype) is not None:
        message = f"{path} is of type {dataset.dtype}, which compress copies as it is: use pyfilter.create_dataset"
        raise Unsupported(message)
    if not is_number(dataset.id.get_type()) or not dtypes.takes(codec.requested_spec.name, dataset.dtype):
        known = ", ".join(dtypes.names(codec.requested_spec.name))
        message = f"{path} is of type {dataset.dtype}, which {codec!r} does not take; it takes {known}"
        raise Unsupported(message)
    if codec.bound[0] == "pointwise_relative" and dataset.dtype.kind not in "fc":
        message = f"{path} is of type {dataset.dtype}: a pointwise relative bound needs floating-point values"
        raise Unsupported(message)
    sign = checking.text_attribute(dataset, "_Unsigned")
    netcdf.require_plain_sign(path, dataset.dtype, codec, {"_Unsigned": sign})


def _bits(value: np.generic) -> int:
    return dtypes.pattern(value, value.dtype)
