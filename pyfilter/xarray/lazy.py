# SPDX-License-Identifier: BSD-3-Clause
"""The arrays of engine "pyfilter": compressed variables, whose chunks are decoded by all threads of the library.

xarray's own stores read everything else, and whatever only HDF5 can read. None of these arrays holds a file open, so
they can be used by threads and sent to processes.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import h5py
from xarray.core import indexing

from pyfilter import h5, progressive
from pyfilter._chunks import detached
from pyfilter._chunks.sharing import share_of_threads
from pyfilter.errors import Unsupported
from pyfilter.gpu import arrays
from pyfilter.progressive.reader import Reader
from pyfilter.progressive.source import RemoteSource
from pyfilter.xarray.stores import H5netcdfArray, Netcdf4Array

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyfilter._chunks.detached import Detached


class How(NamedTuple):
    """How a variable is read: the tolerated error (None: all stored bytes), and the device (None: host memory)."""

    tolerance: float | None
    device: str | None


class FilePlace(NamedTuple):
    """A dataset of a local file: path, the file's version, and names of the dataset; the first existing name counts."""

    path: str
    version: tuple[int, ...]
    names: tuple[str, ...]


class AddressPlace(NamedTuple):
    """A file at an address: fsspec's file system, and the path in it."""

    filesystem: Any
    path: str


class FileArray(Netcdf4Array):
    """A compressed variable of a local file."""

    __slots__ = ("how", "place")

    def __init__(self, name: str, store: Any, place: FilePlace, how: How) -> None:
        super().__init__(name, store)
        self.place, self.how = place, how
        _prepare(self)

    def __getitem__(self, key: Any) -> Any:
        """Return a part, as xarray asks for it."""
        return indexing.explicit_indexing_adapter(key, self.shape, _support(self.how), self._getitem)

    def _getitem(self, key: tuple[Any, ...]) -> Any:
        if self.how == How(None, None):
            values = detached.read_file(self.place.path, self.place.version, self.place.names, self.shape, key)
            return super()._getitem(key) if values is None else values
        with share_of_threads():
            return _of_box(key, self.shape, self._read_box)

    def _read_box(self, box: tuple[slice, ...]) -> Any:
        """Return a box read to a tolerance, or on a device."""
        tolerance, device = self.how
        if detached.version_of(self.place.path) == self.place.version:
            with h5py.File(self.place.path, "r") as file:
                dataset = next(file[name] for name in self.place.names if name in file)
                if dataset.shape == self.shape:
                    with _reader(lambda: progressive.open(dataset), tolerance) as reader:
                        if reader is not None:
                            return reader.read(tolerance, box, device=device)
                    return h5.read(dataset, box, device=device)
        return _on_device(super()._getitem(box), device)


class AddressArray(H5netcdfArray):
    """A compressed variable of a file at an address; only bytes of the chunks that are asked for are fetched.

    Without a place, of a file object, which HDF5 reads.
    """

    __slots__ = ("_found", "_lock", "_reader", "how", "place")

    def __init__(self, name: str, store: Any, place: AddressPlace | None, how: How) -> None:
        super().__init__(name, store)
        self.place, self.how = place, how
        self._found: Detached | str | None = None
        self._reader: Reader | str | None = None
        self._lock = threading.Lock()
        _prepare(self)

    def __getstate__(self) -> Any:
        """Pickle the locations of chunks, if they are known, without what a process has for itself."""
        state = {name: getattr(self, name) for name in ("datastore", "dtype", "shape", "variable_name", "how", "place")}
        return {**state, "_found": self._found}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make an array from what `__getstate__` returned."""
        for name, value in state.items():
            setattr(self, name, value)
        self._reader, self._lock = None, threading.Lock()

    def __getitem__(self, key: Any) -> Any:
        """Return a part, as xarray asks for it."""
        return indexing.explicit_indexing_adapter(key, self.shape, _support(self.how), self._getitem)

    def _getitem(self, key: tuple[Any, ...]) -> Any:
        if self.how.tolerance is not None:
            return _of_box(key, self.shape, self._read_box)
        found = self._locations()
        if isinstance(found, str) or self.place is None:
            return _on_device(super()._getitem(key), self.how.device)
        source = RemoteSource(self.place.filesystem, self.place.path)
        try:
            return _on_device(found.read(key, source), self.how.device)
        finally:
            source.close()

    def _locations(self) -> Detached | str:
        """Return where the chunks are; text where only HDF5 can read them."""
        if self.place is None:
            return "by HDF5"
        with self._lock:
            if self._found is None:
                with self.datastore.lock:
                    found = detached.of_dataset(self._dataset())
                self._found = found if found is not None and found.shape == self.shape else "by HDF5"
            return self._found

    def _dataset(self) -> h5py.Dataset:
        return self.get_array(needs_lock=False)._h5ds

    def _read_box(self, box: tuple[slice, ...]) -> Any:
        """Return a box read to a tolerance."""
        tolerance, device = self.how
        with self._lock:  # a reader's segments are one thread's
            if self.place is None:
                self._reader = "by HDF5"
            elif self._reader is None:
                with self.datastore.lock:
                    source = RemoteSource(self.place.filesystem, self.place.path)
                    try:
                        reader = Reader(self._dataset(), source)
                        self._reader = reader if reader.shape == self.shape else "by HDF5"
                    except Unsupported:
                        self._reader = "by HDF5"
            if isinstance(self._reader, Reader):
                try:
                    return self._reader.read(tolerance, box, device=device)
                finally:
                    self._reader.forget()  # else all of a large dataset would gather in memory
        return _on_device(super()._getitem(box), device)


def _prepare(array: Any) -> None:
    """Have an array say the type of its values: those on a device are in the machine's byte order."""
    if array.how.device is not None:
        array.dtype = array.dtype.newbyteorder("=")


def _support(how: How) -> Any:
    support = indexing.IndexingSupport
    return support.OUTER if how == How(None, None) else support.BASIC


@contextmanager
def _reader(opened: Callable[[], Reader], tolerance: float | None) -> Iterator[Reader | None]:
    """Give a reader to a tolerance, None where there is none or the dataset has no parts that can be read alone."""
    try:
        reader = None if tolerance is None else opened()
    except Unsupported:
        reader = None
    if reader is None:
        yield None
        return
    with reader:
        yield reader


def _of_box(key: Sequence[Any], shape: tuple[int, ...], read_box: Callable[[tuple[slice, ...]], Any]) -> Any:
    """Return what integers and slices with positive steps select, cut out of a box."""
    box: list[slice] = []
    inner: list[Any] = []
    for item, extent in zip(key, shape, strict=True):
        if isinstance(item, slice):
            start, stop, step = item.indices(extent)
            box.append(slice(start, max(start, stop)))
            inner.append(slice(None, None, step))
        else:
            first = int(item) + (extent if item < 0 else 0)
            box.append(slice(first, first + 1))
            inner.append(0)
    inner.append(...)
    return read_box(tuple(box))[tuple(inner)]


def _on_device(values: Any, device: str | None) -> Any:
    number = None if device is None else arrays.device_number(device)
    if number is None:
        return values
    cupy = arrays.import_cupy()
    with arrays.device_errors(), cupy.cuda.Device(number):
        return cupy.asarray(values.astype(values.dtype.newbyteorder("="), copy=False))
