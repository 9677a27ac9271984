# SPDX-License-Identifier: BSD-3-Clause
"""Says in a file what was done to it, as CF has it: a line in the global attribute ``history`` (CF, section 2.6.2).

CF's attributes of lossy compression (section 8.4, "Lossy Compression via Quantization") are for four algorithms that
round mantissas (bitround, bitgroom, digitround, granular_bitround) and count bits or digits. Ours is none of them and
keeps an absolute or relative error, so these attributes are not written; those that a file has are kept.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from pyfilter import checking
from pyfilter.registry import registry

if TYPE_CHECKING:
    from collections.abc import Mapping

ATTRIBUTE = "history"


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


def _is_empty(value: Any) -> bool:
    return isinstance(value, h5py.Empty) or (isinstance(value, (str, bytes)) and not value)
