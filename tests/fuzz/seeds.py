# SPDX-License-Identifier: BSD-3-Clause
"""Seed corpora of the fuzz targets from the golden frames and kept corpora: `seeds.py FOLDER [MOST_BYTES [FRAMES]]`.

Makes one folder for each target of `TARGETS`. Longer inputs than MOST_BYTES (4096) are left out: short ones run faster.
FRAMES (0) random frames of each writer of tests/reference, which needs NumPy, are added for the decoders, and the
hostile ones.
"""

from __future__ import annotations

import itertools
import random
import struct
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

#: by their numbers, from 1
CODECS = ("cuszp2", "lossless", "hierarchical_delta", "lorenzo", "particles", "progressive", "adaptive")
DECODERS = {"decode_any": 0, **{f"decode_{name}": number for number, name in enumerate(CODECS, 1)}}
TARGETS = (*DECODERS, "filter", "round_trip")
GOLDEN = Path(__file__).resolve().parents[1] / "golden"
#: what long runs found to take other branches than all before it (campaign.py --keep)
CORPORA = Path(__file__).resolve().parent / "corpora"
FIXED_HEADER = 56
MOST_RANK = 5
COMPLEX = (11, 12)
RECORDS = 0
WIDTHS = (1, 4, 8, 1, 1, 2, 2, 4, 4, 8, 8, 8, 16, 1, 2, 2)


def dims_of(frame: bytes) -> tuple[int, ...]:
    """The shape that a frame's header says."""
    return struct.unpack_from(f"<{frame[11]}Q", frame, FIXED_HEADER)


def stored_words(frame: bytes) -> bytes:
    """The cd_values of a dataset whose chunks are such frames (docs/cd_values.md)."""
    dims = dims_of(frame)
    words = [0x31465950, frame[8], 1, 0, 0x3FF00000, 0, frame[9] | (frame[10] & 2) << 7, 0, 0, len(dims)]
    fill = bytes(8) if frame[9] in COMPLEX else b""  # its imaginary part
    return struct.pack("<10I", *words) + struct.pack(f"<{len(dims)}Q", *dims) + fill


def record_words(frame: bytes) -> bytes:
    """The cd_values of a dataset whose chunks are such frames of records, all fields bit for bit."""
    table, dims = 8 * frame[7], struct.unpack_from(f"<{frame[11]}Q", frame, 40)
    (columns,) = struct.unpack_from("<I", frame, 32)
    start = table + 16 * columns
    words = [0x32465950, 0, 0, len(dims) | columns << 16]
    for dim in dims:
        words += [dim & 0xFFFFFFFF, dim >> 32]
    for number in range(columns):
        size, kind, own = struct.unpack_from("<IIQ", frame, table + 16 * number)
        dtype, big = frame[start + 9], frame[start + 10] & 2
        count = size // WIDTHS[dtype]
        words += [0, size] if kind else [dtype | big << 7 | (count > 1) << 11, *([1, count] if count > 1 else [])]
        start += own + -own % 8
    return struct.pack(f"<{len(words)}I", *words)


