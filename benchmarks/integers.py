# SPDX-License-Identifier: BSD-3-Clause
"""Integers: ratios with a bound and without, against lossless filters (hdf5plugin). python -m benchmarks.integers."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import h5py
import numpy as np
import typer
from rich.console import Console

import pyfilter
from benchmarks.fields import find_data
from benchmarks.report import Rows, keep, origin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

MARKER = "integers"
BOUNDS = (1, 2, 8)
COLUMNS = (
    "field", "type", "missing", "Zstd", "Blosc", "Lossless", "bit for bit", *(f"within {bound}" for bound in BOUNDS),
    "within 1 / Blosc", "chose",
)  # fmt: skip
LEGEND = (
    "Ratios: bytes of the values by bytes of the one chunk. 'bit for bit' and 'within b': HierarchicalDelta with "
    "absolute=0 and absolute=b, in units of the stored integers, the missing value declared. Zstd: hdf5plugin's, "
    "level 5, behind HDF5's shuffle; Blosc: with Zstd, level 5, and its bit shuffle. 'chose': the predictor within 1."
)


def packed(values: NDArray[Any]) -> NDArray[Any]:
    """Return floats as netCDF packs them: 65000 steps over the range."""
    low, high = float(values.min()), float(values.max())
    steps = (values.astype(np.float64) - (low + high) / 2) / ((high - low) / 65000)
    result: NDArray[Any] = np.round(steps).astype(np.int16)
    return result


def fields(data: Path | None) -> Iterator[tuple[str, NDArray[Any], int | None]]:
    """Yield name, values and missing value: arrays of the data folder, and some made here."""
    if data is not None:
        for path in sorted(data.glob("*_i16.npy")):
            yield path.name.removesuffix("_2d_i16.npy"), np.load(path), -32768
        for name in ("cesm_trefht_3d_f32", "echam_t_3d_f32"):
            if (data / f"{name}.npy").is_file():
                yield f"{name.split('_3d')[0]}, packed as netCDF does", packed(np.load(data / f"{name}.npy")), None
    rng = np.random.default_rng(0)
    y, x = np.mgrid[0:1024, 0:1024] / 160.0
    light = 110 + 60 * np.sin(x + np.cos(2 * y)) + 40 * np.cos(3 * y - x) + 3 * rng.normal(size=x.shape)
    yield "image with noise", np.clip(np.round(light), 0, 255).astype(np.uint8), None
    z, y, x = np.mgrid[0:64, 0:128, 0:128] / 20.0
    body = np.where((x - 3) ** 2 + (y - 3) ** 2 + (z - 1.6) ** 2 < 4, 1100 + 60 * np.sin(2 * x + z), 24.0)
    yield "tomogram with noise", np.round(body + 8 * rng.normal(size=x.shape)).astype(np.uint16), None
    yield "counts", np.cumsum(rng.poisson(40, 1 << 18)).astype(np.int32), None
    yield "identifiers, in blocks", np.concatenate([np.arange(512) + s for s in rng.permutation(512) * 512]), None
    yield "time stamps in ns", np.cumsum(rng.normal(1e6, 50, 1 << 17).astype(np.int64)), None


def stored_bytes(values: NDArray[Any], **how: Any) -> int:
    """Return the size of one chunk behind a filter."""
    with h5py.File("integers.h5", "w", driver="core", backing_store=False) as file:
        data = file.create_dataset("x", data=values, chunks=values.shape, **how)
        return int(data.id.get_storage_size())


def encoded(values: NDArray[Any], codec: pyfilter.Codec, bound: int, fill: int | None) -> tuple[float, str]:
    """Return the ratio and the predictor; every value is checked against the bound."""
    frame = pyfilter.encode(values, codec, fill)
    result = pyfilter.verify(values, pyfilter.decode(frame), bound, fill_value=fill)
    if not result.ok:
        message = f"{codec!r} broke its bound: {result}"
        raise RuntimeError(message)
    return values.nbytes / len(frame), str(pyfilter.frame_info(frame).parameters.get("predictor", ""))


def main(
    data: Annotated[Path | None, typer.Option(help="Folder of .npy files; default ../shared/data.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write the Markdown text to this file.")] = None,
    save: Annotated[bool, typer.Option("--save", help="Keep it in benchmarks/results/.")] = False,
) -> None:
    """Compress every field by every filter and print the ratios."""
    import hdf5plugin

    console = Console(width=200, highlight=False)
    table = Rows("", COLUMNS)
    for name, values, fill in fields(find_data(data)):
        zstd = values.nbytes / stored_bytes(values, shuffle=True, **hdf5plugin.Zstd(clevel=5))
        blosc = values.nbytes / stored_bytes(
            values, **hdf5plugin.Blosc(cname="zstd", clevel=5, shuffle=hdf5plugin.Blosc.BITSHUFFLE)
        )
        lossless = max(
            encoded(values, pyfilter.Lossless(block_dims=dims), 0, None)[0]
            for dims in range(1, min(3, values.ndim) + 1)
        )
        exact, _ = encoded(values, pyfilter.HierarchicalDelta(absolute=0), 0, fill)
        ours = [encoded(values, pyfilter.HierarchicalDelta(absolute=bound), bound, fill) for bound in BOUNDS]
        missing = "" if fill is None else f"{np.mean(values == fill):.2f}"
        table.add(
            name, values.dtype.name, missing, *(f"{ratio:.2f}" for ratio in (zstd, blosc, lossless, exact)),
            *(f"{ratio:.2f}" for ratio, _ in ours), f"{ours[0][0] / blosc:.2f}", ours[0][1],
        )  # fmt: skip
    head = origin(shlex.join(["python", "-m", "benchmarks.integers", *sys.argv[1:]]))
    console.print("\n".join(head), LEGEND, sep="\n")
    table.show(console)
    for path in keep(head, LEGEND, [], [table], marker=MARKER, markdown=markdown, save=save):
        console.print(f"wrote {path}")


if __name__ == "__main__":
    typer.run(main)
