# SPDX-License-Identifier: BSD-3-Clause
"""Calls of the filter side by side, as HDF5 2.3 and later can make them when it reads chunks by several threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import pyfilter

from .filter_calls import DECODE, Chunk, FilterClass
from .support import field

CODECS: dict[str, pyfilter.Codec] = {
    "Cuszp2": pyfilter.Cuszp2(absolute=1e-3),
    "HierarchicalDelta": pyfilter.HierarchicalDelta(absolute=1e-3),
    "Lorenzo": pyfilter.Lorenzo(absolute=1e-3),
    "Adaptive": pyfilter.Adaptive(absolute=1e-3),
    "Progressive": pyfilter.Progressive(absolute=1e-3),
    "Lossless": pyfilter.Lossless(),
}
CHUNK, CHUNKS, WORKERS = (40, 50), 12, 8


class Caller:
    """Calls the plugin's filter function with memory of its own for each call."""

    def __init__(self, filter_class: FilterClass, words: tuple[int, ...]) -> None:
        self.filter_class, self.words = filter_class, words

    def __call__(self, flags: int, given: bytes) -> bytes | None:
        """Return what the filter makes of a buffer; None: it failed."""
        chunk = Chunk(given)
        return chunk.content if chunk.call(self.filter_class, flags, self.words) else None


@pytest.fixture(params=CODECS)
def chunks(request: pytest.FixtureRequest, filter_class: FilterClass, tmp_path: Path) -> Any:
    """Return the filter, and frames, original and decoded values of all chunks, as HDF5 has them."""
    values = field((CHUNK[0] * CHUNKS, CHUNK[1]))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=values, chunks=CHUNK, **CODECS[request.param])
    with h5py.File(tmp_path / "a.h5") as file:
        words = file["x"].id.get_create_plist().get_filter(0)[2]
        frames = [file["x"].id.read_direct_chunk((CHUNK[0] * i, 0))[1] for i in range(CHUNKS)]
        decoded = file["x"][...].reshape(CHUNKS, *CHUNK)
    return Caller(filter_class, words), frames, values.reshape(CHUNKS, *CHUNK), decoded


def test_chunks_are_decoded_and_encoded_side_by_side(chunks: Any) -> None:
    """Frames and values are those of calls one after the other; a damaged frame fails in its own call only."""
    call, frames, values, decoded = chunks

    def work(turn: int) -> None:
        i = turn % CHUNKS
        if turn % 5 == 4:
            damaged = bytearray(frames[i])
            damaged[20] ^= 0xFF  # in the header, whose checksum finds it
            assert call(DECODE, bytes(damaged)) is None
        assert call(DECODE, frames[i]) == decoded[i].tobytes()
        assert call(0, values[i].tobytes()) == frames[i]

    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(work, range(10 * CHUNKS)))


def test_chunks_are_written_in_part_side_by_side(chunks: Any) -> None:
    """Each thread decodes a chunk, writes a part and encodes it: all other values come back exactly."""
    call, frames, values, decoded = chunks
    bound = float(np.abs(values - decoded).max()) if np.any(values != decoded) else 0.0

    def work(i: int) -> None:
        frame = frames[i]
        expected = np.frombuffer(call(DECODE, frame), "f4").reshape(CHUNK).copy()
        for turn in range(5):
            part = np.s_[7 * turn : 7 * turn + 5, i : 20 + i]
            new = field(CHUNK, seed=100 + turn)[part]
            written = expected.copy()
            written[part] = new
            frame = call(0, written.tobytes())
            made = np.frombuffer(call(DECODE, frame), "f4").reshape(CHUNK)
            assert float(np.abs(made[part].astype("f8") - new).max()) <= (1e-3 if bound else 0)
            made = made.copy()
            expected[part] = made[part]
            assert np.array_equal(made, expected)

    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(work, range(CHUNKS)))
