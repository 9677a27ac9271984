# SPDX-License-Identifier: BSD-3-Clause
"""A dataset of progressive frames, read to a tolerance, a few segments at a time."""

from __future__ import annotations

import math
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from pyfilter._chunks import pipeline, stored
from pyfilter._chunks.selection import Box, box_of, expanded
from pyfilter.codecs.progressive import Progressive
from pyfilter.errors import InvalidArgument, Unsupported
from pyfilter.frames import make_request
from pyfilter.gpu import arrays
from pyfilter.gpu import devices as cuda
from pyfilter.progressive.chunk import Chunk
from pyfilter.progressive.source import LocalSource
from pyfilter.progressive.through_devices import Target, Wanted, decode, read
from pyfilter.registry import registry
from pyfilter.settings import config

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray
    from typing_extensions import Self

    from pyfilter.gpu.devices import Devices
    from pyfilter.progressive.source import Range, Source


class Reader:
    """A progressive dataset; made by `pyfilter.progressive.open`.

    Fetched bytes are kept, so that a further read fetches only the missing segments.

    Attributes
    ----------
    shape, dtype
        Of the dataset, the type in this machine's byte order.
    bytes_read : int
        Bytes of chunks that were fetched so far.
    max_error : float
        The largest error of the values last returned: a proven bound, in the unit of the data.
    """

    def __init__(self, dataset: h5py.Dataset, source: Source) -> None:
        self._source = source
        try:
            self._index(dataset)
        except BaseException:
            source.close()
            raise

    def _index(self, dataset: h5py.Dataset) -> None:
        names = [int(dataset.id.get_create_plist().get_filter(i)[0]) for i in range(_filters(dataset))]
        if names[:1] != [registry().filter_id]:
            message = f"{dataset.name} is not compressed with pyfilter's filter, so it has no parts to read"
            raise Unsupported(message)
        if len(names) > 1:
            message = f"{dataset.name} has filters behind pyfilter's ({names[1:]}): its parts cannot be read one by one"
            raise Unsupported(message)
        if not stored.offsets_are_reliable(dataset):
            message = (
                f"HDF5 reports wrong chunk locations for {dataset.name}, as it does with libver='latest' where an "
                f"unlimited dimension is not the first (maxshape is {dataset.maxshape}); use pyfilter.read"
            )
            raise Unsupported(message)
        codec = Progressive.from_cd_values(dataset.id.get_create_plist().get_filter(0)[2])
        self.codec: Progressive = codec
        self.shape: tuple[int, ...] = dataset.shape
        self.dtype: np.dtype[Any] = dataset.dtype.newbyteorder("=")
        self.chunk_shape: tuple[int, ...] = dataset.chunks
        properties = dataset.id.get_create_plist()
        self._fill = pipeline.declared_fill(properties, self.dtype)
        self._unwritten = pipeline.fill_of(properties, self.dtype)
        self.bytes_read = 0
        self._counting = threading.Lock()
        self.max_error = math.inf
        self._chunks: dict[tuple[int, ...], Chunk] = {}
        found = stored.listed(dataset)
        for origin, offset, size, mask in zip(*(array.tolist() for array in found), strict=True):
            origin = tuple(origin)
            if mask:
                message = f"chunk {origin} of {dataset.name} is stored without its filter"
                raise Unsupported(message)
            self._chunks[origin] = Chunk(offset, size, origin, self.chunk_shape, self.dtype)

    # -- reading

    def read(
        self,
        tolerance: float | None = None,
        selection: Any = ...,
        *,
        level: int = 0,
        out: NDArray[Any] | None = None,
        device: str | None = None,
        devices: Devices | None = None,
    ) -> Any:
        """Return values within a tolerance.

        Parameters
        ----------
        tolerance : float, optional
            The largest accepted error, in the unit of the data. Without a tolerance, or with one below the stored
            precision, all bytes are read. `max_error` is the error that was reached.
        selection : index, optional
            Integers, slices without steps, and an ellipsis, as for a dataset; only the chunks that it touches are read.
        level : int
            0: all values. Each further level leaves out every second value along each dimension, and their bytes are
            not fetched. Only whole datasets of at most three dimensions, with chunks of a multiple of ``2**level``.
        out : numpy.ndarray, optional
            Where to put the values; of the result's shape, and of a type that holds every value of the dataset's.
        device : str, optional
            ``"cuda"`` or ``"cuda:1"``: bytes are decoded there, and values stay there. Not together with ``out``.
        devices : "all", str, int or a list of those, optional
            CUDA devices that decode in place of the CPU, as in `pyfilter.read`. Values go to host memory, and a device
            holds only the chunks in work.

        Returns
        -------
        numpy.ndarray or cupy.ndarray
            Of the selection's shape; ``out`` where it was given. NaN, infinities and missing values are exact at every
            tolerance.

        Raises
        ------
        ValueError
            If the tolerance is negative or NaN, selection, level or ``out`` do not fit, there is no such device, or
            ``device`` is given together with ``devices`` or ``out``.
        DeviceError
            If CUDA cannot be used.
        MissingExtra
            If a device is asked for, but CuPy is not installed.
        FrameError
            If a chunk is damaged.
        """
        if device is not None and devices is not None:
            message = "give device= (where the values go) or devices= (GPUs that decode for host memory), not both"
            raise InvalidArgument(message)
        if device is not None and out is not None:
            message = "give out or device, not both: the values go to the memory of out"
            raise InvalidArgument(message)
        number = None if device is None else arrays.device_number(device)
        chosen = () if devices is None else cuda.numbers(devices)
        wanted = _number_of(tolerance)
        box, squeezed = box_of(selection, self.shape)
        self._check_level(level, selection)
        shape = tuple(-(-(stop - start) // (1 << level)) for start, stop in box)
        if number is not None:
            return self._read_to_device(wanted, box, level, number, shape)[squeezed]
        values = np.empty(shape, self.dtype) if out is None else expanded(out, shape, squeezed, self.dtype)
        self._read(wanted, box, level, chosen, values)
        return values[squeezed] if out is None else out

    def refine(
        self,
        tolerance: float | None = None,
        selection: Any = ...,
        *,
        level: int = 0,
        out: NDArray[Any] | None = None,
        device: str | None = None,
        devices: Devices | None = None,
    ) -> Any:
        """Return values within a tighter tolerance: the same as `read`, which fetches only missing segments."""
        return self.read(tolerance, selection, level=level, out=out, device=device, devices=devices)

    def cost(self, tolerance: float | None = None, selection: Any = ..., *, level: int = 0) -> tuple[int, float]:
        """Return the bytes that `read` would fetch, and the error of its values. Fetches heads."""
        total = 0
        worst = 0.0
        wanted = _number_of(tolerance)
        for chunk in self._opened(selection, level):
            total += sum(stop - start for start, stop in chunk.ask(wanted, level))
            worst = max(worst, chunk.error)
        return total, worst

    def next_error(self, below: float, selection: Any = ...) -> float:
        """Return the next smaller error in the tables: the largest one of a chunk below a number."""
        return max((chunk.next_error(below) for chunk in self._opened(selection, 0)), default=0.0)

    def first_error(self, selection: Any = ...) -> float:
        """Return the largest error in the tables."""
        return max((chunk.first_error() for chunk in self._opened(selection, 0)), default=0.0)

    def is_missing(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Return a mask of the values equal to the dataset's fill value; all False if it is 0 or undeclared."""
        if not self._fill:
            return np.zeros(values.shape, np.bool_)
        same: NDArray[np.bool_] = values == self._fill
        return same

    def forget(self) -> None:
        """Drop the fetched bytes, so that a further read fetches them again."""
        for chunk in self._chunks.values():
            chunk.forget()

    def close(self) -> None:
        """Close the file."""
        self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # -- steps of reading

    def _check_level(self, level: int, selection: Any) -> None:
        if isinstance(level, bool) or not isinstance(level, (int, np.integer)) or level < 0:
            message = f"level must be an integer >= 0, got {level!r}"
            raise InvalidArgument(message)
        if level == 0:
            return
        if selection is not ... and selection != ():
            message = "a level above 0 is for whole datasets, not for selections"
            raise InvalidArgument(message)
        if len(self.shape) > 3:
            message = f"a level above 0 is for at most three dimensions, the dataset has {len(self.shape)}"
            raise InvalidArgument(message)
        for extent, edge in zip(self.shape, self.chunk_shape, strict=True):
            if extent > edge and edge % (1 << level) != 0:
                message = f"level is {level}, but chunks of {self.chunk_shape} are not multiples of {1 << level}"
                raise InvalidArgument(message)

    def _touched(self, box: Box) -> list[Chunk | tuple[int, ...]]:
        """Return the chunks that a box touches; for a chunk that was never written, its first coordinates."""
        along = [
            range(start // edge * edge, stop, edge) for (start, stop), edge in zip(box, self.chunk_shape, strict=True)
        ]
        return [self._chunks.get(origin, origin) for origin in product(*along)]

    def _opened(self, selection: Any, level: int) -> list[Chunk]:
        """Return the chunks that a selection touches, with their tables."""
        box, _ = box_of(selection, self.shape)
        return self._heads(self._touched(box), level)

    def _heads(self, touched: Sequence[Chunk | tuple[int, ...]], level: int) -> list[Chunk]:
        chunks = [chunk for chunk in touched if isinstance(chunk, Chunk)]
        while waiting := [chunk for chunk in chunks if chunk.head_ranges()]:
            ranges = [chunk.head_ranges()[0] for chunk in waiting]
            for chunk, data in zip(waiting, self._fetch(ranges), strict=True):
                chunk.put_head(data)
        for chunk in chunks:
            if chunk.progressive and level > chunk.levels:
                message = f"level is {level}, allowed: 0 to {chunk.levels}"
                raise InvalidArgument(message)
            chunk.set_level(level)
        return chunks

    def _fetch(self, ranges: Sequence[Range]) -> list[bytes]:
        self._count(sum(stop - start for start, stop in ranges))
        return self._source.fetch(ranges)

    def _count(self, fetched: int) -> None:
        with self._counting:
            self.bytes_read += fetched

    def _choose(
        self, tolerance: float, touched: Sequence[Chunk | tuple[int, ...]], level: int
    ) -> tuple[list[Chunk], list[list[Range]], bool]:
        """Return the written chunks, the ranges that each lacks for a tolerance, and whether all were written."""
        chunks = self._heads(touched, level)
        asked = [chunk.ask(tolerance, level) for chunk in chunks]
        return chunks, asked, len(chunks) == len(touched)

    def _fetch_missing(self, chunks: list[Chunk], asked: list[list[Range]]) -> None:
        """Fetch the missing ranges of chunks, all at once."""
        data = iter(self._fetch([one for ranges in asked for one in ranges]))
        for chunk, ranges in zip(chunks, asked, strict=True):
            chunk.put(ranges, [next(data) for _ in ranges])

    def _read_to_device(self, tolerance: float, box: Box, level: int, device: int, shape: tuple[int, ...]) -> Any:
        chunks, asked, whole = self._choose(tolerance, self._touched(box), level)
        self._fetch_missing(chunks, asked)
        with arrays.device_errors(), arrays.import_cupy().cuda.Device(device):
            result = arrays.import_cupy().empty(shape, self.dtype)
            if not whole:
                arrays.fill_bits(result, self._unwritten.reshape(1)[0])
            for chunk in chunks:
                target, source = self._overlap(chunk, box, 1 << level)
                result[target] = chunk.device_values()[source]
        self.max_error = max((chunk.error for chunk in chunks), default=0.0)
        return result

    def _read(self, tolerance: float, box: Box, level: int, devices: tuple[int, ...], values: NDArray[Any]) -> None:
        touched: Sequence[Chunk | tuple[int, ...]] = self._touched(box)
        there = [chunk for chunk in touched if isinstance(chunk, Chunk)]
        done: list[Chunk] = []
        if devices and level == 0 and isinstance(self._source, LocalSource) and len(there) == len(touched) > 0:
            target = Target(self.shape, tuple(slice(start, stop) for start, stop in box), values)
            request = make_request(self.codec, self.dtype, self.chunk_shape)
            done, touched = read(self._source, there, request, tolerance, target, devices, self._count)
            if not touched:
                self.max_error = max(chunk.error for chunk in done)
                return
        chunks, asked, whole = self._choose(tolerance, touched, level)
        if not whole:
            values[...] = self._unwritten  # chunks that were never written
        wanted = [
            Wanted(chunk, ranges, *self._overlap(chunk, box, 1 << level))
            for chunk, ranges in zip(chunks, asked, strict=True)
        ]
        if devices:
            decode(wanted, values, self._fetch, devices)
        else:
            self._fetch_missing(chunks, asked)

            def store(one: Wanted) -> None:
                values[one.target] = one.chunk.values()[one.source]

            _for_each(store, wanted)
        self.max_error = max((chunk.error for chunk in (*done, *chunks)), default=0.0)

    def _overlap(self, chunk: Chunk, box: Box, step: int) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """Return the slices of the result and of a chunk that overlap."""
        source, target = [], []
        for origin, edge, (start, stop) in zip(chunk.origin, self.chunk_shape, box, strict=True):
            first, last = max(origin, start), min(origin + edge, stop)
            source.append(slice((first - origin) // step, -(-(last - origin) // step)))
            target.append(slice((first - start) // step, -(-(last - start) // step)))
        return tuple(target), tuple(source)


def _number_of(tolerance: float | None) -> float:
    try:
        wanted = 0.0 if tolerance is None else float(tolerance)
    except (TypeError, ValueError):
        wanted = math.nan
    if not wanted >= 0.0:
        message = f"tolerance must be a number >= 0 in the unit of the data, got {tolerance!r}"
        raise InvalidArgument(message)
    return wanted


def _filters(dataset: h5py.Dataset) -> int:
    return int(dataset.id.get_create_plist().get_nfilters())


def _for_each(work: Callable[[Wanted], None], chunks: Sequence[Wanted]) -> None:
    """Run the work on several threads; the library drops the GIL."""
    threads = min(config().threads, len(chunks))
    if threads <= 1:
        for chunk in chunks:
            work(chunk)
        return
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(work, chunks):
            pass
