# SPDX-License-Identifier: BSD-3-Clause
"""What our encoder made golden frames from: the values, the codec, and what was there before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from reference import adaptive_grid, decoder

import pyfilter

from .fields import Array


@dataclass(frozen=True, eq=False)
class GoldenCase:
    """A request; its name is that of the files."""

    name: str
    values: Array
    codec: pyfilter.Codec
    fill: Any = None
    #: what the array was before it was written to in part
    before: Array | None = None
    #: adaptive: whether the payload has parts with heads
    parts: bool = False

    @property
    def version(self) -> int:
        """Of the format, of the frame that the codec makes; these updates make the range smaller."""
        with_bins = isinstance(self.codec, pyfilter.Lossless) and self.codec.effort == "ratio"
        is_rans = isinstance(self.codec, pyfilter.Lorenzo) and self.codec.coder == "rans"
        parameters = bytes((with_bins, decoder.RANS if is_rans else adaptive_grid.PARTS if self.parts else 0))
        first = decoder.first_version(self.codec.spec().id, parameters)
        if self.values.dtype.kind in "cb" or self.values.dtype.str[1:] == "f2":
            return max(first, decoder.DERIVED_VERSION)
        return first if self.before is None else max(first, decoder.CARRIED_VERSION)

    def encode(self) -> bytes:
        """What our encoder makes of it today."""
        if self.before is None:
            return pyfilter.encode(self.values, self.codec, self.fill)
        over = pyfilter.encode(self.before, self.codec, self.fill)
        values = np.where(self.before == self.values, pyfilter.decode(over), self.values)
        return pyfilter.encode(values.astype(self.values.dtype), self.codec, self.fill, over=over)


@dataclass(frozen=True, eq=False)
class RecordCase:
    """A request for records; `before` as in `GoldenCase`."""

    name: str
    values: Array
    codec: pyfilter.Compound
    fill: Any = None
    before: Array | None = None
    version: int = 9

    def encode(self) -> bytes:
        """What our encoder makes of it today."""
        if self.before is None:
            return pyfilter.encode(self.values, self.codec, self.fill)
        over = pyfilter.encode(self.before, self.codec, self.fill)
        values = self.values.copy()
        decoded = pyfilter.decode(over).view(values.dtype)
        for name in values.dtype.names or ():
            kept = self.before[name] == values[name]
            values[name] = np.where(kept, decoded[name], values[name])
        return pyfilter.encode(values, self.codec, self.fill, over=over)
