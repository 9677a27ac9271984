# SPDX-License-Identifier: BSD-3-Clause
"""Ratios of Adaptive against Lorenzo, SZ3, SPERR and ZFP, field by field. python -m benchmarks.adaptive."""

from __future__ import annotations

import importlib.util
import io
import shlex
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import h5py
import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console

import pyfilter
from benchmarks.fields import Field, fields, find_data
from benchmarks.ratios import encoded, ratio_in_process
from benchmarks.report import Rows, geometric_mean, mean_line, origin, report

MARKER = "adaptive"
RELATIVE = ("1e-2", "1e-3", "1e-4")
PEERS = ("SZ3", "SZ3 3.3", "SPERR", "ZFP")
COLUMNS = ("field", "rel", *PEERS, "Lorenzo", "Adaptive", "fast", "Adaptive / SZ3", "4 MB", "256 KB", "MB/s C", "D")
#: geometric means of ratio by SZ3's: fields of several dimensions, lines
FLOORS = {"1e-2": (1.55, 1.35), "1e-3": (1.45, 1.40), "1e-4": (1.38, 1.40)}
#: least ratio in chunks of so many bytes, by that of one chunk
CHUNK_FLOORS = {4 << 20: 0.96, 256 << 10: 0.88}
#: chunks that are timed
TIMED_CHUNKS = (4 << 20, 1 << 20, 256 << 10)
LEGEND = (
    "Ratios: bytes of the values by bytes of the frame, each field one chunk, the bound relative to its range without "
    "fill values. SZ3, SPERR, ZFP: hdf5plugin's; SZ3 3.3: pysz; the same absolute bound. '-' where a peer crashed, "
    "took longer than the limit, lost the bound of finite values or cannot take the field. '4 MB', '256 KB': the ratio "
    "in chunks of about that size, by the ratio of one chunk. C, D: one thread, effort 'best', original bytes."
)


def peer_filter(name: str, bound: float) -> dict[str, Any]:
    """Return the arguments of create_dataset for a peer of hdf5plugin."""
    import hdf5plugin

    if name == "SPERR":
        return dict(hdf5plugin.Sperr(absolute=bound, swap=True))
    return dict(hdf5plugin.SZ3(absolute=bound) if name == "SZ3" else hdf5plugin.Zfp(accuracy=bound))


def peer_bytes(values: NDArray[Any], name: str, bound: float, results: Any) -> None:
    """Put a peer's size for ``values`` into the queue, 0 where it lost the bound.

    In a process of its own, as it may crash.
    """
    if name == "SZ3 3.3":
        pysz: Any = importlib.import_module("pysz")
        config = pysz.szConfig(values.shape)
        config.errorBoundMode, config.absErrorBound = pysz.szErrorBoundMode.ABS, bound
        compressed = pysz.sz.compress(values, config)[0]
        size, decoded = compressed.nbytes, pysz.sz.decompress(compressed, values.dtype, values.shape)[0]
    else:
        with h5py.File("peer.h5", "w", driver="core", backing_store=False) as file:
            file.create_dataset("x", data=values, chunks=values.shape, **peer_filter(name, bound))
            file.flush()
            image = file.id.get_file_image()
        with h5py.File(io.BytesIO(image)) as file:
            size, decoded = int(file["x"].id.get_storage_size()), file["x"][...]
    finite = np.isfinite(values)
    errors = np.abs(decoded[finite].astype(np.float64) - values[finite])
    results.put(size if bool((errors <= bound * (1 + 1e-6)).all()) else 0)


def peer_ratio(name: str, values: NDArray[Any], bound: float) -> float | None:
    """Return a peer's ratio, None if it fails, takes too long or does not support the field."""
    if name == "SZ3 3.3" and importlib.util.find_spec("pysz") is None:
        return None
    if (name == "SPERR" and values.ndim not in (2, 3)) or (name == "ZFP" and values.ndim > 4):
        return None
    return ratio_in_process(peer_bytes, values, name, bound)


def is_line(values: NDArray[Any]) -> bool:
    """Whether a field has one dimension, components left out."""
    return values.ndim == 1 or (values.ndim == 2 and values.shape[-1] < 8)


def in_chunks(field: Field, codec: pyfilter.Codec, chunk_bytes: int) -> tuple[float, float] | None:
    """Return the ratio and MB/s of one thread in chunks of about ``chunk_bytes``: parts of the first axis.

    None if the field is smaller.
    """
    values = field.values
    rows = max(1, round(chunk_bytes / (values.nbytes / values.shape[0])))
    if rows >= values.shape[0]:
        return None
    parts = [values[at : at + rows] for at in range(0, values.shape[0], rows)]
    with pyfilter.config(threads=1):
        began = time.perf_counter()
        size = sum(len(pyfilter.encode(part, codec, fill_value=field.fill)) for part in parts)
        seconds = time.perf_counter() - began
    return values.nbytes / size, values.nbytes / seconds / 1e6


