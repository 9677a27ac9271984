# SPDX-License-Identifier: BSD-3-Clause
"""Ratios and speed of Particles, against our other codecs, SZ3 and Zstd. python -m benchmarks.particles."""

from __future__ import annotations

import shlex
import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import h5py
import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console

import pyfilter
from benchmarks.fields import find_data
from benchmarks.lorenzo import seconds
from benchmarks.ratios import sz3_ratio
from benchmarks.report import Rows, geometric_mean, origin, report
from pyfilter._lib import host
from pyfilter.frames import make_request

MARKER = "particles"
SETS = ("nbody_pos_nx3_f32", "md_lj_pos_nx3_f32", "md_cu_pos_nx3_f32", "lidar_autzen_xyz_nx3_f64")
RELATIVE = ("1e-2", "1e-3", "1e-4")
ORDERS = ("kept", "tile", "chunk")
COLUMNS = (
    "set", "rel", "Zstd", "SZ3", "Cuszp2", "HierarchicalDelta", "Lorenzo", "best, columns apart", *ORDERS,
    "chose", "written, kept", "tile / best", "chunk / best", "written / best",
)  # fmt: skip
SPEEDS = ("set", "rel", *(f"{order} {way}" for order in ORDERS for way in "CD"), "sorted, kept C", "Lorenzo C", "D")
LEGEND = (
    "Ratios: bytes of the positions by bytes of the frame, each set one chunk (N, 3), the bound relative to the "
    "longest extent; every coordinate is checked, of sorted ones in their order. Zstd and SZ3: hdf5plugin's, SZ3 of "
    "each coordinate apart with the same bound. 'best, columns apart': the best of our other codecs on each coordinate "
    "by itself; 'best' in the last columns is the best of our other codecs either way. 'chose': what 'chunk' wrote. "
    "'written, kept': the dataset that pyfilter.particles.write makes, which keeps the order and may store coordinates "
    "apart. "
    "Speeds in GB/s of values and CPU second, one thread, chunks of 262144 particles, the best of some runs; C "
    "compresses, D decompresses. 'sorted, kept': rows that are sorted already, as pyfilter.particles.write gives them."
)


def ratio(values: NDArray[Any], codec: pyfilter.Codec) -> tuple[float, str]:
    """Return the ratio and the codec of the frame, once every coordinate is checked."""
    frame = pyfilter.encode(values, codec)
    info, decoded = pyfilter.frame_info(frame), pyfilter.decode(frame)
    given = values
    if info.codec == "particles":
        given = values[host.particle_order(make_request(codec, values.dtype, values.shape), values)]
    error = np.abs(decoded.astype(np.longdouble) - given)
    if not (error <= codec.bound[1]).all():
        message = f"{codec!r} misses its bound"
        raise AssertionError(message)
    return values.nbytes / len(frame), info.codec


def zstd_ratio(values: NDArray[Any]) -> float:
    """Return the ratio of Zstd with shuffle, which loses nothing."""
    import hdf5plugin

    with h5py.File("zstd.h5", "w", driver="core", backing_store=False) as file:
        made = file.create_dataset("x", data=values, chunks=values.shape, shuffle=True, **hdf5plugin.Zstd())
        return values.nbytes / float(made.id.get_storage_size())


def apart(values: NDArray[Any], codec: pyfilter.Codec) -> float:
    """Return the ratio of a codec on each coordinate by itself."""
    return values.nbytes / sum(values[:, i].nbytes / ratio(values[:, i].copy(), codec)[0] for i in range(3))


def written(values: NDArray[Any], codec: pyfilter.Particles) -> float:
    """Return the ratio of the dataset that `pyfilter.particles.write` makes, once every coordinate is checked."""
    with h5py.File("written.h5", "w", driver="core", backing_store=False) as file:
        made = pyfilter.particles.write(file, position=values, codec=codec, chunk=len(values))["position"]
        error = np.abs(pyfilter.read(made).astype(np.longdouble) - values)
        if not (error <= codec.bound[1]).all():
            message = f"{codec!r}, as written, misses its bound"
            raise AssertionError(message)
        return values.nbytes / float(made.id.get_storage_size())


