# SPDX-License-Identifier: BSD-3-Clause
"""Parts of an array with a tighter bound than the rest: boxes and masks, and their texts. guarantees.py holds them."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from pyfilter.codecs.base import positive_float
from pyfilter.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pyfilter._chunks.layout import Region as Slices

#: what a text of a region may be, for messages
REGION_FORMS = "BOUND@START:STOP,... with a slice for each axis, or BOUND@MASK, a dataset of the file"


@dataclass(frozen=True)
class Region:
    """A part of an array with an absolute bound of its own: a box, or where a mask is not zero.

    Attributes
    ----------
    bound : float
        Absolute, in the unit of the stored values; 0 keeps the part bit for bit.
    box : tuple of slice or of (start, stop)
        For each axis where the part begins and ends, as a slice without a step has it; empty with a mask.
    mask : str
        The path of an integer or boolean dataset in the same file: of the array's shape, or the shape of its last axes.

    Raises
    ------
    ValueError
        If the bound is negative or no number, or box and mask are both given or both missing.
    """

    bound: float
    box: tuple[Any, ...] = ()
    mask: str = ""
    _inside: NDArray[np.bool_] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Check the fields."""
        object.__setattr__(self, "bound", positive_float("the bound of a region", self.bound, or_zero=True))
        if bool(self.box) == bool(self.mask):
            message = f"a region needs either a box or a mask; got box={self.box!r}, mask={self.mask!r}"
            raise InvalidArgument(message)
        if any(isinstance(part, slice) and part.step not in (None, 1) for part in self.box):
            message = f"the box of a region must have slices without a step, got {self.box!r}"
            raise InvalidArgument(message)

    def __str__(self) -> str:
        """Return the text that `parse_region` reads."""
        pairs = ((part.start, part.stop) if isinstance(part, slice) else part for part in self.box)
        texts = (":".join("" if end is None else str(end) for end in pair) for pair in pairs)
        return f"{self.bound!r}@{self.mask or ','.join(texts)}"

    def fitted(self, dataset: h5py.Dataset, masks: h5py.Group) -> Region:
        """Return the region with its box inside of a dataset, or its mask read from the file of ``masks``.

        Raises
        ------
        InvalidArgument
            If it has another number of axes, is empty, or the mask is not there or has another shape or type.
        """
        if self.mask:
            return replace(self, _inside=_mask(self.mask, dataset, masks))
        shape = dataset.shape
        if len(self.box) != len(shape):
            message = f"{dataset.name} has {len(shape)} axes, the region {self} has {len(self.box)}"
            raise InvalidArgument(message)
        slices = (part if isinstance(part, slice) else slice(*part) for part in self.box)
        box = tuple(part.indices(extent)[:2] for part, extent in zip(slices, shape, strict=True))
        if any(start >= stop for start, stop in box):
            message = f"the region {self} has no values of {dataset.name}, which has the shape {shape}"
            raise InvalidArgument(message)
        return replace(self, box=box)

    def within(self, part: Slices) -> Any:
        """Return which values of a part of the dataset are in the region: a mask, or slices; None for none of them."""
        if self._inside is not None:
            found = self._inside[part[len(part) - self._inside.ndim :]]
            if not found.any():
                return None
            return np.broadcast_to(found, [piece.stop - piece.start for piece in part])
        cut = tuple(
            slice(max(start, piece.start) - piece.start, min(stop, piece.stop) - piece.start)
            for (start, stop), piece in zip(self.box, part, strict=True)
        )
        return cut if all(piece.start < piece.stop for piece in cut) else None


def parse_region(text: str) -> Region:
    """Return the region in BOUND@BOX or BOUND@MASK, such as ``0.001@0:10,:,20:40`` and ``0@/land``.

    Raises
    ------
    InvalidArgument
        If it is another text.
    """
    number, at, place = text.partition("@")
    place = place.strip()
    with contextlib.suppress(ValueError):
        bound = float(number)
        if place and at and 0 <= bound < math.inf:
            if place.strip("0123456789:,-"):
                return Region(bound, mask=place)
            pairs = [[int(end) if end else None for end in part.split(":")] for part in place.split(",")]
            if all(len(pair) == 2 for pair in pairs):
                return Region(bound, tuple(tuple(pair) for pair in pairs))
    message = f"a region must be {REGION_FORMS}; got {text!r}"
    raise InvalidArgument(message)


def parse_regions(texts: Sequence[str]) -> dict[str, list[Region]]:
    """Return the regions of each variable in texts of the form NAME=BOUND@PART.

    Raises
    ------
    InvalidArgument
        If a text has another form.
    """
    found: dict[str, list[Region]] = {}
    for text in texts:
        name, equals, region = text.partition("=")
        if not name or not equals:
            message = f"--region must be NAME={REGION_FORMS}; got {text!r}"
            raise InvalidArgument(message)
        found.setdefault(name, []).append(parse_region(region))
    return found


def _mask(name: str, dataset: h5py.Dataset, masks: h5py.Group) -> NDArray[np.bool_]:
    found = masks.get(name) if name in masks else dataset.parent.get(name)
    if not isinstance(found, h5py.Dataset) or ";" in name:
        message = f"{dataset.name}: there is no dataset {name!r} to be the mask of a region"
        raise InvalidArgument(message)
    rank = len(found.shape or ())
    if found.dtype.kind not in "biu" or not rank or found.shape != dataset.shape[len(dataset.shape) - rank :]:
        message = (
            f"the mask {name!r} of {dataset.name} must be of integers, of the shape {dataset.shape} or that of its "
            f"last axes; got {found.dtype}, {found.shape}"
        )
        raise InvalidArgument(message)
    inside: NDArray[np.bool_] = found[()] != 0
    return inside
