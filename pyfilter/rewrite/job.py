# SPDX-License-Identifier: BSD-3-Clause
"""Compresses a file: plan, copy to a temporary file beside the result, check every value, move it into place."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import glob
import math
import os
import shutil
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py

from pyfilter import dtypes, plugin
from pyfilter._chunks import layout, pipeline
from pyfilter._hooks import signals
from pyfilter.errors import InvalidArgument
from pyfilter.rewrite import netcdf3, provenance
from pyfilter.rewrite.copy import Compression, FileCopy, create_like, is_number
from pyfilter.rewrite.plan import SMALLEST, Decision, make_plan
from pyfilter.rewrite.rules import Rules
from pyfilter.verification import Comparison, Verification, same_bits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: bytes of memory that a run takes by default, and the least that can be asked for
MAX_MEMORY = 512 << 20
LEAST_MEMORY = 128 << 20
_BASE_MEMORY = 96 << 20  # Python with NumPy and h5py
# the most arrays of a slab's size: while it is compressed (two slabs, frames, a codec's memory), and while it is
# compared (float64 of float32)
_WRITE_PARTS, _CHECK_PARTS = 6, 32
_YOUNG_SECONDS = 60  # a folder as young as this may not be locked yet


@dataclass(frozen=True)
class Row:
    """The outcome for a dataset.

    Attributes
    ----------
    path, dtype, shape
        The dataset.
    codec : str or None
        As Python writes it; None where the dataset was copied as it is.
    bound : float or None
        Absolute bound in the unit of the data (a fraction of each value with a pointwise relative one); 0.0 is
        bit-exact.
    bytes_in, bytes_out : int
        Size of its values, and of their stored bytes.
    max_error : float or None
        The largest error found.
    ok : bool
        Whether every value keeps the bound.
    note : str
        Why the request was not followed.
    coordinate : str
        What shows that it is a coordinate and therefore kept bit for bit; empty for all others.
    rounded : str
        How its values were rounded before, such as "multiples of 0.01"; empty where they were not.
    """

    path: str
    dtype: str
    shape: tuple[int, ...]
    codec: str | None
    bound: float | None
    bytes_in: int
    bytes_out: int
    max_error: float | None
    ok: bool
    note: str
    coordinate: str = ""
    rounded: str = ""

    @property
    def ratio(self) -> float:
        """Size of the values by the size of the stored bytes."""
        return self.bytes_in / self.bytes_out if self.bytes_out else math.inf


@dataclass(frozen=True)
class Report:
    """The outcome for a file: a row for each dataset, and the sizes of both files.

    ``unchanged`` says that the result is the input, byte for byte, because anything else was larger.
    """

    rows: tuple[Row, ...]
    file_bytes_in: int
    file_bytes_out: int
    unchanged: bool = False

    @property
    def ok(self) -> bool:
        """Whether every dataset keeps its bound."""
        return all(row.ok for row in self.rows)

    @property
    def compressed(self) -> tuple[Row, ...]:
        """The rows of datasets that have a codec."""
        return tuple(row for row in self.rows if row.codec is not None)

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON can hold it."""
        rows = [{**asdict(row), "shape": list(row.shape), "ratio": _json_number(row.ratio)} for row in self.rows]
        return {
            "ok": self.ok,
            "file_bytes_in": self.file_bytes_in,
            "file_bytes_out": self.file_bytes_out,
            "unchanged": self.unchanged,
            "file_ratio": self.file_bytes_in / self.file_bytes_out,
            "datasets": rows,
        }


