# SPDX-License-Identifier: BSD-3-Clause
"""Lossless by both efforts against pcodec, Zstd, deflate and Blosc2, array by array. python -m benchmarks.lossless."""

from __future__ import annotations

import importlib.util
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import h5py
import numpy as np
import typer
from rich.console import Console

import pyfilter
from benchmarks.fields import find_data
from benchmarks.report import Floor, Rows, geometric_mean, mean_line, origin, report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

MARKER = "lossless"
PEERS = ("pcodec 8", "pcodec 12", "Zstd", "Blosc2", "deflate")
#: of the ratio in chunks of 64 KiB by that of one chunk
SMALL_FLOOR = 0.95
COLUMNS = ("array", "type", "MB", *PEERS, "fast", "ratio", "ratio / best", "64 KiB", "MB/s C", "D", "pcodec C", "D")
LEGEND = (
    "Ratios: bytes of the values by bytes stored, each array one chunk. pcodec: levels 8 (default) and 12. Zstd: level "
    "9 behind a byte shuffle; Blosc2: Zstd, level 9, byte shuffle; deflate: HDF5's, level 6, behind its shuffle. fast, "
    "ratio: Lossless by effort. 'ratio / best': by the better of pcodec 8 and Zstd. '64 KiB': the ratio in chunks of "
    "that size by that of one chunk. C, D: MB/s to compress and decompress of effort ratio and of pcodec 8, one "
    "thread, original bytes. Constant arrays are not in the means."
)


def made() -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield arrays that are made here: axes, counters, identifiers, masks, flags, checkpoints."""
    rng = np.random.default_rng(0)
    yield "time axis, hours, f64", 692496.0 + 6.0 * np.arange(8761)
    yield "time axis, days, f64", 730120.0 + np.arange(8761) / 24
    yield "longitudes, f32, in rows", np.tile(np.linspace(-180, 179.75, 1440, dtype=np.float32), (721, 1))
    yield "latitudes, f32, in rows", np.repeat(np.linspace(90, -90, 721, dtype=np.float32), 1440).reshape(721, 1440)
    yield "counter, i64", np.arange(1 << 17)
    yield "identifiers in blocks, i64", np.concatenate([np.arange(512) + s for s in rng.permutation(256) * 512])
    yield "time stamps in ns, i64", np.cumsum(rng.normal(1e6, 50, 1 << 17).astype(np.int64))
    y, x = np.mgrid[0:721, 0:1440] / 90.0
    yield "land mask, i8", (np.sin(x) + np.cos(2 * y) > 0.3).astype(np.int8)
    yield "flags, u8", rng.choice(np.array([0, 1, 2, 4, 9], np.uint8), (512, 512), p=[0.9, 0.06, 0.02, 0.01, 0.01])
    walk = np.cumsum(rng.normal(0, 0.4, 1 << 18))
    yield "observations, hundredths, f64", np.round(walk, 2)
    yield "widened f32, f64", walk.astype(np.float32).astype(np.float64)
    packed = np.round(9000 * (np.sin(x) + np.cos(y)) + rng.normal(0, 20, x.shape))
    yield "unpacked i16, f32", (packed * 0.0017351236 + 273.4178).astype(np.float32)
    yield "unpacked i16, f64", packed / 733.1 + 273.4178
    references = np.repeat([271.3071, 255.9137, 249.0019], [240, 240, 241])[:, None]
    yield "three GRIB messages, f32", (packed / 512 + references).astype(np.float32)
    yield "checkpoint, f64", (np.sin(x) * np.cos(y) + 1e-9 * rng.normal(size=x.shape)).astype(np.float64)


def arrays(data: Path | None, only: str) -> Iterator[tuple[str, NDArray[Any], bool]]:
    """Yield name, values, and whether the array is one of the data folder."""
    wanted = [part for part in only.split(",") if part]
    for path in sorted(data.glob("*.npy")) if data is not None else ():
        if not wanted or any(part in path.name for part in wanted):
            values = np.load(path)
            yield path.stem, np.ascontiguousarray(values.astype(values.dtype.newbyteorder("="))), True
    for name, values in made():
        if not wanted or any(part in name for part in wanted):
            yield name, values, False


def stored_bytes(values: NDArray[Any], **how: Any) -> int:
    """Return the size of one chunk behind filters."""
    with h5py.File("lossless.h5", "w", driver="core", backing_store=False) as file:
        data = file.create_dataset("x", data=values, chunks=values.shape, **how)
        return int(data.id.get_storage_size())


def peer_bytes(values: NDArray[Any]) -> dict[str, int | None]:
    """Return the bytes that each peer needs, None if it does not support the type or is not installed."""
    import hdf5plugin

    sizes: dict[str, int | None] = {
        "Zstd": stored_bytes(values, shuffle=True, **hdf5plugin.Zstd(clevel=9)),
        "Blosc2": stored_bytes(values, **hdf5plugin.Blosc2(cname="zstd", clevel=9, filters=hdf5plugin.Blosc2.SHUFFLE)),
        "deflate": stored_bytes(values, shuffle=True, compression="gzip", compression_opts=6),
        "pcodec 8": None,
        "pcodec 12": None,
    }
    if importlib.util.find_spec("pcodec") is not None and values.dtype.itemsize > 1:
        for level in (8, 12):
            sizes[f"pcodec {level}"] = len(pcodec_bytes(values, level))
    return sizes


def pcodec_bytes(values: NDArray[Any], level: int) -> bytes:
    """Return the values compressed by pcodec."""
    pcodec: Any = importlib.import_module("pcodec")
    made: bytes = pcodec.standalone.simple_compress(values.reshape(-1), pcodec.ChunkConfig(compression_level=level))
    return made


def rate(values: NDArray[Any], work: Callable[[], object]) -> float:
    """MB/s of a call, the best of three."""
    times = []
    for _ in range(3):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return values.nbytes / min(times) / 1e6


def speeds(values: NDArray[Any], codec: pyfilter.Codec) -> list[float | None]:
    """MB/s of compression and decompression, ours and pcodec's, one thread."""
    frame = pyfilter.encode(values, codec)
    with pyfilter.config(threads=1):
        found: list[float | None] = [
            rate(values, lambda: pyfilter.encode(values, codec)), rate(values, lambda: pyfilter.decode(frame))
        ]  # fmt: skip
    if importlib.util.find_spec("pcodec") is None or values.dtype.itemsize == 1:
        return [*found, None, None]
    packed = pcodec_bytes(values, 8)
    pcodec: Any = importlib.import_module("pcodec")
    return [
        *found, rate(values, lambda: pcodec_bytes(values, 8)),
        rate(values, lambda: pcodec.standalone.simple_decompress(packed)),
    ]  # fmt: skip


