# SPDX-License-Identifier: BSD-3-Clause
"""Host memory to a file and back through one GPU and through all of them. python -m benchmarks.gpu_devices."""

from __future__ import annotations

import shlex
import sys
import tempfile
import time
import warnings
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import cupy
import h5py
import numpy as np
import typer
from rich.console import Console

import pyfilter
from benchmarks.gpu_fields import FIELDS
from benchmarks.report import Floor, Rows, origin, report
from benchmarks.timing import in_turns
from pyfilter.gpu import device_threads, staging

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

MARKER = "gpu_devices"
COLUMNS = ("codec", "what", "ratio", "CPU", "one", "all", "all / one", "links", "file, all", "same")
LEGEND = (
    "GB/s of original bytes, medians of runs in turns (of the CPU one run): values in host memory to the chunks of a "
    "file on a tmpfs, and back. 'CPU': all of its threads; 'one': through the first GPU; 'all': through all. "
    "'file, all': GB/s that the file gives or takes meanwhile; HDF5 writes one chunk at a time, and 'plain' is what it "
    "does with values as they are. 'pinned': the same, but in pinned memory, from and to which devices copy by "
    "themselves. 'links': 'all / one' of copies between pinned memory and devices and nothing else, that way, in turns "
    "with the others: what the host allows at that time. 'same': whether every chunk written, and every value read, is "
    "the CPU's. Bounds are fractions of the range."
)
PLANES = 256  # values generated at a time


def make(planes: int) -> NDArray[np.float32]:
    """Return turbulence in host memory, made part by part."""
    values = np.empty((planes, 512, 512), np.float32)
    for seed, first in enumerate(range(0, planes, PLANES)):
        part = values[first : first + PLANES]
        FIELDS["turbulence"](len(part), "f4", seed).get(out=part)
    cupy.get_default_memory_pool().free_all_blocks()
    return values


def same(a: NDArray[Any], b: NDArray[Any]) -> bool:
    """Return whether all bits are the same."""
    with ThreadPoolExecutor(16) as pool:
        return all(pool.map(lambda i: np.array_equal(a[i].view(np.uint32), b[i].view(np.uint32)), range(len(a))))


def checksums(dataset: h5py.Dataset) -> list[int]:
    """Return a checksum of every stored chunk."""
    places: list[tuple[int, ...]] = []
    dataset.id.chunk_iter(lambda info: places.append(tuple(info.chunk_offset)))
    with ThreadPoolExecutor(16) as pool:
        return list(pool.map(zlib.crc32, (dataset.id.read_direct_chunk(place)[1] for place in sorted(places))))


def stored_bytes(dataset: h5py.Dataset) -> int:
    return int(dataset.id.get_storage_size())


