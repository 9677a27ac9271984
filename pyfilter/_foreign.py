# SPDX-License-Identifier: BSD-3-Clause
"""Calls by ctypes into libraries that other packages have loaded: libhdf5 and libnetcdf.

They are found where they are (/proc/self/maps, or through the extension module that is linked to them) and never
loaded by us. _native.py is the same for our own library; nothing else in the package uses ctypes.
"""

from __future__ import annotations

import ctypes
import os
import re
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pyfilter import _native, _native_lanes, errors

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

_MAPS = Path("/proc/self/maps")
_HDF5_NAME = re.compile(r"^libhdf5(?!.*_(hl|cpp|tools|fortran|f90cstub|java)).*\.so(\.|$)")
_NOLOAD = getattr(os, "RTLD_NOLOAD", 0)

NC_GLOBAL = -1
NC_CONTIGUOUS = 1
NC_CHUNKED = 0
NC_ENFILTER_ABSENT = -136


def mapped_libraries(pattern: re.Pattern[str] = _HDF5_NAME) -> list[str]:
    """Return the files mapped into this process whose name matches, as the loader knows them."""
    try:
        lines = _MAPS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:  # not Linux, or /proc is not mounted
        return []
    found: dict[str, None] = {}
    for line in lines:
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and fields[5].startswith("/") and pattern.match(fields[5].rpartition("/")[2]):
            found[fields[5]] = None
    return list(found)


def _loaded(path: str) -> ctypes.CDLL:
    """Return a handle to a library that is in the process already."""
    return ctypes.CDLL(path, mode=_NOLOAD | os.RTLD_LOCAL)


def append_plugin_folder(hdf5: str, folder: str) -> bool:
    """Append a folder to the plugin search path of a loaded libhdf5; False where it has no such call."""
    try:
        library = _loaded(hdf5)
        size_of, get, append = library.H5PLsize, library.H5PLget, library.H5PLappend
    except (OSError, AttributeError):  # gone, or HDF5 before 1.10.1
        return False
    get.restype = ctypes.c_ssize_t
    get.argtypes = (ctypes.c_uint, ctypes.c_char_p, ctypes.c_size_t)
    wanted = os.fsencode(folder)
    count = ctypes.c_uint()
    if size_of(ctypes.byref(count)) < 0:
        return False
    for index in range(count.value):
        length = get(index, None, 0)
        if length == len(wanted):
            buffer = ctypes.create_string_buffer(length + 1)
            get(index, buffer, length + 1)
            if buffer.value == wanted:
                return True
    return bool(append(wanted) >= 0)


@cache
def _h5py_hdf5() -> ctypes.CDLL:
    """Return the libhdf5 that h5py is linked to (dlsym looks through an extension's dependencies)."""
    import h5py.h5z

    return ctypes.CDLL(h5py.h5z.__file__)


@contextmanager
def _alone() -> Iterator[None]:
    """Hold h5py's lock: ctypes lets other threads go on, and HDF5 is not for two at a time.

    Where HDF5 reads or writes through a file object of Python, what that one raises goes on as it is.
    """
    import h5py

    with h5py._objects.phil:
        try:
            yield
        except SystemError as error:  # of ctypes, which found an exception set where a number was returned
            if error.__cause__ is None:
                raise
            raise error.__cause__ from None


@cache
def _chunk_writer() -> Any:
    """Return H5Dwrite_chunk of h5py's HDF5, None where it has none (before 1.10.3). All pointers are addresses."""
    write = getattr(_h5py_hdf5(), "H5Dwrite_chunk", None)
    if write is not None:
        pointer = ctypes.c_void_p
        write.argtypes = (ctypes.c_int64, ctypes.c_int64, ctypes.c_uint32, pointer, ctypes.c_size_t, pointer)
    return write


def write_chunk(dataset_id: int, origin: Sequence[int], frame: bytes | NDArray[np.uint8], mask: int = 0) -> bool:
    """Write the bytes of a chunk of a dataset that h5py has open; False where that failed, or cannot be done.

    ``mask`` has a bit for each filter that they have not gone through.

    As `h5py.h5d.DatasetID.write_direct_chunk`, but other threads of Python go on meanwhile, which that call holds up
    while it copies or waits for a disk.
    """
    write = _chunk_writer()
    if write is None:
        return False
    place = (ctypes.c_uint64 * len(origin))(*origin)
    address = frame if isinstance(frame, bytes) else frame.ctypes.data
    with _alone():
        return bool(write(dataset_id, 0, mask, ctypes.addressof(place), len(frame), address) >= 0)


