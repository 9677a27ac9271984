# SPDX-License-Identifier: BSD-3-Clause
"""Reference decoder of section 17 of docs/format.md: records, a frame for each of their columns.

Neighbour: decoder.py, which decodes the columns.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .header import BIG_ENDIAN, FORMAT_VERSION, MAGIC, Header, TooNew, TruncatedFrame, parse_header, require

RECORDS, RECORDS_VERSION = 0, 9
FIXED, ENTRY = 40, 16
VALUES, BYTES = 0, 1


class Column(NamedTuple):
    """A row of the table."""

    size: int  # bytes of a record
    kind: int
    start: int  # of its frame
    frame_bytes: int


class Records(NamedTuple):
    """Header and table, checked."""

    dims: tuple[int, ...]
    record_bytes: int
    frame_bytes: int
    columns: list[Column]

    @property
    def records(self) -> int:
        return math.prod(self.dims)


def is_records(frame: bytes) -> bool:
    return len(frame) > 8 and frame[:4] == MAGIC and RECORDS_VERSION <= frame[4] <= FORMAT_VERSION and frame[8] == 0


def parse_records(frame: bytes) -> Records:
    """Header and table."""
    if frame[4] > FORMAT_VERSION:
        raise TooNew(f"needs pyfilter >= {frame[5]}.{frame[6]}")
    table, rank = 8 * frame[7], frame[11] if len(frame) > 11 else 0
    if len(frame) < max(table, FIXED):
        raise TruncatedFrame(f"{len(frame)} bytes, a header has {table}")
    require(rank <= 32 and table == FIXED + 8 * rank, "header size and rank disagree")
    frame_bytes, record_bytes, count, reserved = struct.unpack_from("<QQII", frame, 16)
    require(1 <= count <= 4096, "number of columns")
    head = table + ENTRY * count
    if len(frame) < head:
        raise TruncatedFrame(f"{len(frame)} bytes, header and table have {head}")
    crc = zlib.crc32(frame[:12] + bytes(4) + frame[16:head])
    require(struct.unpack_from("<I", frame, 12)[0] == crc, "checksum of the header")
    require(frame[9] == frame[10] == reserved == 0, "reserved fields")
    dims = struct.unpack_from(f"<{rank}Q", frame, FIXED)
    require(math.prod(dim for dim in dims if dim) < 1 << 61, "product of the dims")
    require(math.prod(dims) * record_bytes < 1 << 61, "size of the records")
    columns, at = [], head
    for number in range(count):
        size, kind, low, high, own = struct.unpack_from("<IBBHQ", frame, table + ENTRY * number)
        require(size > 0 and kind in (VALUES, BYTES) and low == high == 0, "a column's entry")
        columns.append(Column(size, kind, at, own))
        at += own + -own % 8
    require(sum(column.size for column in columns) == record_bytes, "columns do not make up a record")
    require(at == frame_bytes and frame_bytes < 1 << 61, "columns do not fill the frame")
    return Records(dims, record_bytes, frame_bytes, columns)


def element(header: Header, column: Column) -> np.dtype[Any]:
    """What a record has of a column, in the byte order of the records."""
    if column.kind == BYTES:
        return np.dtype(f"V{column.size}")
    one = header.element.newbyteorder(">") if header.flags & BIG_ENDIAN else header.element
    count = column.size // one.itemsize
    return one if count == 1 else np.dtype((one, (count,)))


def decode_records(frame: bytes, decode: Callable[[bytes], NDArray[Any]]) -> NDArray[Any]:
    """An array of records with fields f0, f1 and so on, each a column; ``decode`` decodes a column's frame."""
    found = parse_records(frame)
    if len(frame) < found.frame_bytes:
        raise TruncatedFrame(f"{len(frame)} bytes of a frame of {found.frame_bytes}")
    require(len(frame) == found.frame_bytes, "more bytes than the frame has")
    headers = []
    for column in found.columns:
        own = frame[column.start : column.start + column.frame_bytes]
        end = column.start + column.frame_bytes
        require(not any(frame[end : end + -column.frame_bytes % 8]), "bytes between columns")
        require(not is_records(own), "records in records")
        header = parse_header(own)
        require(header.frame_bytes == column.frame_bytes, "size of a column's frame")
        one = header.element.itemsize
        require(
            column.size % one == 0 and math.prod(header.shape) * one == found.records * column.size, "a column's shape"
        )
        require(column.kind == VALUES or header.element == np.dtype("u1"), "a column of bytes")
        headers.append(header)
    kinds = [element(header, column) for header, column in zip(headers, found.columns, strict=True)]
    records = np.empty(found.dims, [(f"f{number}", kind) for number, kind in enumerate(kinds)])
    for number, column in enumerate(found.columns):
        values = decode(frame[column.start : column.start + column.frame_bytes])
        field = records[f"f{number}"]
        if column.kind == BYTES:
            planes = np.frombuffer(values.tobytes(), np.uint8).reshape(column.size, found.records)
            field[...] = np.ascontiguousarray(planes.T).view(f"V{column.size}").reshape(found.dims)
        else:
            field[...] = values.reshape(field.shape)
    return records
