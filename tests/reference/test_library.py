# SPDX-License-Identifier: BSD-3-Clause
"""The library against the reference decoder: the same bits from odd frames, the same refusals of hostile ones.

The library is the file that the environment's PYFILTER_LIBRARY names, else the installed pyfilter's.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from . import (
    adaptive_parts_writer,
    adaptive_writer,
    bins_writer,
    encoder,
    packed_choices,
    particles_writer,
    progressive_writer,
    stream_writer,
)
from .decoder import decode, parse_header
from .library import Library, LibraryError
from .located import needs_library

pytestmark = needs_library


LEVELS = ("baseline", "avx2", "avx512")


def each_level(library: Library) -> Iterator[str]:
    """The CPU levels of this machine, each while the library is set to it."""
    try:
        for level in LEVELS:
            try:
                library.configure("cpu_level", level)
            except LibraryError:  # test_levels says so
                continue
            yield level
    finally:  # after a failure, too
        library.configure("cpu_level", "auto")


@pytest.mark.parametrize("level", LEVELS)
def test_levels(library: Library, level: str) -> None:
    """Skipped, with the reason, where the tests below leave a level out."""
    try:
        library.configure("cpu_level", level)
    except LibraryError as error:
        pytest.skip(str(error))
    library.configure("cpu_level", "auto")


WRITERS: dict[str, Callable[[random.Random], tuple[encoder.Spec, bytes, list[Any]]]] = {
    "tiles": encoder.random_frame,
    "packed tiles": packed_choices.random_frame,
    "particles": particles_writer.random_frame,
    "bins": bins_writer.random_frame,
}
SLOW_WRITERS = {
    "streams": stream_writer.random_frame,
    "short states": lambda rng: stream_writer.random_frame(rng, (encoder.SHORT_STATES,)),
    "progressive": progressive_writer.random_frame,
    "adaptive": adaptive_writer.random_frame,
    "adaptive parts": adaptive_parts_writer.random_frame,
}


@pytest.mark.parametrize("kind", list(WRITERS))
@pytest.mark.parametrize("seed", range(100))
def test_random_frames(library: Library, seed: int, kind: str) -> None:
    check_levels(library, WRITERS[kind], seed)


@pytest.mark.parametrize("kind", list(SLOW_WRITERS))
@pytest.mark.parametrize("seed", range(24))
def test_random_frames_that_are_slow_to_write(library: Library, seed: int, kind: str) -> None:
    check_levels(library, SLOW_WRITERS[kind], seed)


def check_levels(
    library: Library, writer: Callable[[random.Random], tuple[encoder.Spec, bytes, list[Any]]], seed: int
) -> None:
    """A frame on every CPU level: written, and decoded by the reference, once for all."""
    rng = random.Random(seed)
    spec, frame, _ = writer(rng)
    whole = decode(frame).tobytes()
    for level in each_level(library):
        check_ranges(library, spec, frame, whole, rng, level)


def check_ranges(
    library: Library, spec: encoder.Spec, frame: bytes, whole: bytes, rng: random.Random, level: str
) -> None:
    """The whole frame and parts of it."""
    assert library.decode(frame, len(whole)) == whole, level
    count, width = len(whole) // spec.value_bytes, spec.value_bytes
    ranges = [(0, 0), (0, count), (count, count)]
    for _ in range(6):
        start, other = rng.randint(0, count), rng.randint(0, count)
        ranges += [(min(start, other), max(start, other)), (start, min(start + rng.randint(1, 70), count))]
    for start, stop in ranges:
        part = library.decode_range(frame, start, stop, (stop - start) * width)
        assert part == whole[start * width : stop * width], (level, start, stop)


@pytest.mark.parametrize(
    ("kind", "count"),
    [
        ("tiles", 40),
        ("packed tiles", 40),
        ("particles", 20),
        ("progressive", 6),
        ("streams", 4),
        ("adaptive", 6),
        ("adaptive parts", 6),
        ("bins", 40),
    ],
)
def test_info(library: Library, kind: str, count: int) -> None:
    for seed in range(count):
        writer = (WRITERS | SLOW_WRITERS)[kind]
        check_info(library, *writer(random.Random(seed))[:2])


def check_info(library: Library, spec: encoder.Spec, frame: bytes) -> None:
    info, header = library.info(frame), parse_header(frame)
    assert info.format_version == spec.version
    assert info.codec == encoder.CODECS[spec.codec]
    assert info.dtype == encoder.DTYPE_CODES[spec.dtype]
    assert (info.stored_raw, info.source_big_endian) == (spec.raw, spec.big_endian)
    assert info.has_sentinel == (spec.sentinel is not None)
    assert (info.bound, info.step, info.sentinel) == (spec.bound, spec.step, spec.sentinel or 0)
    assert tuple(info.dims[: info.rank]) == spec.dims
    assert bytes(info.parameters) == frame[48:56]
    assert (info.header_bytes, info.frame_bytes) == (header.header_bytes, len(frame))
    count = math.prod(spec.dims)
    assert (info.value_count, info.value_bytes) == (count, count * spec.value_bytes)
    assert library.info(frame[: header.header_bytes]).frame_bytes == len(frame)  # the header is enough
