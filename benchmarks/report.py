# SPDX-License-Identifier: BSD-3-Clause
"""The output of a run besides its figures: their origin, tables, floors; and the files that keep them."""

from __future__ import annotations

import datetime
import hashlib
import math
import os
import platform
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import h5py
import numpy as np
from rich import table as rich_table

import pyfilter
from benchmarks.fields import ROOT
from benchmarks.result import Result, Table
from pyfilter._lib import library

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _commit() -> str:
    changed = _git("status", "--porcelain", "--", "kernels", "filter", "pyfilter", "benchmarks", "CMakeLists.txt")
    return (_git("rev-parse", "--short", "HEAD") or "unknown") + (" with uncommitted changes" if changed else "")


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    info = dict(line.replace("\t", "").split(":", 1) for line in lines if ":" in line)
    name = info.get("model name", platform.machine()).strip()
    family = ", ".join(f"{key} {info[key].strip()}" for key in ("cpu family", "model") if key in info)
    return f"{name} ({family})" if family else name


def cache_bytes() -> int:
    """Return the size of the last-level cache, 32 MiB where the system does not say."""
    sizes = [path.read_text().strip() for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")]
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    return max((int(size[:-1]) * units[size[-1]] for size in sizes if size[-1:] in units), default=32 << 20)


def load() -> str:
    """Return the system's load averages: other work on the machine makes figures worthless."""
    return " ".join(f"{value:.2f}" for value in os.getloadavg())


def origin(command: str, peers: Sequence[str] = ()) -> list[str]:
    """Return the lines with the command, the machine and the date of a measurement."""
    file = library.path()
    shown = "missing"
    if file is not None:
        place = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file.name
        shown = f"{place}, sha256 {hashlib.sha256(file.read_bytes()).hexdigest()[:12]}"
    return [
        f"command: {shlex.join(Path(word).name if word.startswith('/') else word for word in shlex.split(command))}",
        f"commit: {_commit()}; {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC",
        f"CPU: {_cpu()}, {os.cpu_count()} cores, last-level cache {cache_bytes() >> 20} MiB, load {load()}",
        f"system: {platform.system()} {platform.release()}, {' '.join(platform.libc_ver())}, "
        f"Python {platform.python_version()}, NumPy {np.__version__}, h5py {h5py.version.version}, "
        f"HDF5 {h5py.version.hdf5_version}",
        f"pyfilter {pyfilter.__version__} ({shown}), instruction set {pyfilter.config().cpu_level}"
        + "".join(f"; {peer}" for peer in peers),
    ]


class Rows:
    """A table that grows, for the screen and for a result."""

    def __init__(self, title: str, columns: Sequence[str]) -> None:
        self.title = title
        self.columns = list(columns)
        self.rows: list[list[str]] = []

    def add(self, *cells: str) -> None:
        """Add a row."""
        self.rows.append(list(cells))

    def show(self, console: Console) -> None:
        """Print it for reading."""
        table = rich_table.Table(title=self.title, title_justify="left", box=None, pad_edge=False)
        for index, column in enumerate(self.columns):
            table.add_column(column, justify="left" if index == 0 else "right", no_wrap=True)
        for row in self.rows:
            table.add_row(*row)
        console.print(table)

    def table(self) -> Table:
        """Return it for keeping."""
        return Table(self.title, self.columns, self.rows)


@dataclass(frozen=True)
class Floor:
    """A demand: ``value >= wanted`` for every field and bound; or, without ``wanted``, only the measured values.

    Attributes
    ----------
    what : str
        The demand in words.
    wanted : float or None
        The smallest value allowed.
    values : list of (float, str)
        The measured values, and their cases.
    """

    what: str
    wanted: float | None
    values: list[tuple[float, str]]

    def line(self) -> str:
        """Return the finding: pass or fail by the worst value, with median and share beside it."""
        if not self.values:
            return f"{self.what}: not measured"
        worst, where = min(self.values)
        numbers = [value for value, _ in self.values]
        text = self.what
        if self.wanted is not None:
            below = sum(value < self.wanted for value in numbers)
            verdict = "pass" if below == 0 else f"FAIL ({below} of {len(numbers)} below)"
            text += f" >= {self.wanted:g}x: {verdict}"
        return (
            f"{text}; worst {worst:.3g}x ({where}), median {np.median(numbers):.3g}x, "
            f"geometric mean {geometric_mean(numbers):.3g}x"
        )


def mean_line(what: str, floor: float, values: Sequence[float]) -> str:
    """Return the finding: the geometric mean of ratios, and whether it reaches its floor."""
    mean = geometric_mean(values)
    return f"{what} >= {floor}: {'pass' if mean >= floor else 'FAIL'}; {mean:.3f}"


def geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean of positive numbers, NaN for none."""
    logs = [math.log(value) for value in values if value > 0]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def keep(
    head: Sequence[str],
    legend: str,
    findings: Sequence[str],
    tables: Sequence[Rows],
    *,
    marker: str,
    markdown: Path | None,
    save: bool,
) -> list[str]:
    """Write a result as Markdown to a file, and to benchmarks/results/<marker>.json; return the result."""
    result = Result.of(list(head), legend, list(findings), [table.table() for table in tables])
    written: list[str] = []
    if markdown is not None:
        markdown.write_text(result.markdown() + "\n", encoding="utf-8")
        written.append(str(markdown))
    if save:
        written.append(str(result.save(marker)))
    return written


def report(
    console: Console,
    head: Sequence[str],
    legend: str,
    findings: Sequence[str],
    tables: Sequence[Rows],
    *,
    marker: str,
    markdown: Path | None,
    save: bool,
) -> None:
    """Print the origin of figures, tables and findings, and keep them as `keep` does."""
    console.print("\n".join(head), legend, sep="\n")
    for table in tables:
        table.show(console)
    console.print("\n".join(findings))
    for path in keep(head, legend, findings, tables, marker=marker, markdown=markdown, save=save):
        console.print(f"wrote {path}")
