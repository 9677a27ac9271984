# SPDX-License-Identifier: BSD-3-Clause
"""What the subcommands share: options that make a codec, and how numbers are shown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any

import typer

from pyfilter.codecs import FILTERS, Codec, Lossless
from pyfilter.errors import InvalidArgument
from pyfilter.registry import registry

Absolute = Annotated[
    float | None, typer.Option("--absolute", help="Largest error of a value, in the unit of the data.", metavar="X")
]
Relative = Annotated[
    float | None,
    typer.Option("--relative", help="Largest error as a fraction of a variable's range.", metavar="X"),
]
Psnr = Annotated[
    float | None,
    typer.Option("--psnr", help="Lowest peak signal-to-noise ratio, in dB of a variable's range.", metavar="DB"),
]
PointwiseRelative = Annotated[
    float | None,
    typer.Option(
        "--pointwise-relative", help="hierarchical_delta: largest error as a fraction of each value.", metavar="X"
    ),
]
LosslessFlag = Annotated[bool, typer.Option("--lossless", help="Every value bit for bit.")]
CodecName = Annotated[str, typer.Option("--codec", help=f"One of {', '.join(FILTERS)}.", metavar="NAME")]
Mode = Annotated[str | None, typer.Option("--mode", help="cuszp2: outlier, plain or fixed.", metavar="MODE")]
BlockDims = Annotated[
    int | None, typer.Option("--block-dims", help="Blocks of 32 values (1), 8 x 8 (2) or 4 x 4 x 4 (3).", metavar="N")
]
Predictor = Annotated[
    str | None,
    typer.Option(
        "--predictor", help="hierarchical_delta: auto, chain, lorenzo2d, lorenzo3d or columns.", metavar="NAME"
    ),
]
Outliers = Annotated[
    str | None, typer.Option("--outliers", help="hierarchical_delta: auto, on or off.", metavar="WHETHER")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


#: codec parameters by name, None for those not given
Parameters = Mapping[str, str | int | None]
#: bounds by mode, likewise
Bounds = Mapping[str, float | None]
BOUNDS = tuple(mode for mode in registry().bounds if mode != "none")
_WISHES = f"{', '.join(f'{mode}:X' for mode in BOUNDS)}, lossless or none"


def make_codec(
    name: str,
    bounds: Bounds = MappingProxyType({}),
    lossless: bool = False,
    parameters: Parameters = MappingProxyType({}),
) -> Codec | None:
    """Return the codec that the options ask for, None where they give no bound.

    Raises
    ------
    InvalidArgument
        If an option is out of range or does not go with the others.
    """
    if name not in FILTERS:
        message = f"--codec must be one of {', '.join(FILTERS)}; got {name!r}"
        raise InvalidArgument(message)
    lossless = lossless or name == Lossless.codec_name
    asked = [option_name(mode) for mode, value in bounds.items() if value is not None] + ["--lossless"] * lossless
    if len(asked) > 1:
        message = f"give one of {', '.join(map(option_name, BOUNDS))} and --lossless, not {' and '.join(asked)}"
        raise InvalidArgument(message)
    if not asked:
        return None
    cls = Lossless if lossless else FILTERS[name]
    fields: dict[str, Any] = {**bounds, **parameters}
    given = {field: value for field, value in fields.items() if value is not None}
    own = {*cls.spec().bounds, *(parameter.name for parameter in cls.spec().parameters)}
    for field in given:
        if field not in own:
            message = f"{option_name(field)} is no option of the codec {cls.codec_name}"
            raise InvalidArgument(message)
    return cls(**given)


def option_name(field: str) -> str:
    """Return the option for a codec's field."""
    return f"--{field.replace('_', '-')}"


def parse_variable(text: str, name: str, parameters: Parameters = MappingProxyType({})) -> tuple[str, Codec | None]:
    """Return the variable and the codec of a ``--var`` option: NAME=MODE:X (a bound), NAME=lossless or NAME=none."""
    variable, equals, wish = text.rpartition("=")
    kind, colon, number = wish.partition(":")
    if not equals or not variable:
        message = f"--var must be NAME=SPEC with a SPEC of {_WISHES}; got {text!r}"
        raise InvalidArgument(message)
    if wish == "none":
        return variable, None
    if wish == "lossless":  # other parameters are for other variables
        own = {parameter.name for parameter in Lossless.spec().parameters}
        kept = {field: value for field, value in parameters.items() if field in own}
        return variable, make_codec(name, lossless=True, parameters=kept)
    try:
        bound = int(number) if number.isdecimal() else float(number)  # large integers are rounded by the codec, down
    except ValueError:
        bound = math.nan
    mode = kind.replace("-", "_")
    if mode not in BOUNDS or not colon or math.isnan(bound):
        message = f"--var {variable} must be {_WISHES}; got {wish!r}"
        raise InvalidArgument(message)
    return variable, make_codec(name, {mode: bound}, parameters=parameters)


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
