# SPDX-License-Identifier: BSD-3-Clause
"""A petabyte on 1000 nodes: rates measured here, and a model of queues that says where time goes.

python -m benchmarks.scale_model measures what one core and one file take, then lets 1000 nodes compress and write, and
read and decompress, through the targets of a parallel file system. docs/scale.md has the results.

The model: each node works through its share in blocks. A block is compressed by all cores of the node, sent to one
target of the file system, and waits there for the blocks before it. A node has at most four blocks under way. The time
that a target takes for a block scatters (lognormal), since others use the file system too.
"""

from __future__ import annotations

import heapq
import shlex
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import h5py
import numpy as np
import typer
from rich.console import Console

import pyfilter
from benchmarks.report import Rows, origin, report
from benchmarks.scale_out import field

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

MARKER = "scale_model"
CODECS = ("Cuszp2", "HierarchicalDelta", "Lorenzo", "Progressive", "Adaptive")
#: Cuszp2 through one GPU, array on the device to an HDF5 file and back, chunks of 4 MB: the slowest rows of
#: benchmarks/results/gpu_files.json (H200); GB/s of values
GPU = (30.0, 147.0)
UNDER_WAY = 4
LEGEND = (
    "Rates: GB/s of values, one thread, medians; chunks of 4 MB of the field of scale_out, bound 1e-4 of its range. "
    "'writer': GB/s of frames that one process writes to one HDF5 file in memory by direct chunk calls. "
    "Model: 1 PB of float32 values, 1000 nodes of 64 cores, 25 GB/s of network for each node; blocks of 4 GB. "
    "File system 'large': 450 targets, 4.6 TB/s written and 5.5 TB/s read in all (the capacity tier of Frontier's "
    "Orion, as its operators gave it); 'usual': a tenth. Scatter of a target's time: lognormal, sigma 0.5. "
    "'GPU': 4 GPUs for each node at the rate of gpu_files, ratio of Cuszp2. 'cores busy', 'targets busy': shares of "
    "the time. 'together': all nodes write one file in steps, each waits for the slowest. 'one writer': frames of all "
    "nodes go through one process."
)


@dataclass(frozen=True)
class Machine:
    """Nodes and a file system; rates in bytes a second."""

    nodes: int = 1000
    cores: int = 64
    network: float = 25e9
    targets: int = 450
    written: float = 4.6e12 / 450
    read: float = 5.5e12 / 450
    sigma: float = 0.5
    block: float = 4e9
    total: float = 1e15


@dataclass(frozen=True)
class Coding:
    """A node's codec: bytes a second both ways, and the ratio."""

    name: str
    encode: float
    decode: float
    ratio: float


@dataclass(frozen=True)
class Outcome:
    """Seconds of a run, and the shares of them that nodes and targets were busy."""

    seconds: float
    nodes: float
    targets: float


def scatter(machine: Machine, random: np.random.Generator, count: int) -> NDArray[np.float64]:
    """Return factors of mean 1 for the times of a target."""
    return random.lognormal(-(machine.sigma**2) / 2, machine.sigma, count)


def run(machine: Machine, coding: Coding, *, write: bool) -> Outcome:
    """Let all nodes work through their shares; every node and target takes blocks in the order in which they come."""
    random = np.random.default_rng(0)
    each = round(machine.total / machine.nodes / machine.block)
    stored = machine.block / coding.ratio
    rate = machine.written if write else machine.read
    service = max(stored / rate, 0.0)
    compute = machine.block / (coding.encode if write else coding.decode)
    send = stored / machine.network
    factors = scatter(machine, random, machine.nodes * each)
    targets = random.integers(0, machine.targets, machine.nodes * each)
    free = np.zeros(machine.targets)
    ready = np.zeros(machine.nodes)  # when a node's cores are free
    left = np.full(machine.nodes, each)
    under_way: list[list[float]] = [[] for _ in range(machine.nodes)]
    events = [(compute if write else 0.0, node) for node in range(machine.nodes)]
    heapq.heapify(events)
    busy, end, number = 0.0, 0.0, 0
    while events:
        now, node = heapq.heappop(events)  # a block is compressed, or requested
        target, taken = targets[number], service * factors[number]
        number += 1
        begin = max(now + (send if write else 0.0), free[target])
        free[target] = begin + taken
        busy += taken
        done = free[target] + (0.0 if write else send)
        if not write:
            ready[node] = done = max(ready[node], done) + compute
        end = max(end, done)
        heapq.heappush(under_way[node], done)
        left[node] -= 1
        if left[node]:
            room = now if len(under_way[node]) < UNDER_WAY else max(now, heapq.heappop(under_way[node]))
            heapq.heappush(events, (room + (compute if write else 0.0), node))
    return Outcome(end, each * compute / end, busy / machine.targets / end)


