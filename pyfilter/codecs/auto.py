# SPDX-License-Identifier: BSD-3-Clause
"""Auto: a codec chosen by a sample of the data, in the library, so that it works in every program that writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pyfilter.codecs.base import Codec
from pyfilter.codecs.hierarchical_delta import HierarchicalDelta
from pyfilter.errors import InvalidArgument

if TYPE_CHECKING:
    from pyfilter.registry import CodecSpec

#: what each objective asks of the library
OBJECTIVES = {"speed": "fast", "ratio": "auto"}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Auto(Codec):
    """What suits the data, chosen for each chunk by a sample of it; the frame says what was chosen.

    The choice is among the forms of `HierarchicalDelta`, which need fewer bits than `Cuszp2` on every field of the
    project's benchmarks, and takes the same bounds and element types. It is deterministic: the same chunk gives the
    same bytes on every machine. Exactly one bound is given.

    Parameters
    ----------
    absolute, relative, pointwise_relative, psnr : float, optional
        The bound, as for `HierarchicalDelta`.
    objective : {"speed", "ratio"}
        "speed": differences along a chain, the fastest form, unless another needs less than three quarters of its
        bits; widest differences are not stored apart. "ratio": the form that needs the fewest bits.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Examples
    --------
    >>> Auto(relative=1e-3, objective="speed")
    Auto(relative=0.001)
    """

    codec_name: ClassVar[str] = "auto"

    absolute: float | None = None
    relative: float | None = None
    pointwise_relative: float | None = None
    psnr: float | None = None
    objective: str = "speed"

    def __post_init__(self) -> None:
        """Check every field."""
        if not isinstance(self.objective, str) or self.objective not in OBJECTIVES:
            message = f"objective must be one of 'speed', 'ratio'; got {self.objective!r}"
            raise InvalidArgument(message)
        self._validate()

    @classmethod
    def spec(cls) -> CodecSpec:
        """Return the entry in registry.json of the codec that is asked for."""
        return HierarchicalDelta.spec()

    @property
    def predictor(self) -> str:
        """The predictor that is asked for."""
        return OBJECTIVES[self.objective]

    @property
    def outliers(self) -> str:
        """As `HierarchicalDelta` has it."""
        return "auto"

    @property
    def edges(self) -> tuple[int, ...]:
        """Extents of the tiles that may be chosen."""
        return (8, 64, 64)
