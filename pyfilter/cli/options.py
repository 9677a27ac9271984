# SPDX-License-Identifier: BSD-3-Clause
"""Shared by the subcommands: options that make a codec, and the formatting of numbers.

The options for bounds and codec parameters are made from registry.json, so a new codec has its own at once.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from pyfilter.codecs import CODECS, FILTERS, Codec, Lossless
from pyfilter.errors import InvalidArgument
from pyfilter.registry import parameter_value, registry
from pyfilter.rewrite import wishes

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    _Function = TypeVar("_Function", bound=Callable[..., Any])

FILE = click.Path(dir_okay=False, path_type=Path)
EXISTING_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

lossless = click.option("--lossless", is_flag=True, help="Every value bit for bit.")
json = click.option("--json", is_flag=True, help="Print JSON instead of a table.")
#: names that --codec takes, and the start of the help text on its default
CODEC_HELP = f"One of {', '.join(CODECS)}; by default cuszp2, and hierarchical_delta"

#: codec parameters by name, None for those not given
Parameters = Mapping[str, str | int | bool | None]
#: bounds by mode, likewise
Bounds = Mapping[str, float | None]
BOUNDS = wishes.BOUNDS


_BOUND_HELP = {
    "absolute": ("X", "Largest error of a value, in the unit of the data."),
    "relative": ("X", "Largest error as a fraction of a variable's range."),
    "pointwise_relative": ("X", "Largest error as a fraction of each value."),
    "psnr": ("DB", "Lowest peak signal-to-noise ratio, in dB of a variable's range."),
}


def codec(text: str) -> Callable[[_Function], _Function]:
    """Return the decorator for --codec, with its help text."""
    return click.option("--codec", metavar="NAME", help=text)


def with_bounds(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for each bound, handed over as ``bounds``."""
    added = {}
    for mode in BOUNDS:
        metavar, text = _BOUND_HELP.get(mode, ("X", "A bound."))
        takers = [name for name, spec in registry().codecs.items() if mode in spec.bounds]
        only = f"{takers[0]}: " if len(takers) == 1 else ""
        help_text = f"{only}{text[0].lower() if only else text[0]}{text[1:]}"
        added[mode] = click.option(option_name(mode), mode, type=float, help=help_text, metavar=metavar)
    return _with_options(command, "bounds", added)


def with_parameters(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for each codec parameter, handed over as ``parameters``."""
    helps: dict[str, dict[str, list[str]]] = {}  # parameter: its values: the codecs that have it with these
    for name, spec in registry().codecs.items():
        for parameter in spec.parameters:
            helps.setdefault(parameter.name, {}).setdefault(", ".join(parameter.values), []).append(name)
    added = {}
    for name, choices in helps.items():
        text = "; ".join(f"{', '.join(codecs)}: {values}" for values, codecs in choices.items())
        added[name] = click.option(option_name(name), name, help=f"{text}.", metavar="VALUE")
    return _with_options(command, "parameters", added)


def _with_options(
    command: Callable[..., None], name: str, added: Mapping[str, Callable[[Callable[..., None]], Callable[..., None]]]
) -> Callable[..., None]:
    """Return a command that has the added options instead of the argument ``name``, which gets their values."""

    @functools.wraps(command)  # which keeps the options of the decorators below
    def changed(**kwargs: Any) -> None:
        values = {key: kwargs.pop(key) for key in added}
        kwargs[name] = {key: parameter_value(item) if isinstance(item, str) else item for key, item in values.items()}
        command(**kwargs)

    for option in reversed(list(added.values())):  # click shows the one first that is added last
        option(changed)
    return changed


def codec_for(bounds: Bounds) -> str:
    """Return the name of the codec to take where none is named: the first that takes the bound."""
    modes = [mode for mode, value in bounds.items() if value is not None]
    return next(name for name, cls in FILTERS.items() if set(modes[:1]) <= set(cls.spec().bounds))


def make_codec(
    name: str | None,
    bounds: Bounds = MappingProxyType({}),
    lossless: bool = False,
    parameters: Parameters = MappingProxyType({}),
) -> Codec | None:
    """Return the codec that the options ask for, None where they give no bound.

    Without a name it is `codec_for` the bound.

    Raises
    ------
    InvalidArgument
        If an option is out of range or does not go with the others.
    """
    if name is None:
        name = codec_for(bounds)
    if name not in CODECS:
        message = f"--codec must be one of {', '.join(CODECS)}; got {name!r}"
        raise InvalidArgument(message)
    lossless = lossless or name == Lossless.codec_name
    asked = [option_name(mode) for mode, value in bounds.items() if value is not None] + ["--lossless"] * lossless
    if len(asked) > 1:
        message = f"give one of {', '.join(map(option_name, BOUNDS))} and --lossless, not {' and '.join(asked)}"
        raise InvalidArgument(message)
    if not asked:
        return None
    cls = Lossless if lossless else CODECS[name]
    fields: dict[str, Any] = {**bounds, **parameters}
    given = {field: value for field, value in fields.items() if value is not None}
    for field in given:
        if field not in wishes.fields_of(cls):
            takers = [other for other, its in CODECS.items() if field in wishes.fields_of(its)]
            theirs = " or ".join(takers)
            message = f"{option_name(field)} is not an option of the codec {cls.codec_name}, but of --codec {theirs}"
            raise InvalidArgument(message)
    return cls(**given)


def option_name(field: str) -> str:
    """Return the option for a codec's field."""
    return f"--{field.replace('_', '-')}"


def parse_variable(
    text: str, name: str | None, parameters: Parameters = MappingProxyType({})
) -> tuple[str, Codec | None]:
    """Return the variable and the codec of a ``--var`` option: NAME=MODE:X, CODEC:MODE:X, lossless or none."""
    variable, equals, wish = text.rpartition("=")
    if not equals or not variable:
        message = f"--var must be NAME=SPEC with a SPEC of {wishes.FORMS}; got {text!r}"
        raise InvalidArgument(message)
    return variable, wishes.from_text(wish, f"--var {variable}", name, parameters)


def bound(value: float | None, pointwise: bool) -> str:
    """Return a bound for a table."""
    return f"{number(value)} |x|" if pointwise else number(value)


def number(value: float | None) -> str:
    """Return a float for a table: short, "-" for none."""
    return "-" if value is None else f"{value:.4g}"


def size(count: int) -> str:
    """Return a size in bytes for a table."""
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def shape(extents: tuple[int, ...]) -> str:
    """Return a shape for a table."""
    return " x ".join(map(str, extents)) or "scalar"
