# SPDX-License-Identifier: BSD-3-Clause
"""Two builds of the library against each other, by turns, on one CPU core. python -m benchmarks.turns OLD.so NEW.so.

For a machine that does other things meanwhile: each build has a process of its own, the two take turns, and the best
CPU time of many short runs counts, so that both meet the same neighbours.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.console import Console

import pyfilter
from benchmarks.fields import MIB, ROOT, Field, fields, find_data
from benchmarks.report import Rows, keep, origin
from pyfilter._lib import host
from pyfilter.frames import make_request

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

MARKER = "turns"
COLUMNS = (
    "field",
    "codec",
    "rel",
    "old C",
    "new C",
    "new / old",
    "old D",
    "new D",
    "new / old",
    "C/memcpy",
    "D/memcpy",
)
LEGEND = (
    "GB/s of original bytes and second of CPU time, one thread, the best of all runs; C, D: compress, decompress. "
    "memcpy is measured the same way by the new build's process. 'same': whether both builds made the same bytes; a "
    "row that is not says so."
)
CODECS: dict[str, Callable[[float], pyfilter.Codec]] = {
    "cuszp2-1d": lambda bound: pyfilter.Cuszp2(absolute=bound),
    "cuszp2-2d": lambda bound: pyfilter.Cuszp2(absolute=bound, block_dims=2),
    "cuszp2-3d": lambda bound: pyfilter.Cuszp2(absolute=bound, block_dims=3),
    "chain": lambda bound: pyfilter.HierarchicalDelta(absolute=bound, predictor="chain"),
    "lorenzo2d": lambda bound: pyfilter.HierarchicalDelta(absolute=bound, predictor="lorenzo2d"),
    "lorenzo3d": lambda bound: pyfilter.HierarchicalDelta(absolute=bound, predictor="lorenzo3d"),
    "auto": lambda bound: pyfilter.HierarchicalDelta(absolute=bound),
    "rans": lambda bound: pyfilter.Lorenzo(absolute=bound),
    "rans-chain": lambda bound: pyfilter.Lorenzo(absolute=bound, predictor="chain"),
    "huffman": lambda bound: pyfilter.Lorenzo(absolute=bound, coder="huffman"),
    "progressive": lambda bound: pyfilter.Progressive(absolute=bound, errors="bounds"),
    "progressive-measured": lambda bound: pyfilter.Progressive(absolute=bound),
}
RANKS = {"cuszp2-2d": 2, "cuszp2-3d": 3, "lorenzo2d": 2, "lorenzo3d": 3}


class Build:
    """A process that runs one build of the library."""

    def __init__(self, library: Path, values_file: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.turns", "--serve", str(values_file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYFILTER_LIBRARY": str(library.resolve())},
        )

    def ask(self, **question: Any) -> dict[str, Any]:
        """Send a line of JSON and return the answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            message = f"the process of a build ended with status {self._process.wait()}"
            raise RuntimeError(message)
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def cpu_seconds(work: Callable[[], object]) -> float:
    """Return the CPU time of this process that a call takes."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def measure(values: NDArray[Any], codec: pyfilter.Codec, fill: float | None) -> dict[str, Any]:
    """Return the CPU seconds of one encoding, decoding and copy, to memory whose pages are there, and a checksum."""
    request = make_request(codec, values.dtype, values.shape, fill)
    room, target = np.ones(host.max_frame_bytes(request), np.uint8), np.ones_like(values)
    frame = room[: host.encode(request, values, room)]
    return {
        "frame": zlib.crc32(frame.tobytes()),
        "decode": cpu_seconds(lambda: host.decode(frame, target)),
        "memcpy": cpu_seconds(lambda: np.copyto(target, values)),
        "encode": cpu_seconds(lambda: host.encode(request, values, room)),
    }


def serve(values_file: Path) -> None:
    """Answer questions from standard input, one a line, about the values that are in a file."""
    values: NDArray[Any] = np.load(values_file)
    with pyfilter.config(threads=1):
        for line in sys.stdin:
            question = json.loads(line)
            answer: dict[str, Any] = {}
            if question["what"] == "values":
                values = np.load(values_file)
            else:
                answer = measure(values, CODECS[question["codec"]](question["bound"]), question["fill"])
            print(json.dumps(answer), flush=True)


def row(builds: list[Build], field: Field, name: str, relative: str, rounds: int) -> list[str]:
    """Return the cells of a field and codec."""
    fill = None if field.fill is None else float(field.fill)
    question = {"what": "codec", "codec": name, "bound": field.bound(float(relative)), "fill": fill}
    answers: list[list[dict[str, Any]]] = [[], []]
    for _ in range(rounds):
        for of_build, build in zip(answers, builds, strict=True):
            of_build.append(build.ask(**question))
    rate = {
        what: [field.values.nbytes / 1e9 / min(one[what] for one in of_build) for of_build in answers]
        for what in ("encode", "decode", "memcpy")
    }
    (old_c, new_c), (old_d, new_d), copy = rate["encode"], rate["decode"], rate["memcpy"][1]
    same = len({one["frame"] for of_build in answers for one in of_build}) == 1
    return [
        field.name, name + ("" if same else " (OTHER BYTES)"), relative, f"{old_c:.2f}", f"{new_c:.2f}",
        f"{new_c / old_c:.2f}", f"{old_d:.2f}", f"{new_d:.2f}", f"{new_d / old_d:.2f}", f"{new_c / copy:.2f}",
        f"{new_d / copy:.2f}",
    ]  # fmt: skip


def main(
    libraries: Annotated[list[Path] | None, typer.Argument(help="OLD.so NEW.so")] = None,
    data: Annotated[Path | None, typer.Option(help="Folder of .npy files; default ../shared/data.")] = None,
    only: Annotated[str, typer.Option("--fields", help="Parts of field names, with commas between.")] = "",
    codecs: Annotated[str, typer.Option(help=f"Some of {', '.join(CODECS)}.")] = "cuszp2-1d,chain,auto,rans",
    bounds: Annotated[str, typer.Option(help="Bounds relative to a field's range.")] = "1e-3",
    mib: Annotated[int, typer.Option(help="Most of a field that is taken, in MiB.")] = 16,
    rounds: Annotated[int, typer.Option(help="Turns of each build.")] = 15,
    markdown: Annotated[Path | None, typer.Option(help="Write the Markdown text to this file.")] = None,
    save: Annotated[bool, typer.Option("--save", help="Keep it in benchmarks/results/.")] = False,
    serving: Annotated[Path | None, typer.Option("--serve", hidden=True)] = None,
) -> None:
    """Measure and print the table."""
    if serving is not None:
        serve(serving)
        return
    names = codecs.split(",")
    if libraries is None or len(libraries) != 2 or not set(names) <= set(CODECS):
        message = f"give OLD.so and NEW.so; codecs are some of {', '.join(CODECS)}"
        raise typer.BadParameter(message)
    console = Console(width=200, highlight=False)
    head = origin(shlex.join(["python", "-m", "benchmarks.turns", *(Path(word).name for word in sys.argv[1:])]))
    rows = Rows("", COLUMNS)
    scratch = Path(f"/dev/shm/pyfilter-turns-{os.getpid()}.npy")
    np.save(scratch, np.zeros(1, "f4"))
    builds = [Build(library, scratch) for library in libraries]
    try:
        for whole in fields(find_data(data), 0, [part for part in only.split(",") if part]):
            leading = max(1, mib * MIB // max(whole.values[:1].nbytes, 1))
            field = Field(whole.name, np.ascontiguousarray(whole.values[:leading]), whole.generated)
            np.save(scratch, field.values)
            for build in builds:
                build.ask(what="values")
            for relative in bounds.split(","):
                for name in names:
                    if field.values.ndim >= RANKS.get(name, 1):
                        rows.add(*row(builds, field, name, relative, rounds))
    finally:
        for build in builds:
            build.close()
        scratch.unlink()
    console.print("\n".join(head))
    rows.show(console)
    for done in keep(head, LEGEND, [], [rows], marker=MARKER, markdown=markdown, save=save):
        console.print(f"wrote {done}")


if __name__ == "__main__":
    typer.run(main)