def small_chunks(values: NDArray[Any], codec: pyfilter.Codec, whole: int) -> float | None:
    """Return the ratio in chunks of about 64 KiB by that of one chunk; None for arrays of less than four of them."""
    if values.nbytes < 4 * 65536:
        return None
    if values.ndim > 1 and values.nbytes // values.shape[0] >= 65536:
        return small_chunks(values.reshape(-1, *values.shape[2:]), codec, whole)
    rows = max(1, 65536 // (values.nbytes // values.shape[0]))
    parts = [values[at : at + rows] for at in range(0, values.shape[0], rows)]
    return whole / sum(len(pyfilter.encode(part, codec)) for part in parts)


def main(
    data: Annotated[Path | None, typer.Option(help="Folder of .npy files; default ../shared/data.")] = None,
    only: Annotated[str, typer.Option("--arrays", help="Parts of array names, with commas between.")] = "",
    markdown: Annotated[Path | None, typer.Option(help="Write the Markdown text to this file.")] = None,
    save: Annotated[bool, typer.Option("--save", help="Keep it in benchmarks/results/.")] = False,
) -> None:
    """Compress every array by every codec, check every bit, and print ratios and speeds."""
    console = Console(width=220, highlight=False)
    table = Rows("", COLUMNS)
    fast, best = pyfilter.Lossless(), pyfilter.Lossless(effort="ratio")
    by_pcodec: list[tuple[float, str]] = []
    by_best: list[tuple[float, str]] = []
    by_deflate: list[tuple[float, str]] = []
    by_fast: list[tuple[float, str]] = []
    of_small: list[float] = []
    means: dict[str, list[float]] = {}
    for name, values, of_folder in arrays(find_data(data), only):
        sizes = peer_bytes(values)
        frame = pyfilter.encode(values, best)
        if pyfilter.decode(frame).tobytes() != values.tobytes():
            message = f"{name}: values came back changed"
            raise RuntimeError(message)
        sizes |= {"fast": len(pyfilter.encode(values, fast)), "ratio": len(frame)}
        ratios = {key: values.nbytes / size for key, size in sizes.items() if size}
        rival = max(ratios.get("pcodec 8", 0), ratios["Zstd"])
        if np.unique(values).size > 1:
            if of_folder and "pcodec 8" in ratios:
                by_pcodec.append((ratios["ratio"] / ratios["pcodec 8"], name))
                by_best.append((ratios["ratio"] / rival, name))
                for key, ratio in ratios.items():
                    means.setdefault(key, []).append(ratio)
            elif not of_folder:
                by_deflate.append((ratios["ratio"] / ratios["deflate"], name))
            by_fast.append((ratios["ratio"] / ratios["fast"], name))
        small = small_chunks(values, best, len(frame))
        if small is not None and of_folder and np.unique(values).size > 1:
            of_small.append(small)
        table.add(
            name, values.dtype.name, f"{values.nbytes / 1e6:.2f}",
            *(f"{ratios[peer]:.2f}" if peer in ratios else "-" for peer in PEERS), f"{ratios['fast']:.2f}",
            f"{ratios['ratio']:.2f}", f"{ratios['ratio'] / rival:.2f}", "-" if small is None else f"{small:.3f}",
            *("-" if speed is None else f"{speed:.0f}" for speed in speeds(values, best)),
        )  # fmt: skip
    findings = [f"geometric mean of ratios, {key}: {geometric_mean(ratios):.3g}" for key, ratios in means.items()]
    findings += [
        Floor("ratio of effort ratio by pcodec 8, geometric mean counts", None, by_pcodec).line(),
        Floor("ratio of effort ratio by the better of pcodec 8 and Zstd", 0.97, by_best).line(),
        Floor("ratio of effort ratio by deflate, arrays made here", 1.0, by_deflate).line(),
        Floor("ratio of effort ratio by effort fast", 1.0, by_fast).line(),
    ]
    if of_small:
        what = "ratio in chunks of 64 KiB by that of one chunk, geometric mean"
        findings.append(mean_line(what, SMALL_FLOOR, of_small))
    head = origin(shlex.join(["python", "-m", "benchmarks.lossless", *sys.argv[1:]]))
    report(console, head, LEGEND, findings, [table], marker=MARKER, markdown=markdown, save=save)


if __name__ == "__main__":
    typer.run(main)
