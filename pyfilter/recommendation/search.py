# SPDX-License-Identifier: BSD-3-Clause
"""Looks for the loosest bound that keeps the wanted quality: on a sample first, then on all values."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import h5py

from pyfilter.codecs import Adaptive, Lorenzo, Lossless
from pyfilter.errors import InvalidArgument
from pyfilter.recommendation import pieces, real_information
from pyfilter.recommendation.metrics import Correlation, Gradient, Information, Metric, Psnr, Setting, Spectrum
from pyfilter.recommendation.pieces import Measured, Variable
from pyfilter.recommendation.windows import Dssim, Ssim
from pyfilter.rewrite import alternatives, rounding

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from pyfilter.codecs.base import Codec

#: the measures by their names, which are keywords of `recommend` and options of the command
METRICS: dict[str, type[Metric]] = {
    cls.name: cls for cls in (Ssim, Dssim, Information, Psnr, Gradient, Spectrum, Correlation)
}
_LOOSEST, _TIGHTEST = 0.25, 2.0**-26  # bounds that are tried: of the range, or of each value
_FINE = 2.0**0.125  # a bound that is found is at most this much below the loosest on the sample
_RETRY = 0.85  # all values may want a tighter bound than the sample: next try
_MOST_TRIES = 12
_MODES = ("absolute", "pointwise_relative")


@dataclass(frozen=True)
class Step:
    """A bound, and its effect on the sample.

    Attributes
    ----------
    bound : float
        The bound.
    ratio : float
        Bytes of the values by bytes stored.
    values : mapping
        Each measure's value by its name.
    """

    bound: float
    ratio: float
    values: Mapping[str, float]


@dataclass(frozen=True)
class Recommendation:
    """A bound for a variable, verified on all of its values.

    Attributes
    ----------
    name : str
        The variable.
    codec : Codec
        With the bound; `Lossless` where no bound keeps the wanted quality.
    wanted, found : mapping
        By measure: the wanted value, and the value measured on all values.
    ratio : float
        Bytes of the values by bytes stored, of all values.
    value_bytes, stored_bytes : int
        Both sizes.
    max_error : float
        The largest error of a value.
    spread : float
        The range of the values: highest minus lowest finite value.
    looser, tighter : Step or None
        What twice and half the bound do on the sample.
    flattened : float
        Share of differences of neighbours on the sample that become 0.
    rounded : str
        How the values were rounded before ("multiples of 0.01"); empty where they were not.
    tries : int
        How often all values were compressed until the bound held.
    """

    name: str
    codec: Codec
    wanted: Mapping[str, float]
    found: Mapping[str, float]
    ratio: float
    value_bytes: int
    stored_bytes: int
    max_error: float
    spread: float
    looser: Step | None
    tighter: Step | None
    flattened: float
    rounded: str
    tries: int
    curve: tuple[Step, ...] = field(default=(), repr=False)

    @property
    def table(self) -> dict[str, Any]:
        """The variable's entry in a file of bounds."""
        if self.codec.is_lossless:
            return {"codec": "lossless"}
        mode, bound = self.codec.bound
        return {mode: bound, "codec": self.codec.codec_name}

    @property
    def reason(self) -> str:
        """The quality that was found, and the ratio, in a few words."""
        kept = ", ".join(f"{name} {value:.6g}" for name, value in self.found.items())
        return (
            f"{kept}, ratio {self.ratio:.1f}" if kept else f"no bound keeps the wanted quality, ratio {self.ratio:.1f}"
        )