def speed_row(name: str, relative: str, values: NDArray[Any], bound: float) -> list[str]:
    """Measure a set at a bound."""
    values = values[: 1 << 18]
    cells = []
    for order in ORDERS:
        codec = pyfilter.Particles(absolute=bound, order=order)
        frame = pyfilter.encode(values, codec)
        cells += [seconds(partial(pyfilter.encode, values, codec)), seconds(partial(pyfilter.decode, frame))]
    index = host.particle_order(make_request(codec, values.dtype, values.shape), values)
    laid, plain = values[index], pyfilter.Particles(absolute=bound)
    cells.append(seconds(lambda: pyfilter.encode(laid, plain)))
    lorenzo = pyfilter.Lorenzo(absolute=bound)
    frame = pyfilter.encode(values, lorenzo)
    cells += [seconds(lambda: pyfilter.encode(values, lorenzo)), seconds(lambda: pyfilter.decode(frame))]
    return [name, relative, *(f"{values.nbytes / 1e9 / cell:.2f}" for cell in cells)]


def main(
    data: Annotated[Path | None, typer.Option(help="Folder of .npy files; default ../shared/data.")] = None,
    speed: Annotated[bool, typer.Option(help="Measure speeds, too.")] = True,
    markdown: Annotated[Path | None, typer.Option(help="Write the Markdown text to this file.")] = None,
    save: Annotated[bool, typer.Option("--save", help="Keep it in benchmarks/results/.")] = False,
) -> None:
    """Compress every particle set in every order and print ratios and speeds."""
    console = Console(width=200, highlight=False)
    folder = find_data(data)
    if folder is None:
        message = "no particle sets: give --data"
        raise typer.BadParameter(message)
    table, speeds = Rows("", COLUMNS), Rows("Speed on one CPU core", SPEEDS)
    gains: dict[str, list[float]] = {order: [] for order in ORDERS}
    alike: list[float] = []  # order kept, against the same array
    files: list[float] = []  # and as it is written, against the best either way
    for name in SETS:
        values = np.load(folder / f"{name}.npy")
        extent = float((values.max(0).astype("f8") - values.min(0)).max())
        lossless = zstd_ratio(values)
        for relative in RELATIVE:
            bound = float(relative) * extent
            codecs = [kind(absolute=bound) for kind in (pyfilter.Cuszp2, pyfilter.HierarchicalDelta, pyfilter.Lorenzo)]
            others = [ratio(values, codec)[0] for codec in codecs]
            columns = max(apart(values, codec) for codec in codecs)
            peers = [sz3_ratio(values[:, i].copy(), bound) for i in range(3)]
            peer = 3 / sum(1 / one for one in peers if one) if all(peers) else None
            own = {order: ratio(values, pyfilter.Particles(absolute=bound, order=order)) for order in ORDERS}
            best = max(*others, columns)
            alike.append(own["kept"][0] / max(others))
            made = written(values, pyfilter.Particles(absolute=bound))
            files.append(made / best)
            for order in ORDERS:
                gains[order].append(own[order][0] / best)
            table.add(
                name, relative, f"{lossless:.2f}", f"{peer:.2f}" if peer else "-",
                *(f"{other:.2f}" for other in others),
                f"{columns:.2f}", *(f"{own[order][0]:.2f}" for order in ORDERS), own["chunk"][1],
                f"{made:.2f}", f"{gains['tile'][-1]:.2f}", f"{gains['chunk'][-1]:.2f}", f"{files[-1]:.2f}",
            )  # fmt: skip
            if speed:
                with pyfilter.config(threads=1):
                    speeds.add(*speed_row(name, relative, values, bound))
    means = {order: geometric_mean(found) for order, found in gains.items()}
    summary = [
        f"chunk / best of our other codecs, geometric mean >= 1.3: {'pass' if means['chunk'] >= 1.3 else 'FAIL'}; "
        f"{means['chunk']:.2f}",
        f"tile / best of our other codecs, geometric mean: {means['tile']:.2f}",
        f"order kept, lowest / best of our other codecs on the same array >= 0.95: "
        f"{'pass' if min(alike) >= 0.95 else 'FAIL'}; {min(alike):.2f}",
        f"order kept, written by pyfilter.particles.write / the best either way, lowest >= 0.95: "
        f"{'pass' if min(files) >= 0.95 else 'FAIL'}; {min(files):.2f}",
        f"order kept, one frame of the array / the best either way, lowest: {min(gains['kept']):.2f}",
    ]
    head = origin(shlex.join(["python", "-m", "benchmarks.particles", *sys.argv[1:]]))
    report(console, head, LEGEND, summary, (table, speeds), marker=MARKER, markdown=markdown, save=save)


if __name__ == "__main__":
    typer.run(main)
