# SPDX-License-Identifier: BSD-3-Clause
"""Compression ratios of every predictor against Cuszp2 and SZ3 (hdf5plugin). python -m benchmarks.ratios."""

from __future__ import annotations

import io
import math
import multiprocessing
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import h5py
import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console

import pyfilter
from benchmarks.fields import fields, find_data
from benchmarks.report import Rows, origin, report

MARKER = "ratios"
PREDICTORS = ("auto", "chain", "columns", "lorenzo2d", "lorenzo3d")
COLUMNS = ("field", "rel", "SZ3", *PREDICTORS, "chose", "Cuszp2, best mode", "auto / SZ3", "auto / Cuszp2")
FLOORS = {"1e-2": 0.36, "1e-3": 0.70, "1e-4": 0.80}
LEGEND = (
    "Ratios: bytes of the values by bytes of the frame, each field one chunk, the bound relative to its range without "
    "fill values. SZ3: hdf5plugin's, the same absolute bound; '-' where it crashed, took longer than the limit or lost "
    "the bound of finite values. 'chose': what predictor='auto' took, with the axes that it differences. Cuszp2: the "
    "best of its modes and block dimensions."
)
LIMIT_S = 25
HOLES = ("foam_v_fill", "pop_t_fill", "pop_t_nan", "cesm_le_ts_nan")


def sz3_bytes(values: NDArray[Any], bound: float, results: Any) -> None:
    """Put the size of SZ3's chunk for ``values`` into the queue, 0 where it lost the bound.

    In a process of its own, as it may crash.
    """
    import hdf5plugin

    with h5py.File("sz3.h5", "w", driver="core", backing_store=False) as file:
        file.create_dataset("x", data=values, chunks=values.shape, **hdf5plugin.SZ3(absolute=bound))
        file.flush()
        image = file.id.get_file_image()
    with h5py.File(io.BytesIO(image)) as file:
        size, decoded = int(file["x"].id.get_storage_size()), file["x"][...]
    finite = np.isfinite(values)
    errors = np.abs(decoded[finite].astype(np.float64) - values[finite])
    results.put(size if bool((errors <= bound * (1 + 1e-6)).all()) else 0)


def ratio_in_process(measure: Callable[..., None], values: NDArray[Any], *arguments: Any) -> float | None:
    """Return the ratio for the size that ``measure(values, *arguments, queue)`` puts into a queue.

    None where it fails, takes too long or puts 0.
    """
    results: Any = multiprocessing.Queue()
    process = multiprocessing.Process(target=measure, args=(values, *arguments, results), daemon=True)
    process.start()
    try:
        size = results.get(timeout=LIMIT_S)
    except Exception:
        return None
    finally:
        process.kill()
        process.join()
    return values.nbytes / size if size > 0 else None


def sz3_ratio(values: NDArray[Any], bound: float) -> float | None:
    """Return SZ3's ratio, None where it fails, takes too long or loses the bound of finite values."""
    return ratio_in_process(sz3_bytes, values, bound)


def filled(values: NDArray[Any], missing: NDArray[np.bool_]) -> NDArray[Any]:
    """Return the field with its holes filled smoothly: by means of neighbours, from the rim inwards, then relaxed."""
    x = np.where(missing, 0.0, values).astype(np.float64)
    known = ~missing
    while not known.all():
        total, count = np.zeros(x.shape), np.zeros(x.shape)
        for axis in range(x.ndim):
            for shift in (1, -1):
                total += np.roll(np.where(known, x, 0.0), shift, axis)
                count += np.roll(known, shift, axis)
        new = ~known & (count > 0)
        if not new.any():
            break
        x[new] = total[new] / count[new]
        known |= new
    for _ in range(50):
        around = np.mean([np.roll(x, shift, axis) for axis in range(x.ndim) for shift in (1, -1)], axis=0)
        x[missing] = around[missing]
    return x.astype(values.dtype)


def holes(data: Path | None) -> tuple[Rows, list[str]]:
    """Compare fields with missing values with the same fields whose holes are filled."""
    rows = Rows("Missing values (predictor auto)", ("field", "missing", "rel", "with holes", "filled", "with / filled"))
    low: list[str] = []
    for field in fields(data, 0, list(HOLES)):
        values = field.values
        missing = ~np.isfinite(values) | (np.abs(values) > 1e19)
        smooth = filled(values, missing)
        for relative in FLOORS:
            codec = pyfilter.HierarchicalDelta(absolute=field.bound(float(relative)))
            with_holes = encoded(values, codec, field.fill)[0]
            without = encoded(smooth, codec, None)[0]
            rows.add(
                field.name, f"{missing.mean():.3f}", relative, f"{with_holes:.2f}", f"{without:.2f}",
                f"{with_holes / without:.3f}",
            )  # fmt: skip
            if with_holes < 0.9 * without:
                low.append(f"{field.name} {relative}")
    return rows, low