def filter_inputs(frame: bytes, values: bytes) -> Iterator[bytes]:
    """A chunk to decode, one to encode, and cd_values as a user gives them."""
    if frame[11] > MOST_RANK - (frame[9] in COMPLEX) or 0 in dims_of(frame):
        return
    words = stored_words(frame)
    yield bytes([0x80 | len(words) // 4]) + words + frame
    yield bytes([len(words) // 4]) + words + values
    yield bytes([6]) + struct.pack("<3Id", 1, frame[8], 1, 0.5) + bytes(4) + values[:64]


def round_trip_input(frame: bytes, values: bytes) -> bytes:
    """The request that a golden frame may come from, and its values."""
    bound = struct.unpack_from("<d", frame, 24)[0]
    pointwise = frame[10] >> 3 & 1
    mode = 0 if frame[8] == 2 else 3 if pointwise else 1
    fill = frame[40:48]
    parameters = frame[48:52] if frame[8] in (1, 2) else bytes(4)
    if frame[8] == 5:
        parameters = frame[48:49] + bytes(3)
    if frame[8] == 6 and frame[48] == 2:
        parameters = bytes((2, 0, 0, 0))
    if frame[8] == 7:  # the predictor that the number of passes tells of
        passes = frame[FIXED_HEADER + 8 * frame[11] + 12 :][:1]
        parameters = bytes((2 if any(byte & 3 for byte in passes) else 1, frame[12] & 1, 0, 0))
    dims = [min(n, 255) for n in dims_of(frame)[-3:]]
    if mode == 1 and bound == 0:
        bound = 1.0
    head = bytes([frame[8], frame[9], mode, frame[10] >> 2 & 1]) + parameters
    head += struct.pack("<d", 0.0 if mode == 0 else bound) + fill + bytes([len(dims), *dims, 0, 0, 0])[:4]
    return head + values


def values_of(path: Path) -> bytes:
    """The data of a .npy file: what its header is followed by."""
    data = path.read_bytes()
    return data[10 + struct.unpack_from("<H", data, 8)[0] :]


def inputs(most_bytes: int) -> Iterator[tuple[str, str, bytes]]:
    """Target, name and content of every seed."""
    for path in sorted(GOLDEN.glob("v*.pyf")):
        frame, values = path.read_bytes(), values_of(path.with_suffix(".npy"))
        if frame[8] == RECORDS:
            words = record_words(frame)
            yield "filter", f"{path.stem}_0", bytes([0x80 | len(words) // 4]) + words + frame
            yield "filter", f"{path.stem}_1", bytes([len(words) // 4]) + words + values
            continue
        for target, codec in DECODERS.items():
            if codec in (0, frame[8]):
                yield target, path.stem, frame
        for number, data in enumerate(filter_inputs(frame, values)):
            yield "filter", f"{path.stem}_{number}", data
        yield "round_trip", path.stem, round_trip_input(frame, values)[:most_bytes]


def written(count: int) -> Iterator[tuple[str, str, bytes]]:
    """Frames of the reference writers, which make choices that our encoder never makes, and those that are refused."""
    sys.path.insert(0, str(GOLDEN.parent))
    from reference import (
        adaptive_parts_writer,
        adaptive_writer,
        bins_writer,
        encoder,
        hostile,
        packed_choices,
        particles_writer,
        progressive_writer,
        stream_writer,
    )

    writers: dict[str, Callable[[random.Random], tuple[Any, bytes, Any]]] = {
        "blocks": encoder.random_frame,
        "packed": packed_choices.random_frame,
        "integers": lambda rng: packed_choices.random_frame(rng, True),
        "streams": stream_writer.random_frame,
        "particles": particles_writer.random_frame,
        "progressive": progressive_writer.random_frame,
        "adaptive": adaptive_writer.random_frame,
        "parts": adaptive_parts_writer.random_frame,
        "bins": bins_writer.random_frame,
    }
    frames = [(f"{name}_{n}", make(random.Random(n))[1]) for name, make in writers.items() for n in range(count)]
    if count:
        frames += [(f"hostile_{n}", one.frame) for n, one in enumerate(hostile.crafted())]
    for name, frame in frames:
        for target, codec in DECODERS.items():
            if len(frame) > FIXED_HEADER and codec in (0, frame[8]):
                yield target, name, frame


def kept() -> Iterator[tuple[str, str, bytes]]:
    """Target, name and content of the inputs in the kept corpora."""
    for path in sorted(CORPORA.glob("*.tar.xz")):
        target = path.name.removesuffix(".tar.xz")
        with tarfile.open(path) as archive:
            for member in archive:
                file = archive.extractfile(member)
                assert file is not None
                yield target, f"kept_{Path(member.name).name}", file.read()


def write(folder: Path, most_bytes: int = 4096, frames: int = 0) -> int:
    """Write all seeds; return their number."""
    for target in TARGETS:
        (folder / target).mkdir(parents=True, exist_ok=True)
    count = 0
    for target, name, data in itertools.chain(inputs(most_bytes), kept(), written(frames)):
        if len(data) <= most_bytes:
            (folder / target / name).write_bytes(data)
            count += 1
    return count


if __name__ == "__main__":
    print(write(Path(sys.argv[1]), *(int(word) for word in sys.argv[2:4])), "seeds")
