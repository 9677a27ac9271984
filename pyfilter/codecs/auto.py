# SPDX-License-Identifier: BSD-3-Clause
"""Auto: a codec chosen by a sample of the data, in the library, so that it works in every program that writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pyfilter.codecs.adaptive import Adaptive
from pyfilter.codecs.base import Codec
from pyfilter.codecs.hierarchical_delta import HierarchicalDelta
from pyfilter.errors import InvalidArgument

if TYPE_CHECKING:
    from pyfilter.registry import CodecSpec

OBJECTIVES = ("ratio", "speed")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Auto(Codec):
    """Chooses a codec for each chunk from a sample of it; the frame's header names the choice.

    The same chunk gives the same bytes on every machine. Takes floating-point values and integers. Exactly one bound is
    given.

    Parameters
    ----------
    absolute, relative, pointwise_relative, psnr : float, optional
        The bound, as for `HierarchicalDelta`.
    objective : {"ratio", "speed"}
        "ratio": the smallest of what `Adaptive`, `Lorenzo` and `HierarchicalDelta` make of a chunk. "speed": of
        `HierarchicalDelta` differences along a chain, the fastest form, unless another needs less than three quarters
        of its bits; widest differences are not stored apart.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Examples
    --------
    >>> Auto(relative=1e-3, objective="ratio")
    Auto(relative=0.001)
    """

    codec_name: ClassVar[str] = "auto"

    absolute: float | None = None
    relative: float | None = None
    pointwise_relative: float | None = None
    psnr: float | None = None
    objective: str = "ratio"

    def __post_init__(self) -> None:
        """Check every field."""
        if not isinstance(self.objective, str) or self.objective not in OBJECTIVES:
            message = f"objective must be one of 'ratio', 'speed'; got {self.objective!r}"
            raise InvalidArgument(message)
        self._validate()

    @classmethod
    def spec(cls) -> CodecSpec:
        """Return the entry in registry.json that has the bounds and element types of both objectives."""
        return HierarchicalDelta.spec()

    @property
    def requested_spec(self) -> CodecSpec:
        """The entry of the codec that the library is asked for."""
        return HierarchicalDelta.spec() if self.objective == "speed" else Adaptive.spec()

    @property
    def predictor(self) -> str:
        """The predictor that is asked for."""
        return "fast" if self.objective == "speed" else "auto"

    @property
    def outliers(self) -> str:
        """As `HierarchicalDelta` has it."""
        return "auto"

    @property
    def effort(self) -> str:
        """As `Adaptive` has it."""
        return "best"

    @property
    def edges(self) -> tuple[int, ...]:
        """Extents of the tiles that may be chosen."""
        return (8, 64, 64)