def encoded(values: NDArray[Any], codec: pyfilter.Codec, fill: Any) -> tuple[float, pyfilter.FrameInfo]:
    """Return the ratio and the frame's header; every value is checked against the bound."""
    frame = pyfilter.encode(values, codec, fill_value=fill)
    info = pyfilter.frame_info(frame)
    back = pyfilter.decode(frame)
    finite = np.isfinite(values)
    error = np.abs(values[finite].astype(np.longdouble) - back[finite].astype(np.longdouble))
    if error.size and float(error.max()) > info.bound:
        message = f"{codec!r} broke its bound: {error.max()} > {info.bound}"
        raise RuntimeError(message)
    return values.nbytes / len(frame), info


def main(
    data: Annotated[Path | None, typer.Option(help="Folder of .npy files; default ../shared/data.")] = None,
    only: Annotated[str, typer.Option("--fields", help="Parts of field names, with commas between.")] = "",
    markdown: Annotated[Path | None, typer.Option(help="Write the Markdown text to this file.")] = None,
    save: Annotated[bool, typer.Option("--save", help="Keep it in benchmarks/results/.")] = False,
) -> None:
    """Compress every field with every predictor and print the ratios."""
    console = Console(width=200, highlight=False)
    table = Rows("", COLUMNS)
    means: dict[str, list[float]] = {relative: [] for relative in FLOORS}
    below: list[str] = []
    folder = find_data(data)
    for field in fields(folder, 0, [part for part in only.split(",") if part]):
        values = field.values
        low, high = field.limits
        for relative in FLOORS:
            bound = field.bound(float(relative))
            ratios: dict[str, float] = {}
            chose = ""
            for predictor in PREDICTORS:
                if values.ndim < {"columns": 2, "lorenzo2d": 2, "lorenzo3d": 3}.get(predictor, 0):
                    continue
                codec = pyfilter.HierarchicalDelta(absolute=bound, predictor=predictor, outliers="on")
                ratios[predictor], info = encoded(values, codec, field.fill)
                if predictor == "auto":
                    chose = f"{info.parameters['predictor']} {info.parameters['order']}"
            cuszp2 = max(
                encoded(values, pyfilter.Cuszp2(absolute=bound, mode=mode, block_dims=dims), field.fill)[0]
                for mode in ("outlier", "plain", "fixed")
                for dims in range(1, min(3, max(1, values.ndim)) + 1)
            )
            peer = sz3_ratio(values, bound) if high > low else None
            if peer is not None:
                means[relative].append(math.log(ratios["auto"] / peer))
            if ratios["auto"] < cuszp2:
                below.append(f"{field.name} {relative}")
            table.add(
                field.name, relative, f"{peer:.2f}" if peer else "-",
                *(f"{ratios[p]:.2f}" if p in ratios else "" for p in PREDICTORS), chose, f"{cuszp2:.2f}",
                f"{ratios['auto'] / peer:.3f}" if peer else "", f"{ratios['auto'] / cuszp2:.3f}",
            )  # fmt: skip
    summary = []
    for relative, logs in means.items():
        mean = math.exp(sum(logs) / len(logs)) if logs else math.nan
        state = "pass" if mean >= FLOORS[relative] else "FAIL"
        summary.append(
            f"auto / SZ3 at {relative}, geometric mean of {len(logs)} fields >= {FLOORS[relative]}: {state}; {mean:.3f}"
        )
    summary.append(f"auto never below Cuszp2's best mode: {'FAIL, ' + ', '.join(below) if below else 'pass'}")
    missing, low_fields = holes(folder)
    summary.append(
        f"with missing values >= 0.9 of the ratio with holes filled: "
        f"{'FAIL, ' + ', '.join(low_fields) if low_fields else 'pass'}"
    )
    head = origin(shlex.join(["python", "-m", "benchmarks.ratios", *sys.argv[1:]]))
    report(console, head, LEGEND, summary, (table, missing), marker=MARKER, markdown=markdown, save=save)


if __name__ == "__main__":
    typer.run(main)
