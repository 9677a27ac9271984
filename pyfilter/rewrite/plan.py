# SPDX-License-Identifier: BSD-3-Clause
"""Decides what each dataset of a file gets: its codec with an absolute bound, its chunks, its fill value."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
from h5py import h5d

from pyfilter import checking, dtypes, h5, netcdf
from pyfilter._chunks import layout, pipeline, transfer
from pyfilter.codecs import HierarchicalDelta, Lossless
from pyfilter.errors import InvalidArgument, Unsupported
from pyfilter.frames import make_request
from pyfilter.rewrite import coordinates
from pyfilter.rewrite.copy import Compression, is_number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyfilter._chunks.layout import Region
    from pyfilter.codecs.base import Codec

#: smaller datasets are copied as they are unless named: a chunk's index in the file costs more than they have
SMALL_BYTES = 4096
# chunks of the source are kept where they are of a size that suits the codecs
_KEPT_CHUNK_BYTES = (64 << 10, 64 << 20)
_SENTINEL_ATTRIBUTES = ("_FillValue", "missing_value")
#: notes of datasets that are copied as they are
INTEGERS, SMALL, FILTERED, UNSUITED = "integers", "small", "filtered already", "no codec takes the type"
EXCLUDED, NOT_NAMED = "left as it is", "not named"


@dataclass(frozen=True)
class Rules:
    """What the user asks for.

    Attributes
    ----------
    default : Codec or None
        For every dataset that is not named; None leaves them as they are.
    named : mapping
        By dataset path or name: its codec, None to leave it as it is.
    lossy_coordinates : bool
        Whether a lossy default also holds for coordinates; else they are kept bit for bit.
    integers : bool
        Whether named integers get HierarchicalDelta with the bound of a codec that does not take them.
    """

    default: Codec | None = None
    named: Mapping[str, Codec | None] = field(default_factory=dict)
    lossy_coordinates: bool = False
    integers: bool = False


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
        Why it is not what was asked for; empty where it is.
    coordinate : str
        What shows that it is a coordinate and therefore kept bit for bit; empty for all others.
    """

    path: str
    compression: Compression | None
    specials: tuple[np.generic, ...] = ()
    note: str = ""
    coordinate: str = ""


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
    named = {_match(file, name, found): codec for name, codec in rules.named.items()}
    kept = rules.default is not None and not rules.default.is_lossless and not rules.lossy_coordinates
    why = coordinates.reasons(file, found) if kept else {}
    decisions: list[Decision] = []
    for path, dataset in found.items():
        if path in named:
            codec = named[path]
            if codec is None:
                decisions.append(Decision(path, None, note=EXCLUDED))
            else:
                if rules.integers and dataset.dtype.kind in "iu" and not codec.takes_integers():
                    bound: dict[str, Any] = {codec.bound[0]: codec.bound[1]}
                    codec = HierarchicalDelta(**bound)
                _require_compressible(path, dataset, codec)
                decisions.append(_decide(path, dataset, codec))
        elif rules.default is None:
            decisions.append(Decision(path, None, note=NOT_NAMED))
        else:
            decision = _by_default(path, dataset, rules.default, path in why)
            decisions.append(replace(decision, coordinate=why.get(path, "")))
    return decisions


def _by_default(path: str, dataset: h5py.Dataset, codec: Codec, is_coordinate: bool) -> Decision:
    """Return the decision for a dataset that was not named."""
    if not is_number(dataset.id.get_type()):
        return Decision(path, None, note=UNSUITED)
    if dataset.dtype.kind != "f" and not codec.is_lossless:
        return Decision(path, None, note=INTEGERS)
    if dataset.dtype.kind != "f" and pipeline.pipeline_of(dataset).ids:
        return Decision(path, None, note=FILTERED)
    if _cannot(dataset) is not None or dataset.size * dataset.dtype.itemsize < SMALL_BYTES:
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
            whole = dataset.dtype.kind != "f"
            absolute = h5.absolute_of(fraction, survey.limits, whole=whole) if survey.limits is not None else 0.0
            if absolute > 0.0:
                codec = codec.with_absolute(absolute)
            else:
                codec, note = Lossless(), _no_range(survey.limits)
    return Decision(path, Compression(codec, chunk, change), specials, note)


@dataclass
class _Survey:
    """One pass over a dataset: its range without special values, and how often each of these occurs."""

    limits: tuple[float, float] | None
    counts: dict[int, int]


def _survey(dataset: h5py.Dataset, specials: tuple[np.generic, ...], chunk: tuple[int, ...]) -> _Survey:
    counts = {_bits(value): 0 for value in specials}

    class Masked:
        """The dataset without special values (floats: NaN in their place), counting them."""

        shape = dataset.shape
        dtype = dtypes.native(dataset.dtype)

        def __getitem__(self, region: Region) -> Any:
            values = np.asarray(dataset[region], dtype=self.dtype, order="C")
            patterns = values.view(dtypes.bits_dtype(self.dtype))
            plain = np.ones(values.shape, np.bool_)
            for bits in counts:
                hits = patterns == bits
                counts[bits] += int(np.count_nonzero(hits))
                plain &= ~hits
            if np.all(plain):
                return values
            return np.where(plain, values, self.dtype.type(np.nan)) if self.dtype.kind == "f" else values[plain]

    request = make_request(HierarchicalDelta(absolute=1.0), Masked.dtype, ())  # says the type only
    return _Survey(transfer.value_range(Masked(), request, chunk), counts)


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


def _match(file: h5py.File, name: str, found: Mapping[str, h5py.Dataset]) -> str:
    """Return the path of a dataset given by path (any of its links) or by its last name."""
    inside = file.get(name)
    if isinstance(inside, h5py.Dataset):
        place = checking.address(inside.id)
        path = next((path for path, dataset in found.items() if checking.address(dataset.id) == place), None)
        if path is not None:
            return path
    matches = [item for item in found if item.rpartition("/")[2] == name]
    if not matches:
        message = f"there is no dataset {name!r}; there are {', '.join(found) or 'none'}"
        raise InvalidArgument(message)
    if len(matches) > 1:
        message = f"{name!r} means {len(matches)} datasets ({', '.join(matches)}): give a path"
        raise InvalidArgument(message)
    return matches[0]


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
    if not is_number(dataset.id.get_type()) or not dtypes.takes(codec.requested_spec.name, dataset.dtype):
        known = ", ".join(dtypes.names(codec.requested_spec.name))
        message = f"{path} is of type {dataset.dtype}, which {codec!r} does not take; it takes {known}"
        raise Unsupported(message)
    if codec.bound[0] == "pointwise_relative" and dataset.dtype.kind != "f":
        message = f"{path} is of type {dataset.dtype}: a pointwise relative bound needs floating-point values"
        raise Unsupported(message)
    sign = checking.text_attribute(dataset, "_Unsigned")
    netcdf.require_plain_sign(path, dataset.dtype, codec, {"_Unsigned": sign})


def _bits(value: np.generic) -> int:
    return dtypes.pattern(value, value.dtype)
