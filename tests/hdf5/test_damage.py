# SPDX-License-Identifier: BSD-3-Clause
"""Chunks that are not what our encoder wrote: an error with a text, never a crash, never the wrong amount of data.

HDF5 2.0 and later drop errors that a filter pushes while it reads (HDFGroup/hdf5#6194), so the library is asked for the
text. test_tools.py sees it on an HDF5 1.10 stack.
"""

from __future__ import annotations

import random
import re
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from reference.library import Library

from pyfilter.registry import registry

from .support import HIERARCHICAL_DELTA, LORENZO, PARTICLES, Header, compressed, field, frames, lossless, words

CHUNK = (16, 16)
HEADER_BYTES = 56 + 8 * 2


class Victim:
    """A dataset of one chunk whose bytes can be replaced."""

    def __init__(self, file: h5py.File, library: Library) -> None:
        self.file = file
        self.library = library
        self.frame = frames(file["x"])[0]
        self.values = file["x"][...]

    def read(self, frame: bytes) -> Any:
        self.file["x"].id.write_direct_chunk((0, 0), frame)
        self.file["x"].id.refresh()  # past the chunk cache
        return self.file["x"][...]

    def refused(self, frame: bytes) -> str:
        """The text of the error that reading gives."""
        with pytest.raises(OSError, match="filter returned failure during read"):
            self.read(frame)
        text: str = self.library.c.pyf_last_error().decode()
        return text


@pytest.fixture(params=["cuszp2", "lossless", "hierarchical_delta", "lorenzo", "huffman", "particles", "raw"])
def victim(tmp_path: Path, library: Library, request: pytest.FixtureRequest) -> Iterator[Victim]:
    values = field(CHUNK)
    if request.param == "raw":
        values = np.random.default_rng(0).integers(0, 2**32, CHUNK, "u4").view("f4")
    delta = words(codec=HIERARCHICAL_DELTA, parameters=2)
    streams = {"lorenzo": words(codec=LORENZO), "huffman": words(codec=LORENZO, parameters=2 << 8)}
    kinds = {"cuszp2": words(), "hierarchical_delta": delta, **streams}
    if request.param == "particles":
        values = np.random.default_rng(0).random((128, 2), "f4")
        kinds["particles"] = words(codec=PARTICLES, parameters=1)  # sorted
    keywords = compressed(kinds.get(request.param, lossless()))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=values, chunks=values.shape, **keywords)
        assert request.param != "particles" or Header(frames(file["x"])[0]).codec == PARTICLES
    with h5py.File(tmp_path / "a.h5", "r+", rdcc_nbytes=0) as file:
        yield Victim(file, library)


def sealed(frame: bytes, offset: int, form: str, value: float) -> bytes:
    """The frame with one field changed and its checksum made right: what a flip is not, an attacker is."""
    changed = bytearray(frame)
    struct.pack_into(form, changed, offset, value)
    changed[12:16] = bytes(4)
    changed[12:16] = struct.pack("<I", zlib.crc32(changed[:HEADER_BYTES]))
    return bytes(changed)


def test_the_untouched_frame_is_read(victim: Victim) -> None:
    assert victim.read(victim.frame).tobytes() == victim.values.tobytes()