def recommend(
    array: Any,
    *,
    fill_value: object = None,
    name: str = "",
    mode: str = "absolute",
    fast: bool = False,
    steps: int = 1,
    progress: Callable[[int], None] | None = None,
    **wanted: float | None,
) -> Recommendation:
    """Return the loosest bound that keeps a stated quality.

    It is looked for on a sample of 8 MiB, with `Lorenzo` first and then with the codec that is smaller there. Then
    all values are compressed and decoded, chunk by chunk, and the quality is measured; where it is not kept the bound
    is made tighter, and all values are compressed again.

    Parameters
    ----------
    array : numpy.ndarray or h5py.Dataset
        float32 or float64 values of one dimension or more; planes are the last two dimensions.
    fill_value : scalar, optional
        Stands for "missing"; a dataset's own is known.
    name : str, optional
        What to call the array.
    mode : {"absolute", "pointwise_relative"}
        The kind of bound.
    fast : bool
        Only `Lorenzo`, not `Adaptive`, which makes smaller files and writes 20 to 100 MB/s on a core.
    steps : int
        How many doublings and halvings of the bound are measured on the sample for comparison.
    progress : callable, optional
        Called with the number of values of each piece that was verified.
    ssim, dssim : float
        Lowest structural similarity: mean of all windows; climate's data SSIM, of the worst plane.
    information : float
        Lowest share of the bitwise real information that is kept.
    psnr : float
        Lowest peak signal-to-noise ratio in dB.
    gradient : float
        Largest relative error of differences of neighbours.
    spectrum : float
        Largest relative error of power in any shell of wavenumbers up to half of the highest.
    correlation : float
        Lowest correlation of original and decoded values.

    Returns
    -------
    Recommendation
        The codec with its bound, and the measures on all values.

    Raises
    ------
    InvalidArgument
        If no measure is given, or a measure is unknown or out of its range.
    Unsupported
        If the array is not of float32 or float64, or has no values.
    """
    asked = _checked(wanted, mode)
    given = array.reshape(1) if not isinstance(array, h5py.Dataset) and getattr(array, "shape", None) == () else array
    variable = pieces.variable_of(given, name or getattr(array, "name", None) or "the array", fill_value)
    limits = variable.limits()
    blocks = variable.sample()
    pieces.require_declared(variable, blocks, limits)
    setting = _setting(variable, limits, blocks, asked)
    metrics = [METRICS[key](value, setting) for key, value in asked.items()]
    search = _Search(variable, blocks, metrics, mode, setting)
    bound = search.loosest(Lorenzo) if setting.spread > 0.0 else None
    cls: type[Codec] = Lorenzo
    if bound is not None and not fast and mode == "absolute":
        cls, bound = search.with_smallest(bound)
    codec, measured, tries = search.verified(cls, bound, progress)
    final = codec.bound[1] if not codec.is_lossless else None
    around = [] if final is None else [search.step(cls, final * 2.0**power) for power in range(-steps, steps + 1)]
    flat = 0.0 if final is None else search.flattened(cls, final)
    return Recommendation(
        name=variable.name,
        codec=codec,
        wanted=asked,
        found=search.values(measured) if final is not None else {},
        ratio=variable.nbytes / max(measured.stored_bytes, 1),
        value_bytes=variable.nbytes,
        stored_bytes=measured.stored_bytes,
        max_error=measured.max_error,
        spread=setting.spread,
        looser=around[steps + 1] if steps and around else None,
        tighter=around[steps - 1] if steps and around else None,
        flattened=flat,
        rounded=rounding.described(blocks, variable.specials),
        tries=tries,
        curve=tuple(around),
    )


def _checked(wanted: Mapping[str, float | None], mode: str) -> dict[str, float]:
    asked = {key: float(value) for key, value in wanted.items() if value is not None}
    unknown = [key for key in wanted if key not in METRICS]
    if unknown or not asked:
        problem = f"unknown: {unknown[0]!r}" if unknown else "none is given"
        message = f"give at least one measure to keep, of {', '.join(METRICS)}; {problem}"
        raise InvalidArgument(message)
    for key, value in asked.items():
        low, high = METRICS[key].limits
        if not low < value < high:
            message = f"{key} must be above {low:g} and below {high:g}; got {value!r}"
            raise InvalidArgument(message)
    if mode not in _MODES:
        message = f"mode must be one of {', '.join(_MODES)}; got {mode!r}"
        raise InvalidArgument(message)
    return asked


def _setting(
    variable: Variable, limits: tuple[float, float] | None, blocks: Sequence[NDArray[Any]], asked: Mapping[str, float]
) -> Setting:
    information = None
    if Information.name in asked:
        information = real_information.of_bits(variable.plain(block) for block in blocks)
    low, high = limits if limits is not None else (0.0, 0.0)
    return Setting(variable.dtype, low, high, information)