def compress_file(
    source: Path,
    target: Path,
    rules: Rules,
    progress: Callable[[str, int, int], None] | None = None,
    *,
    history: bool = False,
    attributes: bool = False,
    max_memory: int = MAX_MEMORY,
) -> Report:
    """Copy a file, datasets compressed as the rules say, and check every value.

    Parameters
    ----------
    source : Path
        An HDF5 or netCDF file; netCDF-3 becomes netCDF-4.
    target : Path
        The result. It appears, replacing an existing file, once it is complete and every value has been checked against
        its bound; until then a hidden folder beside it has it. A run that is killed leaves that folder to the next one.
    rules : Rules
        What to compress.
    progress : callable, optional
        Called with a stage ("compress" or "check"), the number of values done since the last call, and the number
        of values in all.
    history : bool
        Whether to put a line into the global attribute ``history`` of a netCDF file (provenance.py).
    attributes : bool
        Whether variables of a netCDF file that were compressed with loss get attributes with the codec, the bound and
        what was verified (provenance.py).
    max_memory : int
        Bytes of memory that the process may take, Python and libraries included; at least 128 MiB. Chunks larger than
        a twentieth of it need more.

    Returns
    -------
    Report
        Where its ``ok`` is false, there is no result.

    Raises
    ------
    InvalidArgument
        If source and target are the same file, or the rules name a missing dataset.
    Unsupported
        If a named dataset cannot be compressed, or the file holds something that cannot be copied.
    OSError
        If a file cannot be read or written.
    """
    plugin.refresh()
    if max_memory < LEAST_MEMORY:
        message = f"max_memory must be at least {LEAST_MEMORY} bytes ({LEAST_MEMORY >> 20} MiB), got {max_memory}"
        raise InvalidArgument(message)
    room = max_memory - _BASE_MEMORY
    if target.exists() and source.samefile(target):
        message = f"{target} is the input itself: give another name for the output"
        raise InvalidArgument(message)
    folder = target.resolve().parent
    with contextlib.ExitStack() as cleanup:
        scratch = cleanup.enter_context(_scratch(folder, target.name))
        readable = source
        if netcdf3.is_netcdf3(source):
            readable = scratch / "converted"
            netcdf3.convert(source, readable)
        result = scratch / "result"
        decisions, fills = _write(readable, result, rules, progress, history, room // _WRITE_PARTS)
        findings: dict[str, Verification] = {}
        rows = tuple(_check(readable, result, decisions, fills, findings, progress, room // _CHECK_PARTS))
        if attributes and all(row.ok for row in rows):
            what = {item.path: item.compression for item in decisions if item.compression is not None}
            provenance.describe_file(result, {path: (how, findings[path]) for path, how in what.items()})
        report = Report(rows, source.stat().st_size, result.stat().st_size)
        larger = report.file_bytes_out > report.file_bytes_in
        if rules.choose and report.ok and larger and all(_was_chosen(item) for item in decisions):
            shutil.copyfile(source, result)
            report = _unchanged(report)
        if report.ok:
            with result.open("rb") as file:
                os.fsync(file.fileno())
            result.replace(target)
    return report


@contextlib.contextmanager
def _scratch(folder: Path, name: str) -> Iterator[Path]:
    """Make a folder for unfinished output beside the result, so that it can be renamed into place.

    Where a run was killed its folder stays. It is locked while in use, so a later run for that result can tell.
    """
    for left in folder.glob(f".{glob.escape(name)}.*.tmp"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > _YOUNG_SECONDS:
                with _locked(left):
                    shutil.rmtree(left, ignore_errors=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{name}.", suffix=".tmp", dir=folder))
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(signals.on_end(functools.partial(shutil.rmtree, scratch, ignore_errors=True)))
            with contextlib.suppress(OSError):  # a file system without locks
                stack.enter_context(_locked(scratch))
            yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a lock on a folder, which the end of the process gives back; OSError if another process has it."""
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(number)


def _write(
    source: Path,
    target: Path,
    rules: Rules,
    progress: Callable[[str, int, int], None] | None,
    history: bool,
    slab_bytes: int,
) -> tuple[list[Decision], dict[str, Any]]:
    # without a cache of chunks: H5Ocopy copies cached chunks into a buffer of their compressed size (HDF5 2.0)
    with h5py.File(source, "r", rdcc_nbytes=0) as before:
        decisions = make_plan(before, rules)
        compressions = {item.path: item.compression for item in decisions if item.compression is not None}
        total = sum(before[path].size for path in compressions)
        step = None if progress is None else lambda count: progress("compress", count, total)
        with _closed_at_end(create_like(before, target)) as after:
            copy = FileCopy(before, after, compressions, step, slab_bytes)
            copy.run()
            decisions = [
                _replaced(item, copy.replaced[item.path]) if item.path in copy.replaced else item for item in decisions
            ]
            compressions = {item.path: item.compression for item in decisions if item.compression is not None}
            if history and compressions and provenance.is_netcdf(after):
                codecs = {path.lstrip("/"): item.codec for path, item in compressions.items()}
                provenance.add(after, provenance.entry("pyfilter compress", codecs))
            fills = {path: _fill(after[path]) for path in compressions if is_number(after[path].id.get_type())}
        offset = before.userblock_size
    if offset:
        _copy_start(source, target, offset)
    return decisions, fills


def _unchanged(report: Report) -> Report:
    """Return the report of a file that became larger and was therefore copied byte for byte."""
    size = report.file_bytes_in
    rows = tuple(
        row if row.codec is None else replace(row, codec=None, bound=None, max_error=None, note=SMALLEST, bytes_out=0)
        for row in report.rows
    )
    return Report(rows, size, size, unchanged=True)


def _was_chosen(decision: Decision) -> bool:
    """Whether the user left open what a dataset gets."""
    return decision.compression is None or decision.compression.choice is not None


def _replaced(decision: Decision, compression: Compression | None) -> Decision:
    """Return the decision that replaced the first one because the written dataset turned out larger."""
    if compression is None:
        return replace(decision, compression=None, note=SMALLEST)
    note = decision.note
    if decision.compression is not None and not decision.compression.codec.is_lossless:
        note = f"kept lossless: smaller than {decision.compression.codec!r}"
    return replace(decision, compression=compression, note=note)


def _fill(dataset: h5py.Dataset) -> Any:
    return pipeline.declared_fill(dataset.id.get_create_plist(), dtypes.native(dataset.dtype))[()]


@contextlib.contextmanager
def _closed_at_end(file: h5py.File) -> Iterator[h5py.File]:
    """Close a file as ``with`` does, but let a failure in closing hide none before it; by itself it is an OSError.

    On a full disk both happen, and h5py's error in closing is a RuntimeError.
    """
    try:
        yield file
    except BaseException:
        with contextlib.suppress(OSError, RuntimeError):
            file.close()
        raise
    try:
        file.close()
    except RuntimeError as error:
        raise OSError(str(error)) from error


def _copy_start(source: Path, target: Path, size: int) -> None:
    """Copy the block in front of the HDF5 data, such as MATLAB's header."""
    with source.open("rb") as before, target.open("r+b") as after:
        after.write(before.read(size))


def _check(
    source: Path,
    target: Path,
    decisions: list[Decision],
    fills: dict[str, Any],
    findings: dict[str, Verification],
    progress: Callable[[str, int, int], None] | None,
    slab_bytes: int,
) -> Iterator[Row]:
    """Compare every compressed dataset as HDF5 itself reads it: both files are opened anew, no cache has them."""
    with h5py.File(source, "r") as before, h5py.File(target, "r") as after:
        total = sum(before[item.path].size for item in decisions if item.compression is not None)
        for item in decisions:
            original, stored = before[item.path], after[item.path]
            found: Verification | None = None
            codec = bound = None
            if item.compression is not None:
                codec = repr(item.compression.codec)
                bound = item.compression.codec.bound[1]
                found = _compare(original, stored, item, fills.get(item.path), progress, total, slab_bytes)
                findings[item.path] = found
            yield Row(
                path=item.path,
                dtype=same_bits.type_of(original),
                shape=tuple(original.shape or ()),
                codec=codec,
                bound=bound,
                bytes_in=int(original.size or 0) * int(original.id.get_type().get_size()),
                bytes_out=int(stored.id.get_storage_size()),
                max_error=None if found is None else found.max_error,
                ok=found is None or found.ok,
                note=item.note,
                coordinate=item.coordinate,
                rounded=item.rounded,
            )


def _compare(
    original: h5py.Dataset,
    stored: h5py.Dataset,
    item: Decision,
    fill: Any,
    progress: Callable[[str, int, int], None] | None,
    total: int,
    slab_bytes: int,
) -> Verification:
    if not is_number(original.id.get_type()):
        found = same_bits.compare(original, stored)
        if progress is not None:
            progress("check", found.values, total)
        return found
    compression = item.compression
    mode, bound = compression.codec.bound if compression is not None else ("none", 0.0)
    comparison = Comparison(original.dtype, bound, item.specials, fill, mode == "pointwise_relative")
    guarantee = None if compression is None or bound == 0.0 else compression.guarantee
    broken = 0
    for region in layout.slabs(stored.shape, stored.chunks, original.dtype.itemsize, slab_bytes):
        part, after = original[region], stored[region]
        comparison.add(part, after)
        if guarantee is not None:
            broken += guarantee.violations(part, after, region)
        if progress is not None:
            progress("check", part.size, total)
    result = comparison.result()
    return replace(result, ok=result.ok and not broken, violations=result.violations + broken)


def _json_number(value: float) -> float | None:
    """Return a number that JSON has, None for infinity."""
    return value if math.isfinite(value) else None
