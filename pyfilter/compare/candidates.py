# SPDX-License-Identifier: BSD-3-Clause
"""The filters that are compared: our codecs with their parameters, from the registry, and filters of hdf5plugin."""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pyfilter import dtypes
from pyfilter.codecs import FILTERS
from pyfilter.codecs.base import Codec
from pyfilter.errors import InvalidArgument
from pyfilter.registry import parameter_value, registry

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

    from pyfilter.registry import CodecSpec

OURS, THEIRS = "pyfilter", "hdf5plugin"

# hdf5plugin's lossy filters: class, and the argument that takes an absolute bound
_LOSSY = (("SZ", "absolute"), ("SZ3", "absolute"), ("Zfp", "accuracy"), ("Sperr", "absolute"))
_POINTWISE = (("SZ", "pointwise_relative"),)
# lossless ones at settings that their authors recommend for floats
_LOSSLESS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("Blosc2", {"cname": "zstd", "filters": 2}),
    ("Bitshuffle", {"cname": "zstd"}),
)


@dataclass(frozen=True)
class Candidate:
    """A filter with its settings.

    Attributes
    ----------
    name : str
        Its name in tables: the class, and the parameters that are not the defaults.
    source : str
        "pyfilter" or "hdf5plugin".
    settings : dict
        For the worker: of ours the keywords of h5py's ``create_dataset``, of theirs the class and its arguments.
    absolute : float
        The bound that it has to keep in the unit of the data, 0.0 for bit-exact; with ``pointwise`` a fraction of each
        value.
    pointwise : bool
        Whether the bound is one of each value.
    default : bool
        Whether the parameters are the codec's defaults.
    """

    name: str
    source: str
    settings: dict[str, Any] = field(hash=False)
    absolute: float
    pointwise: bool = False
    default: bool = True

    @property
    def lossless(self) -> bool:
        """Whether it has to bring every bit back."""
        return self.absolute == 0.0


def ours(dtype: np.dtype[Any], ndim: int, bound: tuple[str, float], *, everything: bool = False) -> Iterator[Candidate]:
    """Yield our codecs that take a type and a bound, lossless ones too.

    Parameters
    ----------
    dtype
        The element type.
    ndim
        Number of dimensions; parameters that need more are left out.
    bound
        "absolute" or "pointwise_relative", and its value.
    everything
        Every combination of parameters; else the defaults, and each parameter changed by itself.
    """
    mode, value = bound
    for spec in registry().codecs.values():
        cls = FILTERS.get(spec.name)
        if cls is None or not dtypes.takes(spec.name, dtype):
            continue
        wish = mode if mode in spec.bounds else "none"
        if wish not in spec.bounds:
            continue
        limits = {} if wish == "none" else {mode: value}
        for position, parameters in enumerate(_parameters(spec, ndim, everything)):
            with contextlib.suppress(InvalidArgument):  # parameters that exclude each other
                codec = cls(**limits, **parameters)
                if limits or codec.is_lossless:  # near-lossless is neither within this bound nor bit-exact
                    yield _ours(codec, wish, limits.get(mode, 0.0), position == 0)


def _ours(codec: Codec, mode: str, value: float, default: bool) -> Candidate:
    settings = {"compression": codec.filter_id, "compression_opts": list(codec.filter_options)}
    shown = [
        f"{parameter.name} {getattr(codec, parameter.name)}"
        for parameter in codec.requested_spec.parameters
        if str(getattr(codec, parameter.name)).lower() != parameter.default
    ]
    name = ", ".join([type(codec).__name__, *shown])
    return Candidate(name, OURS, settings, value, mode == "pointwise_relative", default)


def _parameters(spec: CodecSpec, ndim: int, everything: bool) -> Iterator[dict[str, Any]]:
    """Yield the parameters to try, defaults first."""
    defaults: dict[str, Any] = {item.name: parameter_value(item.default) for item in spec.parameters}
    choices = {
        item.name: [parameter_value(name) for name in item.values if _dimensions(name) <= ndim]
        for item in spec.parameters
    }
    yield defaults
    if spec.name == "particles":  # other orders move rows, so values cannot be compared one by one
        return
    if everything:
        for chosen in itertools.product(*choices.values()):
            combination = dict(zip(choices, chosen, strict=True))
            if combination != defaults:
                yield combination
        return
    for name, values in choices.items():
        yield from ({**defaults, name: value} for value in values if value != defaults[name])


def _dimensions(name: str) -> int:
    """Return how many dimensions a parameter's value needs, as its name says: 2, "lorenzo3d"."""
    if name.isdigit():
        return int(name)
    return next((count for count in range(2, 10) if name.endswith(f"{count}d")), 1)


def theirs(bound: tuple[str, float]) -> Iterator[Candidate]:
    """Yield the filters of hdf5plugin at the same bound, lossless ones too, and HDF5's own gzip."""
    mode, value = bound
    pointwise = mode == "pointwise_relative"
    for name, argument in _POINTWISE if pointwise else _LOSSY:
        yield Candidate(name, THEIRS, {"plugin": name, "arguments": {argument: value}}, value, pointwise)
    for name, arguments in _LOSSLESS:
        yield Candidate(f"{name}, {arguments['cname']}", THEIRS, {"plugin": name, "arguments": arguments}, 0.0)
    yield Candidate("gzip, shuffle", "HDF5", {"compression": "gzip", "shuffle": True}, 0.0)


def at_bound(candidate: Candidate, value: float) -> Candidate:
    """Return a lossy candidate with another bound of the same kind."""
    settings = dict(candidate.settings)
    if "plugin" in settings:
        settings["arguments"] = dict.fromkeys(settings["arguments"], value)
    else:
        codec: Any = Codec.from_cd_values(settings["compression_opts"])
        codec = replace(codec, **{codec.bound[0]: value})
        settings["compression_opts"] = list(codec.filter_options)
    return replace(candidate, settings=settings, absolute=value)


def has_hdf5plugin() -> bool:
    """Whether filters of others can be compared with."""
    return importlib.util.find_spec("hdf5plugin") is not None