def speeds(field: Field, codec: pyfilter.Codec) -> tuple[float, float]:
    """MB/s of compression and decompression, one thread, the better of two calls each."""
    times: list[list[float]] = [[], []]
    frame = b""
    with pyfilter.config(threads=1):
        for _ in range(2):
            began = time.perf_counter()
            frame = pyfilter.encode(field.values, codec, fill_value=field.fill)
            times[0].append(time.perf_counter() - began)
            began = time.perf_counter()
            pyfilter.decode(frame)
            times[1].append(time.perf_counter() - began)
    return field.values.nbytes / min(times[0]) / 1e6, field.values.nbytes / min(times[1]) / 1e6


def mean_of(count: int, line: bool) -> str:
    """Say what a geometric mean is of."""
    return f"geometric mean of {count} {'lines' if line else 'fields of several dimensions'}"


def judged(what: str, ratios: list[float], line: bool, floor: float) -> str:
    """Return the geometric mean of ratios, and whether it reaches its floor."""
    return mean_line(f"{what}, {mean_of(len(ratios), line)}", floor, ratios)


def main(
    data: Annotated[Path | None, typer.Option(help="Folder of .npy files; default ../shared/data.")] = None,
    only: Annotated[str, typer.Option("--fields", help="Parts of field names, with commas between.")] = "",
    markdown: Annotated[Path | None, typer.Option(help="Write the Markdown text to this file.")] = None,
    save: Annotated[bool, typer.Option("--save", help="Keep it in benchmarks/results/.")] = False,
) -> None:
    """Compress every field with every codec and print the ratios."""
    console = Console(width=200, highlight=False)
    table = Rows("", COLUMNS)
    means: dict[tuple[str, bool], list[float]] = {}
    worse: list[str] = []
    of_fast: dict[str, list[float]] = {}
    of_chunks: dict[tuple[int, bool], list[float]] = {}
    written: dict[tuple[int, bool], list[tuple[float, float]]] = {}  # MB/s of 'best' and 'fast'
    for field in fields(find_data(data), 0, [part for part in only.split(",") if part]):
        values = field.values
        if field.limits[1] <= field.limits[0]:
            continue
        for relative in RELATIVE:
            bound = field.bound(float(relative))
            peers = {name: peer_ratio(name, values, bound) for name in PEERS}
            best = pyfilter.Adaptive(absolute=bound)
            lorenzo = encoded(values, pyfilter.Lorenzo(absolute=bound), field.fill)[0]
            adaptive = encoded(values, best, field.fill)[0]
            hasty = pyfilter.Adaptive(absolute=bound, effort="fast")
            fast = encoded(values, hasty, field.fill)[0]
            of_fast.setdefault(relative, []).append(fast / adaptive)
            if adaptive < 0.99 * lorenzo:
                worse.append(f"{field.name} {relative}")
            sz3 = peers["SZ3"]
            if sz3:
                means.setdefault((relative, is_line(values)), []).append(adaptive / sz3)
            parts: dict[int, float | None] = dict.fromkeys(CHUNK_FLOORS)
            for size in TIMED_CHUNKS:
                chunked, chunked_fast = in_chunks(field, best, size), in_chunks(field, hasty, size)
                if chunked is None or chunked_fast is None:
                    continue
                written.setdefault((size, is_line(values)), []).append((chunked[1], chunked_fast[1]))
                if size in CHUNK_FLOORS:
                    parts[size] = chunked[0]
                    of_chunks.setdefault((size, is_line(values)), []).append(chunked[0] / adaptive)
            table.add(
                field.name, relative, *(f"{ratio:.2f}" if ratio else "-" for ratio in peers.values()),
                f"{lorenzo:.2f}", f"{adaptive:.2f}", f"{fast:.2f}", f"{adaptive / sz3:.2f}" if sz3 else "",
                *(f"{ratio / adaptive:.2f}" if ratio else "" for ratio in parts.values()),
                *(f"{speed:.0f}" for speed in speeds(field, best)),
            )  # fmt: skip
    summary = []
    for (relative, line), ratios in means.items():
        summary.append(judged(f"Adaptive / SZ3 at {relative}", ratios, line, FLOORS[relative][1 if line else 0]))
    summary.append(f"no field below Lorenzo by more than 1 %: {'FAIL, ' + ', '.join(worse) if worse else 'pass'}")
    for relative, ratios in of_fast.items():
        summary.append(f"effort 'fast' at {relative}, by 'best', geometric mean: {geometric_mean(ratios):.3f}")
    for (size, line), ratios in of_chunks.items():
        summary.append(judged(f"chunks of {size >> 10} KB by one chunk", ratios, line, CHUNK_FLOORS[size]))
    for (size, line), pairs in written.items():
        best_speed, fast_speed = (geometric_mean([pair[i] for pair in pairs]) for i in range(2))
        summary.append(
            f"chunks of {size >> 10} KB written, MB/s of a core, {mean_of(len(pairs), line)}: "
            f"'best' {best_speed:.0f}, 'fast' {fast_speed:.0f}"
        )
    head = origin(shlex.join(["python", "-m", "benchmarks.adaptive", *sys.argv[1:]]))
    report(console, head, LEGEND, summary, (table,), marker=MARKER, markdown=markdown, save=save)


if __name__ == "__main__":
    typer.run(main)