def write_chunks(
    dataset_id: int, origins: NDArray[np.uint64], sizes: NDArray[np.int64], addresses: NDArray[np.int64]
) -> int:
    """As `write_chunk`, of many chunks: return how many were written before one failed.

    Parameters
    ----------
    dataset_id
        A dataset that h5py has open.
    origins
        First coordinates of each chunk, of shape (chunks, rank) and C-contiguous.
    sizes, addresses
        How many bytes each has, and where they are.
    """
    write = _chunk_writer()
    if write is None:
        return 0
    first, step = origins.ctypes.data, origins.strides[0]
    done = 0
    with _alone():
        for size, address in zip(sizes.tolist(), addresses.tolist(), strict=True):
            if write(dataset_id, 0, 0, first + done * step, size, address) < 0:
                break
            done += 1
    return done


@contextmanager
def writer_of(dataset_id: int, origins: NDArray[np.uint64]) -> Iterator[_native_lanes.Writer | None]:
    """Give what the library needs to do as `write_chunk` with chunks of a dataset, None where that cannot be done."""
    write = _chunk_writer()
    if write is None:
        yield None
        return
    address = ctypes.cast(write, ctypes.c_void_p)
    with _alone():
        yield _native_lanes.Writer(address, dataset_id, origins.ctypes.data, origins.shape[1])


class ChunkPlaces(NamedTuple):
    """The chunks that a file has of a dataset, in the order of its index, each array of their number.

    Attributes
    ----------
    origins : uint64
        First coordinates, of shape (chunks, rank).
    offsets, sizes : uint64
        First byte in the file, and bytes.
    masks : uint32
        Filter masks.
    """

    origins: NDArray[np.uint64]
    offsets: NDArray[np.uint64]
    sizes: NDArray[np.uint64]
    masks: NDArray[np.uint32]


