# SPDX-License-Identifier: BSD-3-Clause
"""Records in a file how it was compressed, and what was verified.

CF has the global attribute ``history`` (section 2.6.2): it gets a line. CF's attributes of lossy compression (section
8.4, "Lossy Compression via Quantization") describe four algorithms that round mantissas: bitround, bitgroom,
digitround, granular_bitround. They count bits or digits. Ours is none of them and keeps an absolute or relative error,
so these attributes are not written; a file's existing attributes are kept. Variables get attributes of our own beside
them (`PREFIX`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from pyfilter import checking, guarantees
from pyfilter.codecs.base import Codec
from pyfilter.registry import registry

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyfilter.rewrite.copy import Compression
    from pyfilter.verification import Verification

ATTRIBUTE = "history"
#: attributes of a variable that was compressed with loss: docs/commands.md proposes their names
PREFIX = "lossy_compression"
_MODES = ("absolute", "pointwise_relative")


@dataclass(frozen=True)
class Claim:
    """The contents of the attributes: the bound's type and value, and the largest error found (None: not stated)."""

    mode: str
    bound: float
    max_error: float | None


def entry(what: str, codecs: Mapping[str, object], now: datetime | None = None) -> str:
    """Return a line: when, what, and the codec of each variable.

    Parameters
    ----------
    what : str
        The program or function.
    codecs : mapping
        By variable, its codec.
    now : datetime, optional
        The time to write; by default the present.
    """
    time = (now or datetime.now(timezone.utc)).astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    listed = "; ".join(f"{name} {codec!r}" for name, codec in codecs.items())
    return f"{time}: {what} (pyfilter {registry().version}): {listed or 'nothing compressed'}"


def prepended(line: str, before: str) -> str:
    """Return a history with a new line on top, where CDO and NCO put theirs."""
    return f"{line}\n{before}" if before else line


def is_netcdf(file: h5py.File) -> bool:
    """Whether a file is netCDF-4 or says that it follows conventions, so that ``history`` has its meaning there."""
    return "_NCProperties" in file.attrs or "Conventions" in file.attrs


def add(file: h5py.File, line: str) -> None:
    """Put a line into the history of an open file; a ``history`` that is no text stays as it is."""
    before = checking.text_attribute(file, ATTRIBUTE)
    if ATTRIBUTE in file.attrs and not before and not _is_empty(file.attrs.get(ATTRIBUTE)):
        return
    text = prepended(line, before).encode("utf-8")
    # a text of fixed length, as netCDF writes it
    file.attrs.create(ATTRIBUTE, np.bytes_(text), dtype=h5py.string_dtype("utf-8", len(text)))


def describe_file(path: Path, what: Mapping[str, tuple[Compression, Verification]]) -> None:
    """Record the codec, bound and verified error of each variable of a netCDF file; values are not touched.

    Of other files only what holds besides the bound is written, as `pyfilter.write` and `verify` need it.

    Parameters
    ----------
    path : Path
        The file.
    what : mapping
        By the path of a variable: how it was compressed, and the comparison of all its values.
    """
    with h5py.File(path, "r+") as file:
        for name, (how, found) in what.items():
            lossy = isinstance(how.codec, Codec) and how.codec.bound[0] in _MODES and how.codec.bound[1] > 0.0
            if is_netcdf(file) or (lossy and how.guarantee is not None):
                remove(file[name])
            if is_netcdf(file) and lossy and isinstance(how.codec, Codec):
                describe(file[name], how.codec, found)
            if lossy and how.guarantee is not None:
                guarantees.describe(file[name], how.guarantee)


def describe(dataset: h5py.Dataset, codec: Codec, found: Verification) -> None:
    """Record a variable's codec, bound and verified error in its attributes.

    Parameters
    ----------
    dataset : h5py.Dataset
        The variable, open for writing.
    codec : Codec
        The variable's codec, with an absolute or pointwise relative bound.
    found : Verification
        The comparison of all its values.
    """
    mode, bound = codec.bound
    texts = {
        PREFIX: "error-bounded",
        f"{PREFIX}_algorithm": codec.codec_name,
        f"{PREFIX}_implementation": f"pyfilter {registry().version}, HDF5 filter {registry().filter_id}",
        f"{PREFIX}_bound_type": mode,
    }
    # float64, as netCDF's classic model, which converted files have, knows no 64-bit integers
    numbers = {f"{PREFIX}_bound": bound, f"{PREFIX}_maximum_error": found.max_error}
    numbers[f"{PREFIX}_verified_values"] = float(found.values)
    if math.isfinite(found.psnr):
        numbers[f"{PREFIX}_psnr"] = found.psnr
    for name, text in texts.items():
        dataset.attrs.create(name, np.bytes_(text.encode()), dtype=h5py.string_dtype("utf-8", len(text.encode())))
    for name, number in numbers.items():
        dataset.attrs.create(name, np.float64(number))


def claimed(dataset: h5py.Dataset) -> Claim | None:
    """Return what the attributes of a dataset say of an earlier compression; None where they say nothing."""
    mode = checking.text_attribute(dataset, f"{PREFIX}_bound_type")
    bound, error = (_number(dataset, f"{PREFIX}_{name}") for name in ("bound", "maximum_error"))
    if mode not in _MODES or bound is None or bound <= 0.0:
        return None
    return Claim(mode, bound, error)


def remove(dataset: h5py.Dataset) -> None:
    """Remove what an earlier compression said of a dataset that is compressed anew."""
    for name in [name for name in dataset.attrs if name == PREFIX or name.startswith(f"{PREFIX}_")]:
        del dataset.attrs[name]


def _number(dataset: h5py.Dataset, name: str) -> float | None:
    value = np.asarray(dataset.attrs.get(name, ()))
    return float(value.reshape(-1)[0]) if value.size == 1 and value.dtype.kind in "fiu" else None


def _is_empty(value: Any) -> bool:
    return isinstance(value, h5py.Empty) or (isinstance(value, (str, bytes)) and not value)
