# SPDX-License-Identifier: BSD-3-Clause
"""Structured arrays to frames and back (docs/format.md, section 17), and what the header of such a frame says."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pyfilter import errors
from pyfilter._lib import abi, library
from pyfilter.errors import InvalidArgument, TruncatedFrame, Unsupported
from pyfilter.records import fields as record_fields

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyfilter.headers import FrameInfo
    from pyfilter.records.compound import Compound

_MAGIC = b"\x89PYF"
_FIRST_VERSION = 9


@dataclass(frozen=True)
class Column:
    """A column of a frame of records.

    Attributes
    ----------
    offset : int
        Its first byte in a record.
    dtype : numpy.dtype
        What a record has of it, in the byte order of the records: a number, an array of numbers, or bytes (``V5``).
    frame : FrameInfo
        The header of the column's own frame. Bytes are encoded as an array of uint8.
    """

    offset: int
    dtype: np.dtype[Any]
    frame: FrameInfo


@dataclass(frozen=True)
class RecordsInfo:
    """What header and table of a frame of records say, and the headers of its columns.

    Attributes
    ----------
    shape : tuple of int
        The shape of the array of records.
    dtype : numpy.dtype
        The records. A frame does not store names: fields are "f0", "f1" and so on, in the order of their bytes, and
        what was padding is a field as well. ``decode(frame).view(dtype)`` gives fields their names back.
    columns : tuple of Column
        The columns, in the order of their bytes.
    frame_bytes, value_bytes : int
        Sizes of the whole frame and of the decoded records.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    columns: tuple[Column, ...]
    frame_bytes: int
    value_bytes: int

    @property
    def ratio(self) -> float:
        """Size of the records divided by the size of the frame."""
        return self.value_bytes / self.frame_bytes


def is_records(frame: NDArray[np.uint8]) -> bool:
    """Whether bytes begin as a frame of records does."""
    if frame.nbytes <= 8 or frame[8] != 0 or frame[4] < _FIRST_VERSION:
        return False
    return frame[:4].tobytes() == _MAGIC


def encode(array: NDArray[Any], compound: Compound, fill_value: object, over: NDArray[np.uint8] | None) -> bytes:
    """Return the frame of a structured array; see `pyfilter.encode`."""
    from pyfilter.frames import make_request

    columns = record_fields.all_bytes_of(array.dtype)
    record_fields.check_names(compound, columns)
    record = record_fields.record_of(fill_value, array.dtype)
    requests = (abi.Request * len(columns))()
    for number, field in enumerate(columns):
        codec = record_fields.codec_for(compound, field)
        fill = record_fields.fill_of(field, record, codec)
        if field.is_number:
            requests[number] = make_request(codec, field.dtype, field.shape, fill)
        else:
            requests[number] = abi.Request(parameters=(ctypes.c_uint8 * 8)(*codec.parameter_bytes))
    sizes = np.array([field.size for field in columns], np.uint32)
    dims = np.array(array.shape, np.uint64)
    if array.ndim > abi.MAX_RANK:
        message = f"an array has at most {abi.MAX_RANK} dimensions here, got {array.ndim}"
        raise InvalidArgument(message)
    values = np.asarray(_whole(array), order="C")
    records = abi.Records(
        columns=len(columns), requests=requests, bytes=sizes.ctypes.data, dims=dims.ctypes.data, rank=array.ndim
    )
    size = ctypes.c_size_t(0)
    capacity = library.load().pyf_max_records_bytes(ctypes.byref(records))
    out = np.empty(max(capacity, 1), np.uint8)  # without room, the call says why
    old = (None, 0) if over is None else (over.ctypes.data, over.nbytes)
    given = ctypes.byref(records), values.ctypes.data, values.nbytes, *old
    library.check(library.load().pyf_encode_records(*given, out.ctypes.data, out.nbytes, ctypes.byref(size)))
    return out[: size.value].tobytes()


def decode(frame: NDArray[np.uint8], out: Any) -> NDArray[Any]:
    """Return the records of a frame, in ``out`` if that is given; see `pyfilter.decode`."""
    info = info_of(frame)
    target = np.empty(info.shape, info.dtype)
    if out is not None:
        if not isinstance(out, np.ndarray):
            message = f"out must be a numpy.ndarray: records are decoded on the host, got {type(out).__name__}"
            raise Unsupported(message)
        if out.shape != info.shape or out.dtype.itemsize != info.dtype.itemsize or out.dtype.hasobject:
            message = (
                f"out must have shape {info.shape} and records of {info.dtype.itemsize} bytes, got {out.shape} and "
                f"{out.dtype}"
            )
            raise InvalidArgument(message)
        if not out.flags.writeable:
            message = "out is read-only: give a writeable array"
            raise InvalidArgument(message)
        if out.flags.c_contiguous:
            target = out
    library.check(library.load().pyf_decode_records(frame.ctypes.data, frame.nbytes, target.ctypes.data, target.nbytes))
    if out is None or target is out:
        return target
    _whole(out)[...] = _whole(target)
    result: NDArray[Any] = out
    return result


def info_of(frame: NDArray[np.uint8]) -> RecordsInfo:
    """Return what a whole frame of records says of itself.

    Raises
    ------
    FrameError
        If it is damaged, cut short, or claims to hold more than it can.
    """
    from pyfilter.frames import checked_header
    from pyfilter.headers import info_of as header_of

    raw = abi.RecordsInfo()
    read = library.load().pyf_read_records
    library.check(read(frame.ctypes.data, frame.nbytes, ctypes.byref(raw), None, 0))
    if raw.frame_bytes > frame.nbytes:
        message = f"the frame has {raw.frame_bytes} bytes, only {frame.nbytes} are there"
        raise TruncatedFrame(message)
    parts = np.zeros(raw.columns, abi.COLUMN)
    library.check(read(frame.ctypes.data, frame.nbytes, ctypes.byref(raw), parts.ctypes.data, len(parts)))
    columns: list[Column] = []
    offset = 0
    for part in parts:
        own = frame[int(part["offset"]) : int(part["offset"]) + int(part["frame_bytes"])]
        header = header_of(checked_header(own))
        size = int(part["bytes"])
        if header.value_bytes != size * raw.record_count or size % header.dtype.itemsize:
            message = f"column {len(columns)} does not hold {size} bytes for each of {raw.record_count} records"
            raise errors.CorruptFrame(message)
        columns.append(Column(offset, _type(header, size, bool(part["has_values"])), header))
        offset += size
    dtype = np.dtype(
        {
            "names": [f"f{number}" for number in range(len(columns))],
            "formats": [column.dtype for column in columns],
            "offsets": [column.offset for column in columns],
            "itemsize": offset,
        }
    )
    return RecordsInfo(raw.shape, dtype, tuple(columns), raw.frame_bytes, raw.value_bytes)


def _whole(records: NDArray[Any]) -> NDArray[Any]:
    """Return a view of records as bytes, of which NumPy copies all: of structured types it leaves out padding."""
    return records.view(np.dtype(f"V{records.dtype.itemsize}"))


def _type(header: FrameInfo, size: int, has_values: bool) -> np.dtype[Any]:
    if not has_values:
        return np.dtype(f"V{size}")
    one = header.dtype.newbyteorder(">") if header.big_endian else header.dtype
    count = size // one.itemsize
    return one if count == 1 else np.dtype((one, (count,)))