def test_every_flipped_header_bit_is_an_error(victim: Victim) -> None:
    for bit in range(8 * HEADER_BYTES):
        damaged = bytearray(victim.frame)
        damaged[bit // 8] ^= 1 << bit % 8
        assert victim.refused(bytes(damaged)), f"bit {bit}"
    assert victim.read(victim.frame).tobytes() == victim.values.tobytes()


def test_every_truncation_is_an_error(victim: Victim) -> None:
    lengths = {*range(1, HEADER_BYTES + 9), *range(HEADER_BYTES, len(victim.frame), 7), len(victim.frame) - 1}
    for length in sorted(lengths):
        assert "truncated" in victim.refused(victim.frame[:length]), f"{length} bytes"


@pytest.mark.parametrize("extra", [1, 3, 4, 64])
def test_bytes_after_the_frame_are_an_error(victim: Victim, extra: int) -> None:
    size = len(victim.frame)
    said = victim.refused(victim.frame + bytes(extra))
    assert said == f"corrupt chunk: {size + extra} bytes, but its frame has {size}"


def test_flipped_payload_bits_never_crash(victim: Victim) -> None:
    """Without a checksum after the filter such a flip may give other values, but as many of them."""
    rng = random.Random(1)
    payload = 8 * len(victim.frame) - 8 * HEADER_BYTES
    for bit in rng.sample(range(payload), min(payload, 400)):
        damaged = bytearray(victim.frame)
        damaged[HEADER_BYTES + bit // 8] ^= 1 << bit % 8
        try:
            assert victim.read(bytes(damaged)).shape == victim.values.shape
        except OSError:
            assert victim.library.c.pyf_last_error()


def test_random_payloads_never_crash(victim: Victim) -> None:
    rng = random.Random(2)
    for _ in range(200):
        damaged = victim.frame[:HEADER_BYTES] + rng.randbytes(len(victim.frame) - HEADER_BYTES)
        try:
            assert victim.read(damaged).shape == victim.values.shape
        except OSError:
            assert victim.library.c.pyf_last_error()


def test_fletcher32_catches_every_payload_flip(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=field(CHUNK), chunks=CHUNK, fletcher32=True, **compressed())
    with h5py.File(tmp_path / "a.h5", "r+", rdcc_nbytes=0) as file:
        frame = frames(file["x"])[0]
        for byte in range(0, len(frame), 5):
            damaged = frame[:byte] + bytes((frame[byte] ^ 4,)) + frame[byte + 1 :]
            file["x"].id.write_direct_chunk((0, 0), damaged)
            file["x"].id.refresh()
            with pytest.raises(OSError, match="read data"):
                file["x"][...]


def test_newer_format(victim: Victim) -> None:
    frame = bytearray(victim.frame)
    frame[4:7] = bytes((registry().format_version + 1, 2, 5))
    assert f"frame format {registry().format_version + 1} needs pyfilter >= 2.5" in victim.refused(bytes(frame))


@pytest.mark.parametrize("junk", [b"\0" * 300, b"GIF89a" * 50, b"\x89PYF", b"\x89"])
def test_other_bytes(victim: Victim, junk: bytes) -> None:
    assert victim.refused(junk)


Change = Callable[[bytes], bytes]
SEALED: list[tuple[str, Change]] = [
    ("its frame holds dtype 7, the dataset has 1", lambda frame: sealed(frame, 9, "B", 7)),
    (r"its frame holds dtype 1 \(big-endian\), the dataset has 1", lambda frame: sealed(frame, 10, "B", frame[10] | 2)),
    ("its frame holds 960 bytes of values, the dataset's chunks have 1024", lambda frame: sealed(frame, 56, "<Q", 15)),
    ("its frame holds 1088 bytes of values, the dataset's chunks have 1024", lambda frame: sealed(frame, 56, "<Q", 17)),
    ("corrupt", lambda frame: sealed(frame, 9, "B", 2)),
    ("corrupt", lambda frame: sealed(frame, 56, "<Q", 0)),
    ("corrupt", lambda frame: sealed(frame, 56, "<Q", 2**40)),
    (r"corrupt.*2\^61", lambda frame: sealed(frame, 56, "<Q", 2**61)),
    ("truncated chunk", lambda frame: sealed(frame, 16, "<Q", len(frame) + 4)),
    ("corrupt|truncated", lambda frame: sealed(frame, 16, "<Q", 2**63)),
]


@pytest.fixture
def tiled(tmp_path: Path, library: Library) -> Iterator[Victim]:
    """A lossless frame that is not stored raw."""
    values = np.repeat(np.arange(16, dtype="f4"), 16).reshape(CHUNK)
    with h5py.File(tmp_path / "a.h5", "w", rdcc_nbytes=0) as file:
        file.create_dataset("x", data=values, chunks=CHUNK, **compressed(lossless()))
        file.flush()
        victim = Victim(file, library)
        assert Header(victim.frame).codec == 2
        assert not victim.frame[10] & 1
        yield victim


@pytest.mark.parametrize(("text", "change"), SEALED)
def test_frames_of_another_dataset(tiled: Victim, text: str, change: Change) -> None:
    """With a right checksum: found by comparison with the dataset, before any memory is taken for the values."""
    refused = tiled.refused(change(tiled.frame))
    assert re.search(text, refused), refused


def test_frame_of_the_same_values_in_another_shape(tiled: Victim) -> None:
    """C order is C order: a flat frame of as many values is taken."""
    flat = sealed(sealed(tiled.frame, 56, "<Q", 1), 64, "<Q", CHUNK[0] * CHUNK[1])
    assert tiled.read(flat).tobytes() == tiled.values.tobytes()
