# SPDX-License-Identifier: BSD-3-Clause
"""Reference decoder: what blocks in tiles (decoder.py) and packed tiles (packed.py) share: sections 4.2, 4.5, 6."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .header import Header, require, tile_count, values_per_block

Array = NDArray[Any]
Words = NDArray[np.uint32]
Ints = NDArray[np.int64]


# ---- 4.2 Directory --------------------------------------------------------------------------------------------------


def parse_directory(
    frame: bytes, header: Header, start: int | None = None, entries: int | None = None
) -> tuple[Ints, NDArray[np.bool_]]:
    """Offsets of the tiles (one more than tiles, in words from the end of the directory) and which are uniform.

    Of lorenzo frames (8.1) those of groups, from ``start`` on. ``frame`` ends where the last tile does.
    """
    start = header.header_bytes if start is None else start
    entries = tile_count(header) if entries is None else entries
    require(start + 4 * (entries + 1) <= len(frame), "no room for the directory")
    raw = np.frombuffer(frame, "<u4", entries + 1, start)
    offsets, uniform = (raw & 0x7FFFFFFF).astype(np.int64), raw >> 31 == 1
    require(not uniform[-1], "last word of the directory has bit 31")
    require(offsets[0] == 0, f"directory begins at {offsets[0]}")
    require(bool((np.diff(offsets) >= 0).all()), "directory decreases")
    total = start + 4 * raw.size + 4 * int(offsets[-1])
    require(len(frame) == total, f"{len(frame)} bytes, by the directory {total}")
    return offsets, uniform[:-1]


# ---- 4.5 Words of a block -------------------------------------------------------------------------------------------


def unpack_mask(words: Words) -> NDArray[np.bool_]:
    """Bit i of the words -> element i; also the bits of any number of planes at once."""
    bits: NDArray[np.bool_] = words[..., None] >> np.arange(32, dtype=np.uint32) & 1 == 1
    return bits


def residuals(words: Words, plane_starts: Ints, planes: Ints, header: Header) -> Array:
    """The bit planes of all blocks -> `z[block, i]`."""
    halves = values_per_block(header) // 32
    z = np.zeros((planes.size, halves, 32), f"<u{header.code_bits // 8}")
    for count in np.unique(planes[planes > 0]):
        (some,) = np.nonzero(planes == count)
        at = plane_starts[some, None] + np.arange(halves * count)
        bits = np.unpackbits(words[at].astype("<u4").view(np.uint8), bitorder="little")
        digits = bits.reshape(some.size, halves, count, 32).swapaxes(2, 3)  # of each residual, the lowest first
        packed = np.packbits(digits, axis=3, bitorder="little")
        whole = np.zeros((*packed.shape[:3], z.dtype.itemsize), np.uint8)
        whole[..., : packed.shape[3]] = packed
        z[some] = whole.view(z.dtype)[..., 0]
    return z.reshape(planes.size, 32 * halves)


def quiet_nan(header: Header) -> int:
    """The NaN of NaN masks."""
    return 0x7FC00000 if header.dtype.itemsize == 4 else 0x7FF8000000000000


def special_values(words: Words, start: int, mask: int, count: int, values: Array, header: Header) -> None:
    """Put the sentinels, NaNs and verbatim values of one special block into its `values` (bit patterns)."""
    mask_words = values.size // 32
    found = {}
    for bit in (1, 2, 4):
        if mask & bit:
            found[bit] = unpack_mask(words[start : start + mask_words]).reshape(-1)
            start += mask_words
    for bit, pattern in ((1, header.sentinel), (2, quiet_nan(header))):
        if bit in found:
            values[found[bit]] = pattern
    if 4 in found:
        chosen = found[4]
        require(int(chosen.sum()) == count, f"verbatim count {count}, mask has {chosen.sum()}")
        values[chosen] = verbatim_values(words, start, count, header)
    else:
        require(count == 0, f"verbatim count {count} without a mask")


def verbatim_words(count: Any, header: Header) -> Any:
    """Words of so many verbatim values of a block."""
    return -(-count * header.dtype.itemsize // 4)


def verbatim_values(words: Words, start: int, count: int, header: Header) -> Array:
    """Their bit patterns; what is left of the last word must be zero."""
    stored: Array = words[start : start + verbatim_words(count, header)].view(f"<u{header.dtype.itemsize}")
    require(not stored[count:].any(), "padding of verbatim values is not zero")
    return stored[:count]


# ---- 5. From residuals to codes -------------------------------------------------------------------------------------


def unzigzag(z: Array) -> Array:
    """Step 2; unsigned NumPy arithmetic is modulo 2^W."""
    one = z.dtype.type(1)
    d: Array = (z >> one) ^ (z.dtype.type(0) - (z & one))
    return d


# ---- 6. From codes to values ----------------------------------------------------------------------------------------

POWER = [float.fromhex(text) for text in (
    "0x1p+0", "0x1.62e42fefa39efp-1", "0x1.ebfbdff82c598p-3", "0x1.c6b08d704a0c2p-5", "0x1.3b2ab6fba1ddap-7",
    "0x1.5d87fe78a5276p-10", "0x1.430913096fd9fp-13", "0x1.ffcbfc670dcd4p-17", "0x1.62bfd47773353p-20",
    "0x1.b524fae627834p-24", "0x1.e6063f7217bc6p-28", "0x1.e9d3fe3952179p-32",
)]  # fmt: skip


def magnitudes(q: Array, header: Header) -> Array:
    """Codes of a frame whose bound is relative to each value -> bit patterns."""
    k, m = np.int64(0x4338000000000000), 6755399441055744.0
    with np.errstate(all="ignore"):
        n = (q.view(f"<i{q.dtype.itemsize}").astype(np.int64) + k).view(np.float64) - m
        y = np.clip(n * header.step, -1100.0, 1100.0)
        t = y + m
        f = y - (t - m)
        p = np.full(f.shape, POWER[11])
        for c in POWER[10::-1]:
            p = p * f + c
        u = t.view(np.int64) - k + 2200
        u[np.isnan(n)] = 2200
        h = u >> 1
        x = p * np.ldexp(1.0, h - 1100) * np.ldexp(1.0, u - h - 1100)
        found: Array = x.astype(header.dtype.newbyteorder("=")).view(q.dtype)
    return found


def values_of_codes(q: Array, header: Header) -> Array:
    """`q[block, i]` -> bit patterns of the values, unsigned and as wide as the data."""
    if header.exact:
        if header.dtype.kind == "f":
            top = q.dtype.type(header.code_bits - 1)
            return np.asarray(np.where(q >> top == 0, q, q ^ ((q.dtype.type(1) << top) - q.dtype.type(1))))
        return q.astype(f"<u{header.dtype.itemsize}")  # the low bits
    if header.pointwise:
        return magnitudes(q, header)
    if header.dtype.kind != "f":
        limits, step = np.iinfo(header.dtype), int(header.step)
        signed = q.view(f"<i{q.dtype.itemsize}")
        below, above = signed < -(-limits.min // step), signed > limits.max // step  # products out of range
        product = (q * q.dtype.type(step)).astype(f"<u{header.dtype.itemsize}")
        found: Array = product.view(header.dtype.newbyteorder("="))
        found[below], found[above] = limits.min, limits.max
        return found.view(product.dtype)
    k, m = (0x4B400000, 12582912.0) if header.code_bits == 32 else (0x4338000000000000, 6755399441055744.0)
    t: Array = (q + q.dtype.type(k)).view(header.dtype)
    with np.errstate(all="ignore"):
        t = (t - t.dtype.type(m)) * t.dtype.type(header.step)
    return t.view(q.dtype)