def together(machine: Machine, coding: Coding) -> Outcome:
    """All nodes write their next block at the same time, and go on when all have."""
    random = np.random.default_rng(0)
    each = round(machine.total / machine.nodes / machine.block)
    stored = machine.block / coding.ratio
    compute, seconds, busy = machine.block / coding.encode, 0.0, 0.0
    for _ in range(each):
        targets = random.permutation(machine.nodes) % machine.targets
        taken = stored / machine.written * scatter(machine, random, machine.nodes)
        loads = np.bincount(targets, taken, machine.targets)
        seconds += compute + stored / machine.network + loads.max()
        busy += taken.sum()
    return Outcome(seconds, each * compute / seconds, busy / machine.targets / seconds)


def one_writer(machine: Machine, coding: Coding, rate: float) -> Outcome:
    """Frames of all nodes go through one process."""
    seconds = max(machine.total / coding.ratio / rate, machine.total / machine.nodes / coding.encode)
    return Outcome(seconds, machine.total / machine.nodes / coding.encode / seconds, 0.0)


def measured(work: Callable[[], object]) -> float:
    """Return the median seconds of a call, after one that does not count."""
    taken = []
    for turn in range(6):
        begin = time.perf_counter()
        work()
        if turn:
            taken.append(time.perf_counter() - begin)
    return statistics.median(taken)


def one_core(name: str, values: NDArray[Any], bound: float) -> tuple[float, float, float]:
    """Return the bytes a second that one thread encodes and decodes, and the ratio."""
    codec = getattr(pyfilter, name)(absolute=bound)
    parts = [values[at : at + 4] for at in range(0, 4 if name == "Adaptive" else 32, 4)]
    size = sum(part.nbytes for part in parts)
    with pyfilter.config(threads=1):
        frames = [pyfilter.encode(part, codec) for part in parts]
        out = np.empty_like(parts[0])
        encode = measured(lambda: [pyfilter.encode(part, codec) for part in parts])
        decode = measured(lambda: [pyfilter.decode(frame, out=out) for frame in frames])
    return size / encode, size / decode, size / sum(map(len, frames))


def one_file(values: NDArray[Any], bound: float) -> float:
    """Return the bytes of frames a second that one process writes to a file in memory."""
    codec, chunk = pyfilter.Lorenzo(absolute=bound), (4, *values.shape[1:])
    frame, count = pyfilter.encode(values[:4], codec), 400
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:

        def work() -> None:
            with h5py.File(Path(folder) / "a.h5", "w") as file:
                shape = (4 * count, *values.shape[1:])
                dataset = file.create_dataset("t", shape, "f4", chunks=chunk, **codec)
                for number in range(count):
                    dataset.id.write_direct_chunk((4 * number, 0, 0), frame)

        return len(frame) * count / measured(work)


def main(
    markdown: Annotated[Path | None, typer.Option(help="Write the Markdown text to this file.")] = None,
    save: Annotated[bool, typer.Option("--save", help="Keep it in benchmarks/results/.")] = False,
) -> None:
    """Measure rates, run the model, and print both."""
    console = Console(width=200, highlight=False)
    values = field()
    bound = float(np.ptp(values)) * 1e-4
    large = Machine()
    rates = Rows("One core, one file", ("what", "encode", "decode", "ratio"))
    codings = [Coding("no compression", float("inf"), float("inf"), 1.0)]
    for name in CODECS:
        encode, decode, ratio = one_core(name, values, bound)
        rates.add(name, f"{encode / 1e9:.2f}", f"{decode / 1e9:.2f}", f"{ratio:.1f}")
        codings.append(Coding(name, encode * large.cores, decode * large.cores, ratio))
    codings.insert(1, replace(codings[1], name="Cuszp2, GPU", encode=4e9 * GPU[0], decode=4e9 * GPU[1]))
    writer = one_file(values, bound)
    rates.add("writer", f"{writer / 1e9:.2f}", "", "")
    usual = replace(large, written=large.written / 10, read=large.read / 10)
    model = Rows(
        "1 PB on 1000 nodes",
        ("codec", "file system", "PB stored", "write, min", "cores busy", "targets busy", "read, min", "cores busy",
         "targets busy", "together, min", "one writer, h"),
    )  # fmt: skip
    for machine, system in ((large, "large"), (usual, "usual")):
        for coding in codings:
            written, read = run(machine, coding, write=True), run(machine, coding, write=False)
            cells = [
                text
                for one in (written, read)
                for text in (f"{one.seconds / 60:.1f}", f"{one.nodes:.0%}", f"{one.targets:.0%}")
            ]
            whole, alone = together(machine, coding).seconds / 60, one_writer(machine, coding, writer).seconds / 3600
            stored = f"{machine.total / coding.ratio / 1e15:.2f}"
            model.add(coding.name, system, stored, *cells, f"{whole:.1f}", f"{alone:.1f}")
    head = origin(shlex.join(["python", "-m", "benchmarks.scale_model", *sys.argv[1:]]))
    report(console, head, LEGEND, [], [rates, model], marker=MARKER, markdown=markdown, save=save)


if __name__ == "__main__":
    typer.run(main)
