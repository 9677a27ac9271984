# SPDX-License-Identifier: BSD-3-Clause
"""Streams: the reference decoder and the reference writer agree. No library is needed.

Refusals are in test_reference.py, with those of the other codecs.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from . import encoder, huffman_writer, stream_writer
from .decoder import decode, parse_header
from .header import TILE_SHAPES
from .streams import level, neighbours, raw_bits, smallest


@pytest.mark.parametrize("coders", [(1, 1, 2, 3), (encoder.SHORT_STATES,)], ids=["first", "short states"])
@pytest.mark.parametrize("seed", range(16))
def test_random_frames(seed: int, coders: tuple[int, ...]) -> None:
    spec, frame, wanted = stream_writer.random_frame(random.Random(seed), coders)
    array = decode(frame)
    assert array.shape == spec.dims
    assert array.dtype == np.dtype(spec.dtype)
    found = array.reshape(-1).view(f"u{spec.value_bytes}")
    differ = [i for i, (a, b) in enumerate(zip(found.tolist(), wanted, strict=True)) if a != b]
    assert differ == [], (spec, differ[:10])
    header = parse_header(frame)
    assert (header.bound, header.step, header.sentinel) == (spec.bound, spec.step, spec.sentinel or 0)
    assert (header.tile_shape, header.order, header.group_log2) == (spec.tile_shape, spec.order, spec.group_log2)


def test_symbols() -> None:
    """Section 8.5, restated: symbols and raw bits number all residuals, in order."""
    for residual in [*range(3000), *(2**n + d for n in range(12, 64) for d in (-1, 0, 1, 2 ** (n - 2))), 2**64 - 1]:
        symbol, raw = huffman_writer.symbol_of(residual)
        assert raw == raw_bits(symbol)
        assert smallest(symbol) <= residual < smallest(symbol) + (1 << raw)
    assert huffman_writer.symbol_of(2**32 - 1)[0] == 127
    assert huffman_writer.symbol_of(2**64 - 1)[0] == 255
    wanted = {0: 0, 1: 1, 2: 3, 3: 4, 4: 5, 5: 5, 6: 6, 7: 6, 8: 7, 12: 8, 1 << 24: 49}
    assert {total: level(total) for total in wanted} == wanted


@pytest.mark.parametrize("shape", TILE_SHAPES)
def test_neighbours(shape: int) -> None:
    """Both come before, and are next to the position or to each other."""
    _, edge_y, edge_x = TILE_SHAPES[shape].block
    for i in range(1, 32):
        first, second = neighbours(shape, i)
        assert 0 <= second < i
        assert 0 <= first < i
        assert first != second or i == 1
        assert i - first in (1, edge_x, edge_x * edge_y)