def chunk_places(dataset_id: int, rank: int) -> ChunkPlaces | None:
    """Return the chunks of a dataset that h5py has open in one walk over them, None where that cannot be done.

    As `h5py.h5d.DatasetID.chunk_iter`, but without a call of Python for each chunk.
    """
    library = _h5py_hdf5()
    count_of, walk = (getattr(library, name, None) for name in ("H5Dget_num_chunks", "H5Dchunk_iter"))
    if count_of is None or walk is None:
        return None
    try:
        note = ctypes.cast(_native.library().pyf_list_chunk, ctypes.c_void_p)
    except errors.LibraryMissing:
        return None
    count_of.argtypes = (ctypes.c_int64, ctypes.c_int64, ctypes.POINTER(ctypes.c_uint64))
    walk.argtypes = (ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
    count = ctypes.c_uint64()
    with _alone():
        if count_of(dataset_id, 0, ctypes.byref(count)) < 0:
            return None
        room = count.value
        found = ChunkPlaces(
            np.empty((room, rank), np.uint64),
            np.empty(room, np.uint64),
            np.empty(room, np.uint64),
            np.empty(room, "u4"),
        )
        heard = _native.ChunkList(room, 0, rank, *(array.ctypes.data for array in found))
        if walk(dataset_id, 0, note, ctypes.addressof(heard)) != 0:
            return None
    told = slice(0, int(heard.count))
    return ChunkPlaces(found.origins[told], found.offsets[told], found.sizes[told], found.masks[told])


def chunk_index(dataset_id: int) -> int | None:
    """Return HDF5's number for how a dataset that h5py has open finds its chunks, None where it does not tell."""
    try:
        get = _h5py_hdf5().H5Dget_chunk_index_type
    except AttributeError:  # HDF5 before 1.10, which knew but one
        return None
    get.argtypes = (ctypes.c_int64, ctypes.POINTER(ctypes.c_int))
    index = ctypes.c_int()
    with _alone():
        return index.value if get(dataset_id, ctypes.byref(index)) >= 0 else None


def chunk_size(dataset_id: int, origin: Sequence[int]) -> int:
    """Return the bytes that are stored of a chunk of a dataset that h5py has open, 0 where it was never written."""
    get = _h5py_hdf5().H5Dget_chunk_storage_size
    get.argtypes = (ctypes.c_int64, ctypes.POINTER(ctypes.c_uint64), ctypes.POINTER(ctypes.c_uint64))
    size = ctypes.c_uint64(0)
    with _alone():
        found = get(dataset_id, (ctypes.c_uint64 * len(origin))(*origin), ctypes.byref(size))
    return int(size.value) if found >= 0 else 0


def filters_partial_chunks(dcpl_id: int) -> bool:
    """Whether a creation property list of h5py's HDF5 has chunks at the edge filtered, as is the default."""
    try:
        get = _h5py_hdf5().H5Pget_chunk_opts
    except AttributeError:  # HDF5 before 1.10 had no such option
        return True
    get.argtypes = (ctypes.c_int64, ctypes.POINTER(ctypes.c_uint))
    options = ctypes.c_uint(0)
    dont_filter_partial_chunks = 0x0002
    with _alone():
        return bool(get(dcpl_id, ctypes.byref(options)) < 0 or not options.value & dont_filter_partial_chunks)


def filters_of(dcpl_id: int) -> list[tuple[int, tuple[int, ...]]]:
    """Return the id and the cd_values of each filter of a creation property list of h5py's HDF5.

    h5py before 3.9 reads past the end of its buffer where a filter has more than 16 values; ours has up to 20.
    """
    library = _h5py_hdf5()
    count_of, get = library.H5Pget_nfilters, library.H5Pget_filter2
    count_of.argtypes = (ctypes.c_int64,)
    get.argtypes = (
        ctypes.c_int64,
        ctypes.c_uint,
        ctypes.POINTER(ctypes.c_uint),
        ctypes.POINTER(ctypes.c_size_t),
        ctypes.POINTER(ctypes.c_uint),
        ctypes.c_size_t,
        ctypes.c_char_p,
        ctypes.POINTER(ctypes.c_uint),
    )
    room = 256
    words = (ctypes.c_uint * room)()
    found: list[tuple[int, tuple[int, ...]]] = []
    flags, config = ctypes.c_uint(), ctypes.c_uint()
    with _alone():
        for i in range(count_of(dcpl_id)):
            count = ctypes.c_size_t(room)
            identity = get(dcpl_id, i, ctypes.byref(flags), ctypes.byref(count), words, 0, None, ctypes.byref(config))
            found.append((int(identity), tuple(words[: min(count.value, room)])))
    return found


def comment_of(object_id: int) -> bytes:
    """Return the comment on an object that h5py has open (its own call returns noise where there is none)."""
    get = _h5py_hdf5().H5Oget_comment
    get.restype = ctypes.c_ssize_t
    get.argtypes = (ctypes.c_int64, ctypes.c_char_p, ctypes.c_size_t)
    with _alone():
        length = get(object_id, None, 0)
        if length <= 0:
            return b""
        buffer = ctypes.create_string_buffer(length + 1)
        get(object_id, buffer, length + 1)
    return buffer.value


def reclaim(type_id: int, space_id: int, buffer: int) -> None:
    """Free what HDF5 allocated for the sequences in a buffer (an address) of raw values that it has read."""
    free = _h5py_hdf5().H5Dvlen_reclaim
    free.argtypes = (ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
    with _alone():
        free(type_id, space_id, 0, buffer)


class Netcdf:
    """The netCDF-C library that the netCDF4 package is linked to."""

    def __init__(self) -> None:
        try:
            from netCDF4 import _netCDF4
        except ImportError as error:
            raise errors.missing_extra("netCDF4", "netcdf") from error
        self._library = ctypes.CDLL(str(_netCDF4.__file__))
        self._library.nc_strerror.restype = ctypes.c_char_p

    def _call(self, name: str, *arguments: Any) -> None:
        """Call a function and raise NetcdfError for a status other than 0."""
        try:
            function = getattr(self._library, name)
        except AttributeError:
            message = f"the installed netCDF-C has no {name}; netCDF-C 4.7.4 or later is needed"
            raise errors.Unsupported(message) from None
        status = int(function(*arguments))
        if status != 0:
            text = self._library.nc_strerror(status)
            message = f"{name}: {text.decode('utf-8', 'replace') if text else 'unknown error'} ({status})"
            raise errors.NetcdfError(message, status)

    def def_var_filter(self, group: int, variable: int, filter_id: int, words: tuple[int, ...]) -> None:
        """Put a filter at the end of a variable's pipeline."""
        values = (ctypes.c_uint * len(words))(*words)
        self._call("nc_def_var_filter", group, variable, ctypes.c_uint(filter_id), ctypes.c_size_t(len(words)), values)

    def filter_ids(self, group: int, variable: int) -> list[int]:
        """Return the ids of a variable's filters in their order."""
        count = ctypes.c_size_t(0)
        self._call("nc_inq_var_filter_ids", group, variable, ctypes.byref(count), None)
        ids = (ctypes.c_uint * max(count.value, 1))()
        self._call("nc_inq_var_filter_ids", group, variable, ctypes.byref(count), ids)
        return list(ids[: count.value])

    def filter_words(self, group: int, variable: int, filter_id: int) -> list[int]:
        """Return the cd_values of one of a variable's filters."""
        count = ctypes.c_size_t(0)
        identity = ctypes.c_uint(filter_id)
        self._call("nc_inq_var_filter_info", group, variable, identity, ctypes.byref(count), None)
        words = (ctypes.c_uint * max(count.value, 1))()
        self._call("nc_inq_var_filter_info", group, variable, identity, ctypes.byref(count), words)
        return list(words[: count.value])

    def is_shuffled(self, group: int, variable: int) -> bool:
        """Whether the shuffle filter is set on a variable."""
        shuffle, deflate, level = ctypes.c_int(0), ctypes.c_int(0), ctypes.c_int(0)
        self._call(
            "nc_inq_var_deflate", group, variable, ctypes.byref(shuffle), ctypes.byref(deflate), ctypes.byref(level)
        )
        return bool(shuffle.value)

    def is_checksummed(self, group: int, variable: int) -> bool:
        """Whether fletcher32 is set on a variable."""
        value = ctypes.c_int(0)
        self._call("nc_inq_var_fletcher32", group, variable, ctypes.byref(value))
        return bool(value.value)

    def redef(self, dataset: int) -> None:
        """Enter define mode."""
        self._call("nc_redef", dataset)

    def enddef(self, dataset: int) -> None:
        """Leave define mode."""
        self._call("nc_enddef", dataset)

    def def_var(self, group: int, name: str, nc_type: int, dimensions: tuple[int, ...]) -> int:
        """Define a variable and return its id."""
        variable = ctypes.c_int(-1)
        ids = (ctypes.c_int * max(len(dimensions), 1))(*dimensions)
        self._call("nc_def_var", group, name.encode("utf-8"), nc_type, len(dimensions), ids, ctypes.byref(variable))
        return variable.value

    def var_type(self, group: int, variable: int) -> int:
        """Return a variable's ``nc_type``."""
        kind = ctypes.c_int(0)
        self._call("nc_inq_vartype", group, variable, ctypes.byref(kind))
        return kind.value

    def def_var_chunking(self, group: int, variable: int, chunks: tuple[int, ...]) -> None:
        """Set a variable's chunk shape."""
        sizes = (ctypes.c_size_t * len(chunks))(*chunks)
        self._call("nc_def_var_chunking", group, variable, NC_CHUNKED, sizes)

    def def_var_fill(self, group: int, variable: int, value: bytes | None) -> None:
        """Set a variable's fill value (bytes of one native value), or no filling at all for None."""
        if value is None:
            self._call("nc_def_var_fill", group, variable, 1, None)
        else:
            self._call("nc_def_var_fill", group, variable, 0, ctypes.c_char_p(value))

    def copy_att(self, source: tuple[int, int], name: str, target: tuple[int, int]) -> None:
        """Copy an attribute between variables, each given as (dataset or group id, variable id)."""
        self._call("nc_copy_att", *source, name.encode("utf-8"), *target)

    def att_type(self, source: tuple[int, int], name: str) -> tuple[int, int]:
        """Return the ``nc_type`` of an attribute, and how many values it has."""
        kind, count = ctypes.c_int(0), ctypes.c_size_t(0)
        self._call("nc_inq_att", *source, name.encode("utf-8"), ctypes.byref(kind), ctypes.byref(count))
        return kind.value, count.value

    def copy_att_unchecked(self, source: tuple[int, int], name: str, target: tuple[int, int]) -> None:
        """As `copy_att`, of an atomic type: by another name first, so that netCDF does not ask if the type fits."""
        own, other = name.encode("utf-8"), b"pyfilter" + name.encode("utf-8")
        kind, count = self.att_type(source, name)
        values = ctypes.create_string_buffer(8 * max(count, 1))
        self._call("nc_get_att", *source, own, values)
        self._call("nc_put_att", *target, other, kind, ctypes.c_size_t(count), values)
        self._call("nc_rename_att", *target, other, own)


@cache
def netcdf() -> Netcdf:
    """Return the one wrapper of netCDF-C.

    Raises
    ------
    MissingExtra
        If the netCDF4 package is not installed.
    """
    return Netcdf()
