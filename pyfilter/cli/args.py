# SPDX-License-Identifier: BSD-3-Clause
"""``pyfilter args``: the filter's settings in the words of other programs, and back."""

from __future__ import annotations

import json as json_module
import re
import struct

import click

from pyfilter.cli import help, options
from pyfilter.codecs.base import STAMP, Codec
from pyfilter.errors import InvalidArgument
from pyfilter.registry import registry

_NUMBER = r"(?<![\w.]) [-+]? (?: \d+\.?\d* | \.\d+ ) (?: [eE][-+]?\d+ )? [uUlLsSbBdDfF]* (?![\w.])"

TOOLS = ("h5repack", "nccopy", "ncgen", "h5py", "netcdf-c")
PLACEHOLDER = "NAME"


@help.command("args")
@options.with_bounds
@options.lossless
@options.codec(f"{options.CODEC_HELP} for --pointwise-relative.")
@options.with_parameters
@click.option("--for", "tool", default="h5repack", metavar="TOOL", help=f"One of {', '.join(TOOLS)}.")
@click.option(
    "--var", default=PLACEHOLDER, metavar="NAME", help="The variable, for h5repack (a path), nccopy and ncgen."
)
@click.option("--decode", metavar="WORDS", help="Explain the filter's words as h5dump or ncdump shows them.")
@options.json
def args(
    *,
    bounds: options.Bounds,
    lossless: bool,
    codec: str | None,
    parameters: options.Parameters,
    tool: str,
    var: str,
    decode: str | None,
    json: bool,
) -> None:
    """Print the filter string of h5repack, nccopy, ncgen, h5py or the netCDF C library for these settings.

    Notes about the program go to stderr.
    """
    if decode is not None:
        _decode(decode, json)
        return
    chosen = options.make_codec(codec, bounds, lossless, parameters)
    if chosen is None:
        message = (
            f"give a bound ({', '.join(map(options.option_name, options.BOUNDS))} X), --lossless, or --decode WORDS"
        )
        raise InvalidArgument(message)
    text = format_for(tool, chosen, var)
    if json:
        words = list(chosen.filter_options)
        found = {"codec": repr(chosen), "filter_id": chosen.filter_id, "words": words, "tool": tool, "text": text}
        click.echo(json_module.dumps({**found, "notes": notes_for(tool, var)}, indent=2))
    else:
        click.echo(text)
        for note in notes_for(tool, var):
            click.echo(note, err=True)


def format_for(tool: str, codec: Codec, variable: str) -> str:
    """Return the settings of a codec in the words of a program.

    Raises
    ------
    InvalidArgument
        If the program is none of `TOOLS`.
    """
    identity = registry().filter_id
    words = codec.filter_options
    listed = ",".join(map(str, words))
    if tool == "h5repack":
        # without a name it would be for all datasets, coordinates too; 0: h5repack leaves out what the filter refuses
        return f"-f {variable}:UD={identity},0,{len(words)},{listed}"
    if tool == "nccopy":
        return f'-F "{variable},{identity},{listed}"'
    if tool == "ncgen":
        return f'{variable}:_Filter = "{identity},{listed}" ;'
    if tool == "h5py":
        return f"compression={identity}, compression_opts={words}"
    if tool == "netcdf-c":
        array = ", ".join(f"{word}u" for word in words)
        return (
            f"const unsigned words[{len(words)}] = {{{array}}};\n"
            f"nc_def_var_filter(ncid, varid, {identity}u, {len(words)}, words);"
        )
    message = f"--for must be one of {', '.join(TOOLS)}; got {tool!r}"
    raise InvalidArgument(message)


def notes_for(tool: str, variable: str) -> list[str]:
    """Return what one should know of a program before the settings are used there, a sentence each."""
    notes = []
    if variable == PLACEHOLDER and tool in ("h5repack", "nccopy", "ncgen"):
        notes.append(f"Write the name of the variable for {PLACEHOLDER}, or give --var.")
    if tool == "h5repack":
        notes.append(f"Without -l {variable}:CHUNK=... a dataset that has no chunks becomes one chunk.")
    if tool == "nccopy":
        notes += [
            "nccopy does nothing, and says nothing, where the variable is deflated already.",
            "Then unpack all variables first: nccopy -d0 in.nc plain.nc, and use -F with plain.nc.",
        ]
    return notes


def _decode(text: str, json: bool) -> None:
    words = [word & 0xFFFFFFFF for word in parse_words(text)]
    codec = Codec.from_cd_values(words)
    found: dict[str, object] = {"codec": repr(codec), "filter_id": codec.filter_id, "words": words}
    lines = [repr(codec)]
    if words[0] == STAMP:
        dtype = registry().dtype_by_code(words[6] & 0xFF)
        dims = [words[10 + 2 * axis] | words[11 + 2 * axis] << 32 for axis in range(words[9])]
        order = "big" if words[6] & 0x100 else "little"
        found |= {"dtype": dtype.name if dtype else None, "byte_order": order, "chunks": dims}
        lines.append(f"stored for {dtype.name if dtype else 'unknown type'}, {order}-endian, chunks {tuple(dims)}")
    click.echo(json_module.dumps(found, indent=2) if json else "\n".join(lines))


def parse_words(text: str) -> list[int]:
    """Return the cd_values in a text: bare words, or what `format_for`, h5dump and ncdump print.

    Numbers may end as netCDF's do: ``u``, ``l`` and the like for integers, ``d`` for a double (two words).

    Raises
    ------
    InvalidArgument
        If there are none, or a number with a point has no ``d``.
    """
    listed = re.search(r"\{([-+\w\s.,]*\d[-+\w\s.,]*)\}", text)  # C code, or h5dump's PARAMS
    source = listed.group(1) if listed is not None else text.rpartition("UD=")[2].replace("_Filter", "")
    numbers = [word for item in re.findall(_NUMBER, source, re.VERBOSE) for word in _constant(item)]
    identity = registry().filter_id
    if numbers and numbers[0] == identity:
        numbers = numbers[1:]
        repack = "UD=" in text and len(numbers) > 2 and numbers[1] == len(numbers) - 2
        numbers = numbers[2:] if repack else numbers
    if not numbers:
        message = f"--decode needs the filter's words, separated by commas or spaces; got {text!r}"
        raise InvalidArgument(message)
    return numbers


def _constant(text: str) -> list[int]:
    """Return the words of one constant as netCDF writes them."""
    if re.fullmatch(r"[-+]?\d+[uUsSbB]*", text):
        return [int(text.rstrip("uUsSbB"))]
    if re.fullmatch(r"[-+]?\d+[uU]?[lL]+", text):
        return list(struct.unpack("<II", struct.pack("<Q", int(text.rstrip("uUlL")) & (1 << 64) - 1)))
    if text[-1] in "dD":
        return list(struct.unpack("<II", struct.pack("<d", float(text[:-1]))))
    message = f"--decode: {text} is no integer; netCDF writes a double with a d behind it: {text.rstrip('fF')}d"
    raise InvalidArgument(message)
