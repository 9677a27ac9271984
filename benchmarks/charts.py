# SPDX-License-Identifier: BSD-3-Clause
"""The charts of docs/benchmarks.md, drawn from benchmarks/results/*.json; each says which machine and date it shows.

``python -m benchmarks.charts`` draws them all into docs/charts. Neighbours: result.py reads the files, style.py has the
look.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.chart_style import COLOURS, OTHERS, bars, figure, finish, label, legend, plain_ticks
from benchmarks.report import geometric_mean
from benchmarks.result import Result

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "charts"
BOUNDS = ("1e-2", "1e-3", "1e-4")
#: the charts' names of codecs of gpu_codec.json
ON_GPU = {
    "Cuszp2": "outlier 1-D",
    "HierarchicalDelta, chain": "chain delta",
    "HierarchicalDelta, volumes": "lorenzo3d delta",
    "nvCOMP Bitcomp": "Bitcomp",
}


def number(cell: str) -> float | None:
    """Return the number that a cell begins with, None for words, gaps and broken bounds."""
    found = re.match(r"-?[\d.]+(?:e-?\d+)?", cell)
    return float(found[0]) if found else None


def ratios_by_field() -> dict[str, dict[tuple[str, str], float]]:
    """Return ratios by name of the codec, then by field and bound, of runs that kept the bound."""
    found: dict[str, dict[tuple[str, str], float]] = {}

    def note(name: str, row: Mapping[str, str], cell: str) -> None:
        value = number(cell)
        # "b": the bound was broken. "s": NaN or fill values were lost
        if value is not None and not re.search(r" [bs]+$", cell):
            found.setdefault(name, {})[row["field"], row["rel"]] = value

    for row in Result.load("peers").tables[1].records():
        for name, column in {"Cuszp2": "ours", **{peer: peer for peer in ("SZ3", "Zfp", "Zstd")}}.items():
            if not row["field"].startswith("gen_"):
                note(name, row, row[column])
    for row in Result.load("lorenzo").tables[0].records():
        note("Lorenzo", row, row["rans"])
        note("HierarchicalDelta", row, row["HierarchicalDelta"])
    if "adaptive" in saved():
        for row in Result.load("adaptive").tables[0].records():
            note("Adaptive", row, row["Adaptive"])
    return found


def saved() -> set[str]:
    """Return the names of the existing results."""
    return {path.stem for path in Path(__file__).with_name("results").glob("*.json")}


def ratio(path: Path) -> None:
    """Draw the ratios at a bound, beside other filters."""
    found = ratios_by_field()
    common = set.intersection(*(set(by_field) for by_field in found.values()))
    fields = sorted({field for field, _ in common if all((field, bound) in common for bound in BOUNDS)})
    drawing, axes = figure(3, "How small are files at the same error bound?", wide=True)
    for axis, bound in zip(axes, BOUNDS, strict=True):
        means = {name: geometric_mean(by_field[field, bound] for field in fields) for name, by_field in found.items()}
        bars(axis, dict(sorted(means.items(), key=lambda item: item[1])), "{:.1f}")
        axis.set_title(f"bound {bound} of the range")
        axis.set_xlabel("compression ratio")
    names = ["peers", "lorenzo"] + (["adaptive"] if "adaptive" in found else [])
    finish(
        drawing,
        path,
        names,
        f"Geometric mean over the {len(fields)} fields of our collection that all filters code within the bound, "
        "missing values kept. Longer is better. Zstd keeps every bit.",
    )


def speeds_cpu() -> dict[str, dict[str, list[tuple[float, float, float]]]]:
    """Return ratio, GB/s to compress and GB/s to decompress at 1e-3, "in memory" and "through h5py", by codec.

    The fields are those of Lorenzo's speed figures, and the codecs those with figures for all of these fields.
    """
    chosen = [row for row in Result.load("lorenzo").tables[1].records() if row["rel"] == "1e-3"]
    fields = {row["field"] for row in chosen}
    found: dict[str, dict[str, list[tuple[float, float, float]]]] = {"in memory": {}, "through h5py": {}}

    def note(kind: str, name: str, ratio: str, compress: str, decompress: str, unit: float = 1.0) -> None:
        found[kind].setdefault(name, []).append((float(ratio), float(compress) / unit, float(decompress) / unit))

    names = {"Cuszp2": "ours", **{peer: peer for peer in ("SZ3", "Zfp", "Sperr", "SZ", "Blosc2", "Bitshuffle", "Zstd")}}
    for row in Result.load("peers").tables[1].records():
        for name, column in names.items():
            parts = re.match(r"([\d.]+): ([\d.]+) / ([\d.]+)$", row[column])
            if row["rel"] == "1e-3" and parts and row["field"] in fields:
                note("through h5py", name, parts[1], parts[2], parts[3], unit=1e3)
    for name, source, kind in (("Cuszp2", "cpu_codec", "outlier 1-D"), ("HierarchicalDelta", "cpu_delta", "auto")):
        for row in Result.load(source).tables[0].records():
            if row["codec"] == kind and row["rel"] == "1e-3" and row["field"] in fields:
                note("in memory", name, row["ratio"], row["compress"], row["decompress"])
    ratios = {(row["field"], row["rel"]): row["rans"] for row in Result.load("lorenzo").tables[0].records()}
    for row in chosen:
        note("in memory", "Lorenzo", ratios[row["field"], "1e-3"], row["rans C"], row["rans D"])
    return {
        kind: {name: points for name, points in by_name.items() if len(points) == len(fields)}
        for kind, by_name in found.items()
    }


def speed_cpu(path: Path) -> None:
    """Draw speed against ratio on one CPU core."""
    found = speeds_cpu()
    drawing, axes = figure(2, "How fast is one CPU core, and how small are files?")
    for axis, verb, index in zip(axes, ("compress", "decompress"), (1, 2), strict=True):
        means = {name: geometric_mean(v[index] for v in values) for name, values in found["in memory"].items()}
        for kind, marker in (("in memory", "o"), ("through h5py", "s")):
            for name, values in found[kind].items():
                x, y = (geometric_mean(value[part] for value in values) for part in (0, index))
                colour = COLOURS.get(name, OTHERS)
                axis.plot(x, y, marker, color=colour, markersize=8, label=kind if name == "Cuszp2" else None)
                lower = min(("Lorenzo", "HierarchicalDelta"), key=lambda item: means[item])
                places = {"Blosc2": "below", "SZ3": "below", lower: "below", "SZ": "before", "Zstd": "over"}
                label(axis, name, x, y, colour, places.get(name, "above"))
        axis.set(xscale="log", yscale="log", xlabel="compression ratio", ylabel="GB/s of values", title=verb)
        axis.set_xlim(1, 40)
        axis.set_ylim(0.03, 20)
        plain_ticks(axis, xs=(1, 2, 5, 10, 20, 40), ys=(0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20))
        legend(axis, "upper left")
    some = len(found["in memory"]["Lorenzo"])
    finish(
        drawing,
        path,
        ["peers", "cpu_codec", "cpu_delta", "lorenzo"],
        f"Geometric means over the same {some} fields, bound 1e-3 of the range. Circles: arrays in memory. Squares: "
        "h5py to and from a file in memory, which costs Cuszp2 half of its speed. Up and right is better.",
    )


def speed_gpu(path: Path) -> None:
    """Draw speed against ratio on one GPU."""
    result = Result.load("gpu_codec")
    rows = [row for row in result.tables[0].records() if row["field"] == "turbulence" and row["dtype"] == "f4"]
    copy = next(float(row["compress"]) for row in rows if row["codec"] == "copy")
    lines: dict[str, list[Mapping[str, str]]] = {
        name: [row for row in rows if row["codec"] == kind and row["rel"] in BOUNDS] for name, kind in ON_GPU.items()
    }
    lines["Lorenzo, chain"] = [
        row
        for row in Result.load("gpu_lorenzo").tables[0].records()
        if row["field"] == "turbulence" and row["codec"] == "chain rans"
    ]
    drawing, axes = figure(2, "How fast is one GPU, and how small are files?")
    for axis, verb in zip(axes, ("compress", "decompress"), strict=True):
        axis.axhline(copy / 1e3, color="0.6", linestyle=":", linewidth=1)
        axis.text(60, copy / 1e3 * 1.02, "copy on the device", color="0.4", ha="right", fontsize=8)
        for name, chosen in lines.items():
            xs, ys = [float(row["ratio"]) for row in chosen], [float(row[verb]) / 1e3 for row in chosen]
            axis.plot(xs, ys, "o-", color=COLOURS.get(name.split(",")[0], OTHERS), label=name, alpha=0.9,
                      markerfacecolor="white" if name.endswith("volumes") else None)  # fmt: skip
        axis.set(xscale="log", xlabel="compression ratio", ylabel="TB/s of values", title=verb)
        axis.set_ylim(0, 5)
        plain_ticks(axis, xs=(3, 5, 10, 20, 40, 80))
    legend(axes[0], "upper right")
    finish(
        drawing,
        path,
        ["gpu_codec", "gpu_lorenzo"],
        "1 GiB of float32 (turbulence) from device memory to device memory, bounds 1e-4, 1e-3 and 1e-2 of the range "
        "from left to right on each line.",
    )


def user_call(path: Path) -> None:
    """Draw the speed of calls that write and read files."""
    drawing, axes = figure(2, "What does a call reach, file included?")
    rows = Result.load("small_chunks").tables[0].records()
    sizes = [float(row["KiB"]) for row in rows]
    best = {size: index for index, size in enumerate(sizes)}  # of chunks of the same size the last, along rows
    chosen = [rows[index] for index in best.values()]
    columns = {
        "h5py, the filter in HDF5's pipeline": ("write, HDF5", "read, HDF5"),
        "pyfilter.write and read, one thread": ("pyfilter.write", "pyfilter.read"),
        "pyfilter.write and read, two threads": ("all threads", "all threads 8"),
    }
    for (name, (writing, reading)), colour in zip(columns.items(), ("0.5", "#6baed6", "#08519c"), strict=True):
        axes[0].plot(list(best), [float(row[writing]) for row in chosen], "o-", color=colour, label=f"{name}: write")
        axes[0].plot(list(best), [float(row[reading]) for row in chosen], "s--", color=colour, label=f"{name}: read")
    axes[0].set(xscale="log", xlabel="size of a chunk, KiB", ylabel="GB/s of values", title="two CPU cores, Cuszp2")
    axes[0].set_ylim(0, 20)
    plain_ticks(axes[0], xs=(32, 64, 128, 256, 1024, 4096))
    legend(axes[0], "upper left")
    files = Result.load("gpu_files").tables[0].records()
    means: dict[str, float] = {}
    for row in files:
        if row["codec"].endswith("0.001"):
            means[f"GPU array, chunks of {row['chunk']}: write"] = float(row["write"])
            means[f"GPU array, chunks of {row['chunk']}: read"] = float(row["read"])
    for row in Result.load("gpu_devices").tables[0].records():
        if row["codec"] == "Progressive, 1e-3" and row["what"] in ("write", "read"):
            means[f"NumPy array, one GPU: {row['what']}"] = float(row["one"])
            means[f"NumPy array, two GPUs: {row['what']}"] = float(row["all"])
    colours = {name: "#6baed6" if name.endswith("write") else "#08519c" for name in means}
    bars(axes[1], dict(reversed(means.items())), "{:.0f}", colours)
    axes[1].set(xlabel="GB/s of values", title="files through GPUs")
    finish(
        drawing,
        path,
        ["small_chunks", "gpu_files", "gpu_devices"],
        "Files on a tmpfs. GPU arrays: Cuszp2, bound 1e-3, 2.1 GB. NumPy arrays: Progressive, bound 1e-3, 17 GB.",
    )


def scaling(path: Path) -> None:
    """Draw the speed-up by more threads and more GPUs."""
    drawing, axes = figure(3, "What do more threads and more GPUs bring?", wide=True)
    threads = (1, 2, 4, 8, 16)
    for row in Result.load("gpu_pipeline").tables[0].records():
        if row["chunk"] == "67.1 MB":
            cells = [row["CPU, 1 thread"], row["2"], row["4"], row["8"], row["all"]]
            speeds = [[float(part) for part in cell.split(" / ")] for cell in cells]
            colour = COLOURS[row["codec"].split(",")[0]]
            name = row["codec"].split(",")[0]
            axes[0].plot(threads, [item[0] for item in speeds], "o-", color=colour, label=f"{name}, compress")
            axes[0].plot(threads, [item[1] for item in speeds], "s--", color=colour, label=f"{name}, decompress")
    axes[0].set(xscale="log", yscale="log", xlabel="threads", ylabel="GB/s of values", title="threads of 16 cores")
    axes[0].set_ylim(2, 500)
    plain_ticks(axes[0], xs=threads, ys=(2, 5, 10, 20, 50, 100, 200))
    legend(axes[0], "upper left")
    gains: dict[str, list[float]] = {}
    called = {"cuszp2-1d": "Cuszp2", "chain": "HierarchicalDelta", "auto": "HierarchicalDelta, auto", "rans": "Lorenzo"}
    for row in Result.load("scaling").tables[0].records():
        gains.setdefault(f"{called[row['codec']]}: compress", []).append(float(row["C gain"]))
        gains.setdefault(f"{called[row['codec']]}: decompress", []).append(float(row["D gain"]))
    bars(axes[1], {name: median(values) for name, values in reversed(gains.items())}, "{:.2f}")
    axes[1].set(xlabel="times as fast as one thread", title="two threads, two cores")
    devices = {
        f"{row['codec'].replace('Progressive, 1e-3', 'measured').replace('measured, bounds', 'bounds')}: {row['what']}":
            float(row["all / one"]) for row in Result.load("gpu_devices").tables[0].records()
    }  # fmt: skip
    bars(axes[2], dict(reversed(devices.items())), "{:.2f}", dict.fromkeys(devices, COLOURS["Progressive"]))
    axes[2].set(xlabel="times as fast as one GPU", title="two GPUs, Progressive")
    finish(
        drawing,
        path,
        ["gpu_pipeline", "scaling", "gpu_devices"],
        "Left: one chunk of 67 MB in memory. Middle: medians over 14 fields, bound 1e-3. Right: host memory to a file "
        "and back; 'bounds' and 'measured' are the two ways to know a reader's error.",
    )


def progressive(path: Path) -> None:
    """Draw the bytes that a tolerance needs."""
    result = Result.load("progressive")
    drawing, axes = figure(2, "How much of a progressive file does a tolerance need?")
    tolerances = ("1e-1", "1e-2", "1e-3", "1e-4", "1e-5", "1e-6")
    for table, colour in zip(result.tables[:2], ("#08519c", "#6baed6"), strict=True):
        rows = table.records()
        name = "errors measured" if "measured" in table.title else "errors by bounds"
        for axis, prefix in zip(axes, ("", "/ SZ3 "), strict=True):
            values = [[number(row[prefix + tolerance]) for row in rows] for tolerance in tolerances]
            means = [geometric_mean(value for value in column if value) for column in values]
            axis.plot([float(tolerance) for tolerance in tolerances], means, "o-", color=colour, label=name)
    axes[0].set(xscale="log", yscale="log", xlabel="tolerance, part of the range", ylabel="percent of the original")
    plain_ticks(axes[0], ys=(1, 2, 5, 10, 20, 50))
    axes[0].set_title("bytes fetched")
    axes[1].set(xscale="log", xlabel="tolerance, part of the range", ylabel="bytes fetched / bytes of SZ3")
    axes[1].set_title("beside SZ3 made for that one tolerance")
    axes[1].axhline(1, color="0.6", linestyle=":", linewidth=1)
    for axis in axes:
        axis.invert_xaxis()
        legend(axis, "upper left" if axis is axes[0] else "upper right")
    finish(
        drawing, path, ["progressive"], "Geometric means over 23 fields, each one chunk that was stored near-lossless."
    )


CHARTS: dict[str, Callable[[Path], None]] = {
    "user-call": user_call,
    "ratio": ratio,
    "speed-cpu": speed_cpu,
    "speed-gpu": speed_gpu,
    "scaling": scaling,
    "progressive": progressive,
}


def draw(names: Iterable[str] = CHARTS, folder: Path = FOLDER) -> list[Path]:
    """Draw the named charts into a folder, and return their paths.

    Raises
    ------
    KeyError
        If there is no chart of a name.
    """
    folder.mkdir(parents=True, exist_ok=True)
    made: list[Path] = []
    for name in names:
        path = folder / f"{name}.svg"
        CHARTS[name](path)
        made.append(path)
    return made


def main(arguments: list[str] | None = None) -> Any:
    """Draw the charts that the command line names, or all."""
    for path in draw(arguments if arguments else CHARTS):
        print(path)


if __name__ == "__main__":
    main(sys.argv[1:])
