# SPDX-License-Identifier: BSD-3-Clause
"""Calls into libhdf5, which other packages have loaded: into each (`mapped_libraries`), or into the one of h5py.

It is found in /proc/self/maps or through h5py's extension module that is linked to it, and never loaded by pyfilter.
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

from pyfilter import errors
from pyfilter._lib import abi, library

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

_MAPS = Path("/proc/self/maps")
_HDF5_NAME = re.compile(r"^libhdf5(?!.*_(hl|cpp|tools|fortran|f90cstub|java)).*\.so(\.|$)")
_NOLOAD = getattr(os, "RTLD_NOLOAD", 0)


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
        loaded = _loaded(hdf5)
        size_of, get, append = loaded.H5PLsize, loaded.H5PLget, loaded.H5PLappend
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
def _hdf5_lock() -> Iterator[None]:
    """Hold h5py's lock: ctypes drops the GIL, and HDF5 takes one call at a time.

    An exception of a Python file object, through which HDF5 reads or writes, is raised as it is.
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
        write.argtypes = abi.WRITE_CHUNK._argtypes_
    return write


def write_chunk(dataset_id: int, origin: Sequence[int], frame: bytes | NDArray[np.uint8], mask: int = 0) -> bool:
    """Write the bytes of a chunk of a dataset that h5py has open; False where that failed, or cannot be done.

    ``mask`` has a bit for each filter that they have not gone through.

    As `h5py.h5d.DatasetID.write_direct_chunk`, which holds the GIL while it copies or waits for a disk; this call drops
    it.
    """
    write = _chunk_writer()
    if write is None:
        return False
    place = (ctypes.c_uint64 * len(origin))(*origin)
    address = frame if isinstance(frame, bytes) else frame.ctypes.data
    with _hdf5_lock():
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
    with _hdf5_lock():
        for size, address in zip(sizes.tolist(), addresses.tolist(), strict=True):
            if write(dataset_id, 0, 0, first + done * step, size, address) < 0:
                break
            done += 1
    return done


@contextmanager
def writer_of(dataset_id: int, origins: NDArray[np.uint64]) -> Iterator[abi.ChunkWriter | None]:
    """Give what the library needs to write chunks as `write_chunk` does, None where HDF5 has no such call."""
    write = _chunk_writer()
    if write is None:
        yield None
        return
    with _hdf5_lock():
        yield abi.ChunkWriter(ctypes.cast(write, abi.WRITE_CHUNK), dataset_id, origins.ctypes.data, origins.shape[1])


class ChunkLocations(NamedTuple):
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


def chunk_locations(dataset_id: int, rank: int) -> ChunkLocations | None:
    """Return the chunks of a dataset that h5py has open in one walk over them, None where that cannot be done.

    As `h5py.h5d.DatasetID.chunk_iter`, but without a call of Python for each chunk.
    """
    hdf5 = _h5py_hdf5()
    count_of, walk = (getattr(hdf5, name, None) for name in ("H5Dget_num_chunks", "H5Dchunk_iter"))
    if count_of is None or walk is None:
        return None
    try:
        append = ctypes.cast(library.load().pyf_list_chunk, ctypes.c_void_p)
    except errors.LibraryMissing:
        return None
    count_of.argtypes = (ctypes.c_int64, ctypes.c_int64, ctypes.POINTER(ctypes.c_uint64))
    walk.argtypes = (ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
    count = ctypes.c_uint64()
    with _hdf5_lock():
        if count_of(dataset_id, 0, ctypes.byref(count)) < 0:
            return None
        capacity = count.value
        found = ChunkLocations(
            np.empty((capacity, rank), np.uint64),
            np.empty(capacity, np.uint64),
            np.empty(capacity, np.uint64),
            np.empty(capacity, "u4"),
        )
        filled = abi.ChunkList(capacity, 0, rank, *(array.ctypes.data for array in found))
        if walk(dataset_id, 0, append, ctypes.addressof(filled)) != 0:
            return None
    listed = slice(0, int(filled.count))
    return ChunkLocations(found.origins[listed], found.offsets[listed], found.sizes[listed], found.masks[listed])


def chunk_index(dataset_id: int) -> int | None:
    """Return HDF5's number for how a dataset that h5py has open finds its chunks, None where it does not tell."""
    try:
        get = _h5py_hdf5().H5Dget_chunk_index_type
    except AttributeError:  # HDF5 before 1.10, which knew but one
        return None
    get.argtypes = (ctypes.c_int64, ctypes.POINTER(ctypes.c_int))
    index = ctypes.c_int()
    with _hdf5_lock():
        return index.value if get(dataset_id, ctypes.byref(index)) >= 0 else None


def chunk_size(dataset_id: int, origin: Sequence[int]) -> int:
    """Return the bytes that are stored of a chunk of a dataset that h5py has open, 0 where it was never written."""
    get = _h5py_hdf5().H5Dget_chunk_storage_size
    get.argtypes = (ctypes.c_int64, ctypes.POINTER(ctypes.c_uint64), ctypes.POINTER(ctypes.c_uint64))
    size = ctypes.c_uint64(0)
    with _hdf5_lock():
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
    with _hdf5_lock():
        return bool(get(dcpl_id, ctypes.byref(options)) < 0 or not options.value & dont_filter_partial_chunks)


def filters_of(dcpl_id: int) -> list[tuple[int, tuple[int, ...]]]:
    """Return the id and the cd_values of each filter of a creation property list of h5py's HDF5.

    h5py before 3.9 reads past the end of its buffer where a filter has more than 16 values; ours has up to 20.
    """
    hdf5 = _h5py_hdf5()
    count_of, get = hdf5.H5Pget_nfilters, hdf5.H5Pget_filter2
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
    with _hdf5_lock():
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
    with _hdf5_lock():
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
    with _hdf5_lock():
        free(type_id, space_id, 0, buffer)
