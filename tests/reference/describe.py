# SPDX-License-Identifier: BSD-3-Clause
"""What the blocks of a frame are made of: rate codes, bytes and codes, by the parsers of decoder.py.

For tests that look at how a frame is encoded, and for people who want to know: `python -m reference.describe FILE`
(from tests/) prints the blocks of a frame.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import decoder


class Blocks(NamedTuple):
    """One element for each block of a frame."""

    rates: NDArray[np.int64]  # rate codes
    special: NDArray[np.bool_]  # codes 247 to 255: sentinels, NaNs, verbatim values
    payload_bytes: NDArray[np.int64]  # rate byte, descriptor, outlier bytes and words; without padding of the tile
    codes: NDArray[Any]  # q[block, i] of section 5, signed; of no use at special positions


def describe(frame: bytes) -> Blocks:
    """Take a tiled frame of at least one block apart."""
    header = decoder.parse_header(frame)
    decoder.require(not header.raw and not header.packed, "a frame that is raw or of packed tiles has no such blocks")
    tile = decoder.parse_tiles(frame, header)
    if tile is None:
        raise ValueError("a frame of no values has no blocks")
    words = np.frombuffer(frame, "<u4").astype(np.uint32)
    z = decoder.residuals(words, tile.plane_starts, tile.planes, header)
    codes = decoder.codes_of_residuals(z, tile.outliers, tile.planes, header)
    halves = decoder.values_per_block(header) // 32
    with_masks = tile.masks > 0
    block_words = tile.plane_starts - tile.word_starts + halves * tile.planes
    return Blocks(
        rates=tile.codes,
        special=tile.codes >= decoder.SENTINEL_BLOCK,
        payload_bytes=1 + 2 * with_masks + decoder.OUTLIER_BYTES[tile.inner] + 4 * block_words,
        codes=codes.view(f"i{codes.dtype.itemsize}"),
    )


def main(path: str) -> None:
    """Print a line for each block."""
    for i, (rate, special, size, codes) in enumerate(zip(*describe(Path(path).read_bytes()), strict=True)):
        print(f"{i:6} rate {rate:3} {'special' if special else '':7} {size:4} bytes, codes {codes[:8].tolist()}...")


if __name__ == "__main__":
    main(sys.argv[1])
