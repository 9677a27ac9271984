# SPDX-License-Identifier: BSD-3-Clause
"""The filter's memory of decoded chunks (filter/decoded_chunks.cpp) where it is full, or HDF5 has freed the values.

The filter is called as HDF5 calls it. Each value must be within its bound, whatever is remembered.
"""

from __future__ import annotations

import numpy as np
import pytest
from reference.library import Library

from .filter_calls import DECODE, Chunk, FilterClass
from .support import Array, field, stored, words

BOUND, RELATIVE, HIERARCHICAL_DELTA = 1e-3, 2, 3


def settings(shape: tuple[int, ...]) -> tuple[int, ...]:
    return stored(words(BOUND, RELATIVE, HIERARCHICAL_DELTA), "f4", shape)


def decoded(filter_class: FilterClass, values: Array) -> Chunk:
    chunk = Chunk(values.tobytes())
    assert chunk.call(filter_class, 0, settings(values.shape)) > 0
    assert chunk.call(filter_class, DECODE, settings(values.shape)) == values.nbytes
    return chunk


def error_of(library: Library, filter_class: FilterClass, chunk: Chunk, values: Array) -> float:
    """The largest error of a chunk that is encoded, in its bound."""
    assert chunk.call(filter_class, 0, settings(values.shape)) > 0
    back = np.frombuffer(library.decode(chunk.content, values.nbytes), "f4").reshape(values.shape)
    return float(np.max(np.abs(back.astype("f8") - values)) / (BOUND * np.ptp(values.astype("f8"))))


def test_more_chunks_than_are_remembered(library: Library, filter_class: FilterClass) -> None:
    """Of chunks that are cached 16,384 are remembered, and 1,024 that are no longer."""
    values = field((8,))
    first = Chunk(values.tobytes())
    assert first.call(filter_class, 0, settings(values.shape)) > 0
    frame, chunks = first.content, []
    for _ in range(17_600):
        chunks.append(Chunk(frame))
        assert chunks[-1].call(filter_class, DECODE, settings(values.shape)) == values.nbytes
    for number in (0, 1_300, 17_599):
        last = np.frombuffer(chunks[number].content, "f4").copy()
        assert error_of(library, filter_class, chunks[number], last) <= 1


@pytest.mark.parametrize("changed", [False, True])
def test_values_that_are_freed(library: Library, filter_class: FilterClass, changed: bool) -> None:
    """Memory of 1 MiB goes back to the system when it is freed, so that it cannot be read any more."""
    values = field((512, 512))
    first = decoded(filter_class, values)
    held = np.frombuffer(first.content, "f4").reshape(values.shape).copy()
    del first
    held[0] += np.float32(0.25 if changed else 0)
    assert error_of(library, filter_class, Chunk(held.tobytes()), held) <= 1


def test_chunks_that_differ_behind_their_middle(library: Library, filter_class: FilterClass) -> None:
    """A probe of the middle is the same, the rest is not."""
    values = field((512, 512))
    kept = decoded(filter_class, values)
    other = np.frombuffer(kept.content, "f4").reshape(values.shape).copy()
    other[-1] += np.float32(0.25)
    assert error_of(library, filter_class, Chunk(other.tobytes()), other) <= 1


def test_no_values(filter_class: FilterClass) -> None:
    """Words that HDF5 never passes on."""
    chunk = Chunk(b"abc")
    assert filter_class.filter(0, 3, None, 3, None, None) == 3
    assert chunk.content == b"abc"