class Links:
    """Copies between pinned memory and devices, several streams each, without anything else."""

    PIECE, STREAMS = 64 << 20, 4

    def __init__(self, host_bytes: int, devices: int) -> None:
        self.host = np.frombuffer(cupy.cuda.alloc_pinned_memory(host_bytes), np.uint8, host_bytes)
        self.host[...] = 1
        self.channels: list[list[tuple[Any, int]]] = []
        for number in range(devices):
            with cupy.cuda.Device(number):
                streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(self.STREAMS)]
                self.channels.append([(stream, cupy.cuda.runtime.malloc(self.PIECE)) for stream in streams])

    def copy(self, size: int, devices: Sequence[int], to_host: bool) -> None:
        """Copy so many bytes, piece after piece by devices in turn; returns when all is done."""
        runtime = cupy.cuda.runtime
        for i, at in enumerate(range(0, size, self.PIECE)):
            number = devices[i % len(devices)]
            stream, there = self.channels[number][i // len(devices) % self.STREAMS]
            here = self.host.ctypes.data + at % len(self.host)
            pair = (here, there) if to_host else (there, here)
            kind = runtime.memcpyDeviceToHost if to_host else runtime.memcpyHostToDevice
            with cupy.cuda.Device(number):
                runtime.memcpyAsync(*pair, min(self.PIECE, size - at), kind, stream.ptr)
        for number in devices:
            for stream, _ in self.channels[number]:
                stream.synchronize()


def device_bytes(devices: int) -> list[int]:
    """Return how much of each device is in use."""
    used = []
    for number in range(devices):
        with cupy.cuda.Device(number):
            free, total = cupy.cuda.runtime.memGetInfo()
        used.append(int(total - free))
    return used


class Run:
    """The data, the file and the rows."""

    def __init__(self, values: NDArray[np.float32], path: Path, rounds: int, devices: int) -> None:
        self.values = values
        self.span = float(values.max()) - float(values.min())
        self.out = np.ones_like(values)  # its memory is allocated
        self.expected = np.ones_like(values)
        self.path = path
        self.rounds = rounds
        self.rows = Rows("", COLUMNS)
        self.links = Links(min(1 << 30, values.nbytes // Links.PIECE * Links.PIECE), devices)
        self.devices = range(devices)
        self.speedups: dict[str, list[tuple[float, str]]] = {"pinned": [], "pageable": [], "others": [], "links": []}
        self.good = True

    def row(self, codec: str, what: str, ratio: float, times: list[float], moved: int, found: bool) -> None:
        cpu, one, several, link, links = (self.values.nbytes / taken / 1e9 for taken in times)
        place = "pinned" if what.endswith("pinned") else "pageable"
        kind = place if codec.startswith("Progressive") else "others"
        self.speedups[kind].append((several / one, f"{codec}, {what}"))
        self.speedups["links"].append((links / link, f"beside {codec}, {what}"))
        self.good = self.good and found
        self.rows.add(
            codec, what, f"{ratio:.1f}", f"{cpu:.1f}", f"{one:.1f}", f"{several:.1f}", f"{several / one:.2f}",
            f"{links / link:.2f}", f"{moved / times[2] / 1e9:.1f}", "yes" if found else "NO",
        )  # fmt: skip
        print(*self.rows.rows[-1], sep="; ", flush=True)  # in case the table never comes

    def with_links(self, works: Sequence[Callable[[], object]], to_host: bool) -> list[float]:
        """Return the seconds of works and of copies of as many bytes by one link and by all."""
        size = self.values.nbytes
        copies = [lambda: self.links.copy(size, [0], to_host), lambda: self.links.copy(size, self.devices, to_host)]
        return in_turns([*works, *copies], self.rounds, first_once=True)

    def writes(self, label: str, codec: pyfilter.Codec, planes: int, what: str = "write") -> None:
        """Measure writing into existing datasets, so that the file does not grow meanwhile."""
        with h5py.File(self.path, "w") as file:
            sets = [
                file.create_dataset(who, self.values.shape, "f4", chunks=(planes, 512, 512), **codec)
                for who in ("cpu", "one", "all")
            ]
            works = [
                lambda: pyfilter.write(sets[0], self.values),
                lambda: pyfilter.write(sets[1], self.values, devices=0),
                lambda: pyfilter.write(sets[2], self.values, devices="all"),
            ]
            times = self.with_links(works, False)
            sums = [checksums(dataset) for dataset in sets]
            stored = stored_bytes(sets[0])
        self.row(label, what, self.values.nbytes / stored, times, stored, sums[0] == sums[1] == sums[2])

    def reads(self, label: str, what: str = "read") -> None:
        """Measure reading everything that was written last."""
        with h5py.File(self.path, "r") as file:
            dataset = file["cpu"]
            works = [
                lambda: pyfilter.read(dataset, out=self.expected),
                lambda: pyfilter.read(dataset, out=self.out, devices=0),
                lambda: pyfilter.read(dataset, out=self.out, devices="all"),
            ]
            self.out[...] = 0
            times = self.with_links(works, True)
            stored = stored_bytes(dataset)
        self.row(label, what, self.values.nbytes / stored, times, stored, same(self.out, self.expected))

    def retrievals(self, label: str, fraction: float, where: str = "") -> None:
        """Measure reading to a tolerance; each read fetches its bytes again."""
        fetched = 0

        def retrieve(out: NDArray[np.float32], **how: Any) -> None:
            nonlocal fetched
            with pyfilter.progressive.open(self.path, "cpu") as reader:
                reader.read(fraction * self.span, out=out, **how)
                fetched = reader.bytes_read

        self.out[...] = 0
        works = [
            lambda: retrieve(self.expected),
            lambda: retrieve(self.out, devices=0),
            lambda: retrieve(self.out, devices="all"),
        ]
        times = self.with_links(works, True)
        found = same(self.out, self.expected)
        self.row(label, f"to {fraction:g}{where}", self.values.nbytes / fetched, times, fetched, found)

    def plain(self) -> str:
        """Return HDF5's speed with uncompressed values."""
        part = self.values[: max(len(self.values) // 8, 1)]
        with h5py.File(self.path, "w") as file:
            dataset = file.create_dataset("plain", part.shape, "f4")
            written, read_back = in_turns(
                [lambda: dataset.write_direct(part), lambda: dataset.read_direct(self.out[: len(part)])],
                self.rounds,
                first_once=True,
            )
        return f"plain: {part.nbytes / written / 1e9:.1f} GB/s written, {part.nbytes / read_back / 1e9:.1f} GB/s read"


@contextmanager
def pinned(run: Run) -> Iterator[None]:
    """Have the run's arrays in pinned memory for a while."""
    runtime = cupy.cuda.runtime
    with ExitStack() as stack:
        for array in (run.values, run.out):
            runtime.hostRegister(array.ctypes.data, array.nbytes, 0)
            stack.callback(runtime.hostUnregister, array.ctypes.data)
        yield


def allow(batch_mib: int, devices: int) -> int:
    """Set the size of a batch and the memory of each device for batches; return the latter."""
    staging.BATCH_BYTES = batch_mib << 20
    cap = device_threads.THREADS * 5 * staging.BATCH_BYTES
    for number in range(devices):
        with cupy.cuda.Device(number):
            cupy.get_default_memory_pool().set_limit(size=cap)
    return cap


def measure(
    run: Run,
    work: Callable[[str, pyfilter.Codec], None],
    label: str,
    codec: pyfilter.Codec,
    begin: float,
    limit: float,
) -> None:
    """Do one part of the work; a part that fails is reported, and makes the whole run fail at its end."""
    if time.perf_counter() - begin > limit:
        print(f"no time left for {label}", flush=True)
        return
    try:
        work(label, codec)
    except Exception as error:
        run.good = False
        print(f"{label}: {type(error).__name__}: {error}", flush=True)
    print(f"{label}: done after {time.perf_counter() - begin:.0f} s", flush=True)


def main(
    folder: Annotated[Path, typer.Option(help="on a tmpfs")] = Path("/dev/shm"),
    mib: Annotated[int, typer.Option(help="of values")] = 4096,
    batch_mib: Annotated[int, typer.Option(help="of a batch of chunks")] = 64,
    chunk_planes: Annotated[int, typer.Option(help="of 1 MiB, of a chunk")] = 8,
    rounds: Annotated[int, typer.Option(help="that count")] = 3,
    only: Annotated[str, typer.Option(help="parts of codecs' names, with commas between")] = "",
    limit: Annotated[float, typer.Option(help="seconds after which no further codec is begun")] = 75.0,
    save: Annotated[bool, typer.Option("--save", help="Keep it in benchmarks/results/.")] = False,
    markdown: Annotated[Path | None, typer.Option()] = None,
) -> None:
    """Measure and print the table."""
    begin = time.perf_counter()
    warnings.simplefilter("error", RuntimeWarning)  # batches that did not fit any device's memory
    console = Console(width=200, highlight=False)
    count = pyfilter.gpu.device_count()
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    head = [*origin(shlex.join(["python", "-m", "benchmarks.gpu_devices", *sys.argv[1:]])), f"GPUs: {count} of {name}"]
    console.print("\n".join(head))
    values = make(mib)
    cap = allow(batch_mib, count)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        run = Run(values, Path(scratch) / "x.h5", rounds, count)
        before = device_bytes(count)
        console.print(f"{values.nbytes / 1e9:.1f} GB made in {time.perf_counter() - begin:.0f} s")
        head.append(run.plain())

        def simple(label: str, codec: pyfilter.Codec) -> None:
            run.writes(label, codec, chunk_planes)
            run.reads(label)

        def progressive(label: str, codec: pyfilter.Codec) -> None:
            simple(label, codec)
            run.retrievals(label, 1e-2)

        def in_pinned_memory(label: str, codec: pyfilter.Codec) -> None:
            with pinned(run):
                run.writes(label, codec, chunk_planes, "write, pinned")
                run.reads(label, "read, pinned")
                if isinstance(codec, pyfilter.Progressive):
                    run.retrievals(label, 1e-2, ", pinned")

        bound = 1e-3 * run.span
        works: list[tuple[str, Callable[[str, pyfilter.Codec], None], pyfilter.Codec]] = [
            ("Cuszp2, 1e-3", simple, pyfilter.Cuszp2(absolute=bound)),
            ("Progressive, 1e-3, bounds", progressive, pyfilter.Progressive(absolute=bound, errors="bounds")),
            ("Progressive, 1e-3", progressive, pyfilter.Progressive(absolute=bound)),
        ]
        works += [(label, in_pinned_memory, codec) for label, _, codec in works]
        wanted = [part.strip() for part in only.split(",") if part]

        def measure_all(works: list[tuple[str, Callable[[str, pyfilter.Codec], None], pyfilter.Codec]]) -> None:
            for label, work, codec in works:
                if not wanted or any(part in label for part in wanted):
                    measure(run, work, label, codec, begin, limit)

        measure_all(works)
        used = [after - one for after, one in zip(device_bytes(count), before, strict=True)]
        works = [
            ("Lorenzo, 1e-3", simple, pyfilter.Lorenzo(absolute=bound)),
            ("HierarchicalDelta, 1e-3", simple, pyfilter.HierarchicalDelta(absolute=bound)),
        ]
        measure_all(works)
    floor = 1.8 if count == 2 else None
    summary = [
        f"{values.nbytes / 1e9:.2f} GB went through devices that were allowed {cap / 1e9:.2f} GB each for batches; "
        f"with what kernels need they held {', '.join(f'{size / 1e9:.2f}' for size in used)} GB",
        Floor(f"{count} against one, Progressive, pinned", floor, run.speedups["pinned"]).line(),
        Floor(f"{count} against one, Progressive, pageable", floor, run.speedups["pageable"]).line(),
        Floor(f"{count} against one, other codecs", None, run.speedups["others"]).line(),
        Floor(f"{count} links against one, meanwhile", None, run.speedups["links"]).line(),
        f"all in {time.perf_counter() - begin:.0f} s",
    ]
    report(console, head, LEGEND, summary, [run.rows], marker=MARKER, markdown=markdown, save=save)
    raise typer.Exit(0 if run.good else 1)


if __name__ == "__main__":
    typer.run(main)
