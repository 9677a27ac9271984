# SPDX-License-Identifier: BSD-3-Clause
"""Sizes by compress's defaults of real and generated files, against `nccopy -d5 -s` and Cuszp2: benchmarks.defaults."""

from __future__ import annotations

import math
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import click
import h5py
import numpy as np
from rich.console import Console

from benchmarks.fields import find_data
from benchmarks.report import Rows, keep, origin
from pyfilter import Auto, Cuszp2, checking
from pyfilter.rewrite import Rules, compress_file

MARKER = "defaults"
BOUNDS = (1e-3, 1e-4)
MOST = 0.75  # of the sizes with Cuszp2, their geometric mean
COLUMNS = ("file", "bound", "input", "nccopy -d5 -s", "Cuszp2", "default", "--fast", "default / Cuszp2")
LEGEND = (
    "Bytes of whole files; bounds relative to each variable's range. 'Cuszp2' is that codec for every variable of "
    "floats, coordinates bit for bit; 'default' is `pyfilter compress` without --codec, --fast the same without "
    "Adaptive. nccopy leaves out what netCDF has no type for (compounds of HDF5 files): '-' then. Files with 'made' in "
    "their name are made here."
)


def made(folder: Path) -> None:
    """Write six files: smooth, rounded, sparse and deflated fields, counters with a mask, and noise."""
    rng = np.random.default_rng(7)
    y, x = np.mgrid[0:256, 0:384] / 60.0
    waves = np.stack([np.sin(x + step / 9) * np.cos(2 * y - step / 7) for step in range(20)]).astype("f4")
    rain = np.zeros(waves.shape, "f4")
    rain[4:9, 50:90, 100:160] = rng.gamma(1.0, 3.0, (5, 40, 60))
    kinds: dict[str, dict[str, Any]] = {
        "made_smooth": {"data": waves},
        "made_rounded": {"data": np.round(280 + 10 * waves + rng.normal(0, 1, waves.shape), 1).astype("f4")},
        "made_sparse": {"data": rain},
        "made_deflated": {"data": np.repeat(waves[:4], 5, axis=0), "compression": 9, "shuffle": True},
        "made_counters": {"data": np.arange(500_000)},
        "made_noise": {"data": rng.normal(size=(20, 256, 384)).astype("f4")},
    }
    for name, how in kinds.items():
        with h5py.File(folder / f"{name}.h5", "w") as file:
            file.create_dataset("v", **how)
            file["mask"] = (waves[0] > 0.2).astype("u1")
            file["lon"] = np.linspace(0, 360, 20_000)


def deflated(source: Path, target: Path) -> int | None:
    """Return the size of nccopy's file; None if nccopy loses values."""
    done = subprocess.run(["nccopy", "-d5", "-s", source, target], capture_output=True, check=False)
    if done.returncode != 0 or not h5py.is_hdf5(target):
        return None
    if h5py.is_hdf5(source) and values_of(target) < values_of(source):
        return None
    return target.stat().st_size


def values_of(path: Path) -> int:
    """Return the number of values in a file."""
    with h5py.File(path) as file:
        return sum(int(item.size or 0) for item in checking.datasets(file))


@click.command(context_settings={"show_default": True})
@click.option("--data", type=click.Path(path_type=Path), help="Folder with files/; default ../shared/data.")
@click.option("--markdown", type=click.Path(path_type=Path), help="Write the Markdown text to this file.")
@click.option("--save", is_flag=True, help="Keep it in benchmarks/results/.")
def main(data: Path | None, markdown: Path | None, save: bool) -> None:
    """Compress every file by default, fast and with Cuszp2, and print the sizes and whether the floors hold."""
    console = Console(width=200, highlight=False)
    table = Rows("", COLUMNS)
    summary = []
    found = find_data(data)
    with tempfile.TemporaryDirectory(prefix="pyfilter-bench-") as name:
        folder = Path(name)
        made(folder)
        sources = sorted((found / "files").iterdir()) if found is not None else []
        sources += sorted(folder.glob("made_*.h5"))
        larger = []
        for bound in BOUNDS:
            logs = []
            for source in sources:
                plain = deflated(source, folder / "nccopy.nc") if shutil.which("nccopy") else None
                sizes = [
                    compress_file(source, folder / "out", rules, history=True, attributes=True).file_bytes_out
                    for rules in (
                        Rules(Cuszp2(relative=bound)),
                        Rules(Auto(relative=bound), choose=True),
                        Rules(Auto(relative=bound), choose=True, fast=True),
                    )
                ]
                before = source.stat().st_size
                if max(sizes[1:]) > min(before, plain if plain is not None else before):
                    larger.append(f"{source.name} at {bound:g}")
                logs.append(math.log(sizes[1] / sizes[0]))
                table.add(
                    source.name, f"{bound:g}", str(before), "-" if plain is None else str(plain),
                    *map(str, sizes), f"{sizes[1] / sizes[0]:.2f}",
                )  # fmt: skip
            mean = math.exp(sum(logs) / len(logs))
            state = "pass" if mean <= MOST else "FAIL"
            summary.append(f"geometric mean at {bound:g} of the sizes with Cuszp2 <= {MOST}: {state}; {mean:.3f}")
    summary.append(f"no file larger than its input or nccopy's: {'FAIL, ' + ', '.join(larger) if larger else 'pass'}")
    head = origin(shlex.join(["python", "-m", "benchmarks.defaults", *sys.argv[1:]]))
    console.print("\n".join(head), LEGEND, sep="\n")
    table.show(console)
    console.print("\n".join(summary))
    for path in keep(head, LEGEND, summary, [table], marker=MARKER, markdown=markdown, save=save):
        console.print(f"wrote {path}")


if __name__ == "__main__":
    main()
