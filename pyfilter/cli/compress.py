# SPDX-License-Identifier: BSD-3-Clause
"""``pyfilter compress``: whole files, every value checked. compressed.py prints what became of them."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import h5py

from pyfilter import guarantees
from pyfilter.cli import compressed, help, options, progress
from pyfilter.codecs import CODECS, Auto
from pyfilter.errors import InvalidArgument
from pyfilter.regions import parse_regions
from pyfilter.rewrite import (
    BoundsFile,
    Report,
    Result,
    Rules,
    batch,
    bounds_file,
    compress_file,
    rules,
    wishes,
)
from pyfilter.rewrite.job import LEAST_MEMORY, MAX_MEMORY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyfilter.codecs.base import Codec


@help.command("compress")
@help.argument(
    "paths",
    nargs=-1,
    required=True,
    metavar="IN... OUT",
    help="HDF5 or netCDF files, or patterns; then the output: a file, or a folder for several inputs.",
)
@options.with_bounds
@options.lossless
@options.codec(f"One of {', '.join(CODECS)}; by default what is smallest for each variable.")
@options.with_parameters
@click.option("--fast", is_flag=True, help="Without --codec: only codecs that write over 0.5 GB/s on a core.")
@click.option(
    "--var",
    multiple=True,
    metavar="NAME=SPEC",
    help="For one variable: MODE:X (such as absolute:0.1), CODEC:MODE:X, lossless or none. Without another bound, "
    "only these variables are compressed.",
)
@click.option(
    "--config",
    type=options.EXISTING_FILE,
    metavar="FILE",
    help="Read bounds by name, pattern or standard_name from a file: TOML, or a community's table in YAML or JSON.",
)
@click.option("--lossy-coordinates", is_flag=True, help="Compress coordinates to the bound too.")
@click.option(
    "--valid-range/--no-valid-range",
    default=True,
    help="Keep values in the range that the attributes valid_range, valid_min and valid_max state.",
)
@click.option(
    "--range",
    "ranges",
    multiple=True,
    metavar="NAME=LOW:HIGH",
    help="Keep the values of a variable between LOW and HIGH.",
)
@click.option(
    "--region",
    "regions",
    multiple=True,
    metavar="NAME=BOUND@PART",
    help="A part of a variable with a tighter absolute bound; 0 means bit for bit. PART is a box such as "
    "0:10,:,20:40, or the path of an integer mask in the file.",
)
@click.option("--keep-sign", is_flag=True, help="Keep zeros zero, and the sign of every value.")
@click.option("--history/--no-history", default=True, help="netCDF: add a line to the global attribute history.")
@click.option(
    "--attributes/--no-attributes",
    default=True,
    help="netCDF: write what was verified into each variable's attributes.",
)
@click.option(
    "--max-memory",
    type=click.IntRange(LEAST_MEMORY >> 20),
    default=MAX_MEMORY >> 20,
    metavar="MIB",
    help="Most memory of the process, in MiB; chunks over a twentieth of it need more.",
)
@click.option("--resume", is_flag=True, help="With a folder as OUT: skip files that an earlier run has done.")
@options.json
def compress(
    *,
    paths: tuple[str, ...],
    bounds: options.Bounds,
    lossless: bool,
    codec: str | None,
    parameters: options.Parameters,
    fast: bool,
    var: tuple[str, ...],
    config: Path | None,
    lossy_coordinates: bool,
    valid_range: bool,
    ranges: tuple[str, ...],
    regions: tuple[str, ...],
    keep_sign: bool,
    history: bool,
    attributes: bool,
    max_memory: int,
    resume: bool,
    json: bool,
) -> None:
    """Copy files with their floating-point variables compressed, and check every value against its bound.

    Without --codec, a sample of each variable decides what is smallest: a codec of pyfilter at the bound, HDF5's
    shuffle + deflate, or the filters that the variable has. No variable becomes larger.
    A relative bound (or PSNR) is a fraction of the variable's range without missing values. Coordinates stay bit for
    bit (dimension scales, variables that CF attributes name, latitude, longitude, time), and the output lists them.
    Integers stay bit for bit unless --var names them; their bound is in the unit of the stored integers.
    OUT appears when all values are checked. Exit status 1: a bound did not hold, and OUT was not written.
    """
    listed = BoundsFile() if config is None else bounds_file.load(config)
    default = _default(codec, bounds, lossless, parameters)
    named = dict(options.parse_variable(text, codec, parameters) for text in var)
    choose = codec in (None, Auto.codec_name)
    asked = Rules(
        default or listed.default,
        named,
        listed.variables,
        listed.standard_names,
        lossy_coordinates,
        integers=choose,
        choose=choose,
        fast=fast,
        ranges=dict(guarantees.parse_range(text) for text in ranges),
        regions=parse_regions(regions),
        listed_ranges=listed.ranges,
        listed_regions=listed.regions,
        valid_range=valid_range,
        keep_sign=keep_sign,
    )
    _require_something(asked)
    sources, target, many = _places(paths)
    if fast and not choose:
        message = f"give --fast or --codec {codec}, not both: --fast chooses among codecs"
        raise InvalidArgument(message)
    how: dict[str, Any] = {"history": history, "attributes": attributes, "max_memory": max_memory << 20}
    with progress.stages() as advance:
        if not many:
            if resume:
                message = "--resume needs several files and a folder: a single file is written whole or not at all"
                raise InvalidArgument(message)
            report = compress_file(sources[0], target, asked, advance, **how)
            results = [Result(sources[0], target, report)]
        else:
            results = []
            for result in batch.compress_files(sources, target, asked, advance, resume=resume, **how):
                results.append(result)
                if not json:
                    compressed.show_file(result)
    unused = _unused(asked, sources, None if listed.shared else config)
    if json:
        found = [compressed.as_dict(result) for result in results] if many else results[0].report
        text = {"files": found, "unused": unused} if many else _whole(results[0].report, unused)
        click.echo(json_module.dumps(text, indent=2))
    else:
        if many:
            compressed.show_summary(results)
        else:
            compressed.show(results[0])
        compressed.show_unused(unused, config)
    if any(result.report is not None and not result.report.ok for result in results):
        raise click.exceptions.Exit(1)
    if any(result.problem for result in results):
        raise click.exceptions.Exit(2)


def _whole(report: Report | None, unused: Sequence[str]) -> dict[str, object]:
    assert report is not None
    return {**report.as_dict(), "unused": list(unused)}


def _default(codec: str | None, bounds: options.Bounds, lossless: bool, parameters: options.Parameters) -> Codec | None:
    """Return the codec for variables that nothing else names: `Auto` leaves the choice to a sample."""
    given = [field for field, value in parameters.items() if value is not None]
    if codec is None and given:
        takers = [name for name, cls in CODECS.items() if given[0] in wishes.fields_of(cls)]
        message = f"{options.option_name(given[0])} belongs to a codec: give --codec {' or '.join(takers)} with it"
        raise InvalidArgument(message)
    return options.make_codec(codec or Auto.codec_name, bounds, lossless, parameters)


def _require_something(asked: Rules) -> None:
    if asked.default is None and not asked.named and not asked.listed and not asked.standard_names:
        known = ", ".join(f"{options.option_name(mode)} X" for mode in options.BOUNDS)
        message = f"give a bound: {known}, --lossless; --var NAME=absolute:X for single variables, --config for many"
        raise InvalidArgument(message)


def _places(paths: Sequence[str]) -> tuple[list[Path], Path, bool]:
    """Return the inputs, the output, and whether that is a folder."""
    if len(paths) < 2:
        message = f"give an input and an output; got only {paths[0]}"
        raise InvalidArgument(message)
    sources, target = batch.expanded(paths[:-1]), Path(paths[-1])
    many = len(sources) > 1 or target.is_dir() or paths[-1].endswith("/")
    if many and target.exists() and not target.is_dir():
        message = f"{target} is a file: the copies of {len(sources)} files need a folder"
        raise InvalidArgument(message)
    return sources, target, many


def _unused(asked: Rules, sources: Sequence[Path], config: Path | None) -> list[str]:
    """Return what the file of bounds names and no input has."""
    left = (
        []
        if config is None
        else sorted({*asked.listed, *asked.standard_names, *asked.listed_ranges, *asked.listed_regions})
    )
    for source in sources:
        if left and h5py.is_hdf5(source):
            with h5py.File(source, "r") as file:
                left = rules.unused(left, file)
        elif left:  # netCDF-3 is not read a second time for this
            return []
    return left