class _Search:
    """The wanted quality, the variable, and the bounds tried so far."""

    def __init__(
        self,
        variable: Variable,
        blocks: Sequence[NDArray[Any]],
        metrics: Sequence[Metric],
        mode: str,
        setting: Setting,
    ) -> None:
        self.variable = variable
        self.blocks = blocks
        self.metrics = metrics
        self.mode = mode
        self.setting = setting
        self.scale = setting.spread if mode == "absolute" else 1.0
        self._known: dict[tuple[str, float], Measured] = {}

    def codec(self, cls: type[Codec], bound: float) -> Codec:
        limits: dict[str, Any] = {self.mode: bound}
        return cls(**limits)

    def on_sample(self, cls: type[Codec], bound: float) -> Measured:
        key = cls.codec_name, bound
        if key not in self._known:
            codec = self.codec(cls, bound)
            self._known[key] = pieces.measure_blocks(self.variable, self.blocks, codec, self.metrics)
        return self._known[key]

    def values(self, measured: Measured) -> dict[str, float]:
        return {item.name: item.value(sums) for item, sums in zip(self.metrics, measured.sums, strict=True)}

    def good(self, measured: Measured) -> bool:
        return all(item.holds(item.value(sums)) for item, sums in zip(self.metrics, measured.sums, strict=True))

    def loosest(self, cls: type[Codec]) -> float | None:
        """Return the loosest bound that is good enough on the sample; None where none is."""
        low, high = math.log2(_TIGHTEST), math.log2(_LOOSEST)
        if self.good(self.on_sample(cls, self._bound(high))):
            return self._bound(high)
        if not self.good(self.on_sample(cls, self._bound(low))):
            return None
        while high - low > math.log2(_FINE):
            middle = (low + high) / 2
            if self.good(self.on_sample(cls, self._bound(middle))):
                low = middle
            else:
                high = middle
        return self._bound(low)

    def _bound(self, power: float) -> float:
        return _short(2.0**power * self.scale)

    def with_smallest(self, bound: float) -> tuple[type[Codec], float]:
        """Return `Adaptive` with its own loosest bound where that is worth its slowness; else `Lorenzo`."""
        dense = bound
        while dense > _TIGHTEST * self.scale and not self.good(self.on_sample(Adaptive, dense)):
            dense = _short(dense / _FINE)
        if dense == bound:  # its errors may be kinder
            while (wider := _short(dense * _FINE)) <= _LOOSEST * self.scale and self.good(
                self.on_sample(Adaptive, wider)
            ):
                dense = wider
        before, after = (
            self.on_sample(cls, limit).stored_bytes for cls, limit in ((Lorenzo, bound), (Adaptive, dense))
        )
        if self.good(self.on_sample(Adaptive, dense)) and after < before * (1 - alternatives.WORTH):
            return Adaptive, dense
        return Lorenzo, bound

    def verified(
        self, cls: type[Codec], bound: float | None, progress: Callable[[int], None] | None
    ) -> tuple[Codec, Measured, int]:
        """Return the codec that holds for all values, the measures, and how often all values were compressed."""
        tries = 0
        while bound is not None and tries < _MOST_TRIES and bound >= _TIGHTEST * self.scale:
            tries += 1
            codec = self.codec(cls, bound)
            measured = pieces.measure_all(self.variable, codec, self.metrics, progress)
            if self.good(measured):
                return codec, measured, tries
            bound = _short(bound * _RETRY)
        codec = Lossless()
        return codec, pieces.measure_all(self.variable, codec, (), progress), tries + 1

    def step(self, cls: type[Codec], bound: float) -> Step:
        measured = self.on_sample(cls, bound)
        size = sum(block.nbytes for block in self.blocks)
        return Step(bound, size / max(measured.stored_bytes, 1), self.values(measured))

    def flattened(self, cls: type[Codec], bound: float) -> float:
        """Return the share of differences of neighbours on the sample that become 0."""
        codec, measure = self.codec(cls, bound), Gradient(1.0, self.setting)
        return Gradient.flattened(pieces.measure_blocks(self.variable, self.blocks, codec, [measure]).sums[0])


def _short(bound: float) -> float:
    """Return a bound of three digits, rounded down."""
    rounded = float(f"{bound:.2e}")
    return rounded if rounded <= bound else float(f"{bound * 0.995:.2e}")
