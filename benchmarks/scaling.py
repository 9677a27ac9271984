# SPDX-License-Identifier: BSD-3-Clause
"""A call with several threads against one thread, and against the machine's own limit. python -m benchmarks.scaling.

Two cores of a virtual machine are often two threads of one core, or slower together than alone. Then no program is
twice as fast with both. So the same rounds also time that many callers at once, each with one thread and arrays of its
own, who share nothing but the machine.
"""

from __future__ import annotations

import shlex
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.console import Console

import pyfilter
from benchmarks.fields import MIB, Field, fields, find_data
from benchmarks.report import Floor, Rows, origin, report
from benchmarks.turns import CODECS
from pyfilter._lib import host
from pyfilter.frames import make_request

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

MARKER = "scaling"
COLUMNS = ("field", "MB", "codec", "one: C", "C gain", "C callers", "one: D", "D gain", "D callers")
LEGEND = (
    "'one': GB/s of original bytes with one thread; 'gain': one call with {threads} threads by one with one; "
    "'callers': {threads} calls at once, each with one thread and arrays of its own, by one: what this machine gives "
    "to programs that share nothing. C, D: compress, decompress. Wall-clock time; each round times the three one "
    "after another for at least {milliseconds} ms each; medians of the rounds' ratios."
)


@dataclass
class Arrays:
    """The memory of a caller: values, a frame, and a target whose pages exist."""

    values: NDArray[Any]
    request: Any
    room: NDArray[np.uint8]
    target: NDArray[Any]
    frame_bytes: int = 0

    @classmethod
    def of(cls, chosen: Field, codec: pyfilter.Codec) -> Arrays:
        """Return arrays with a copy of the field, encoded once."""
        values = chosen.values.copy()
        request = make_request(codec, values.dtype, values.shape, chosen.fill)
        made = cls(values, request, np.ones(host.max_frame_bytes(request), np.uint8), np.ones_like(values))
        made.encode()
        made.decode()
        return made

    def encode(self) -> None:
        """Make the frame."""
        self.frame_bytes = host.encode(self.request, self.values, self.room)

    def decode(self) -> None:
        """Decode the frame into the target."""
        host.decode(self.room[: self.frame_bytes], self.target)


@dataclass
class Gains:
    """Of one direction: GB/s with one thread, and for each round how many times faster the other ways were."""

    rate: list[float] = field(default_factory=list)
    threads: list[float] = field(default_factory=list)
    callers: list[float] = field(default_factory=list)

    def cells(self) -> list[str]:
        """Return the three cells of a direction."""
        return [f"{statistics.median(of):.2f}" for of in (self.rate, self.threads, self.callers)]


def seconds(work: Callable[[], None], repeats: int) -> float:
    """Return the wall-clock seconds of one call, of so many one after another."""
    begin = time.perf_counter()
    for _ in range(repeats):
        work()
    return (time.perf_counter() - begin) / repeats


def together(works: list[Callable[[], None]], repeats: int, pool: ThreadPoolExecutor) -> float:
    """Return the wall-clock seconds of one call of each, made at once: the calls leave Python's lock."""
    begin = time.perf_counter()
    for done in [pool.submit(seconds, work, repeats) for work in works]:
        done.result()
    return (time.perf_counter() - begin) / repeats


def measure(chosen: Field, codec: pyfilter.Codec, threads: int, rounds: int, least: float) -> tuple[Gains, Gains]:
    """Measure both directions of a field."""
    callers = [Arrays.of(chosen, codec) for _ in range(threads)]
    gains = (Gains(), Gains())
    with ThreadPoolExecutor(threads) as pool:
        for of, name in zip(gains, ("encode", "decode"), strict=True):
            works: list[Callable[[], None]] = [getattr(caller, name) for caller in callers]
            with pyfilter.config(threads=1):
                repeats = max(1, round(least / seconds(works[0], 2)))
            for _ in range(rounds):
                with pyfilter.config(threads=1):
                    one = seconds(works[0], repeats)
                with pyfilter.config(threads=threads):
                    works[0]()  # starts the workers
                    many = seconds(works[0], repeats)
                with pyfilter.config(threads=1):
                    at_once = together(works, repeats, pool)
                of.rate.append(chosen.values.nbytes / one / 1e9)
                of.threads.append(one / many)
                of.callers.append(threads * one / at_once)
    return gains


def main(
    data: Annotated[Path | None, typer.Option(help="Folder of .npy files; default ../shared/data.")] = None,
    only: Annotated[str, typer.Option("--fields", help="Parts of field names, with commas between.")] = "",
    generated_mib: Annotated[int, typer.Option(help="Size of a generated field in MiB; 0 for none.")] = 64,
    least_mib: Annotated[int, typer.Option(help="Fields of fewer MiB are left out.")] = 8,
    codecs: Annotated[str, typer.Option(help=f"Some of {', '.join(CODECS)}.")] = "cuszp2-1d,chain,auto,rans",
    relative: Annotated[float, typer.Option("--bound", help="The bound relative to a field's range.")] = 1e-3,
    threads: Annotated[int, typer.Option(help="Threads of a call, and callers at once.", min=2)] = 2,
    rounds: Annotated[int, typer.Option(help="Rounds; the median counts.", min=3)] = 11,
    milliseconds: Annotated[int, typer.Option(help="Least time of one measurement.", min=1)] = 60,
    markdown: Annotated[Path | None, typer.Option(help="Write the Markdown text to this file.")] = None,
    save: Annotated[bool, typer.Option("--save", help="Keep it in benchmarks/results/.")] = False,
) -> None:
    """Measure and print the table."""
    names = codecs.split(",")
    if not set(names) <= set(CODECS):
        message = f"codecs are some of {', '.join(CODECS)}, not {codecs}"
        raise typer.BadParameter(message)
    console = Console(width=200, highlight=False)
    head = origin(shlex.join(["python", "-m", "benchmarks.scaling", *sys.argv[1:]]))
    legend = LEGEND.format(threads=threads, milliseconds=milliseconds)
    rows = Rows("", COLUMNS)
    found: dict[str, list[tuple[float, str]]] = {}
    for chosen in fields(find_data(data), generated_mib * MIB, [part for part in only.split(",") if part]):
        if chosen.values.nbytes < least_mib * MIB:
            continue
        for name in names:
            gains = measure(chosen, CODECS[name](chosen.bound(relative)), threads, rounds, milliseconds / 1e3)
            rows.add(chosen.name, f"{chosen.values.nbytes / 1e6:.1f}", name, *gains[0].cells(), *gains[1].cells())
            for of, verb in zip(gains, ("compress", "decompress"), strict=True):
                where = f"{chosen.name} {name}"
                found.setdefault(verb, []).append((statistics.median(of.threads), where))
                found.setdefault(f"{verb}, callers", []).append((statistics.median(of.callers), where))
    aim = 1.7 if threads == 2 else None
    tail = [
        Floor(f"{verb}, {threads} threads against one", None if "callers" in verb else aim, values).line()
        for verb, values in found.items()
    ]
    report(console, head, legend, tail, [rows], marker=MARKER, markdown=markdown, save=save)


if __name__ == "__main__":
    typer.run(main)
