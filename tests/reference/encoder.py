# SPDX-License-Identifier: BSD-3-Clause
"""Writer of frames in plain Python: any choice that docs/format.md allows, also those that our encoder never makes.

It is slow and shares no code with decoder.py, so that the two can check each other; section numbers are those of the
page. What is to be written is said block by block (`Block`); `write_frame` makes the bytes, `frame_values` says what a
decoder has to make of them. `lossless_blocks` and `random_frame` choose blocks for an array and at random.
"""

from __future__ import annotations

import math
import random
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction

DTYPE_CODES = {"f4": 1, "f8": 2, "i1": 3, "u1": 4, "i2": 5, "u2": 6, "i4": 7, "u4": 8, "i8": 9, "u8": 10}
CODECS = {
    "cuszp2": 1,
    "lossless": 2,
    "hierarchical_delta": 3,
    "lorenzo": 4,
    "particles": 5,
    "progressive": 6,
    "adaptive": 7,
}
VERSIONS = {
    "cuszp2": 1,
    "lossless": 1,
    "hierarchical_delta": 2,
    "lorenzo": 3,
    "particles": 4,
    "progressive": 5,
    "adaptive": 7,
}
MODES = {"outlier": 0, "plain": 1, "fixed": 2}
SHORT_STATES = 4  # the coder of lorenzo's rans streams since format 10


@dataclass(frozen=True, kw_only=True)
class Spec:
    """What the header says (section 2)."""

    codec: str = "cuszp2"
    dtype: str = "f4"
    dims: tuple[int, ...] = ()
    mode: str = "outlier"
    block_dims: int = 1
    bins: bool = False  # lossless: the form of section 15
    tile_shape: int = 1  # hierarchical_delta and lorenzo, as the next two
    outliers: int = 1  # lorenzo: the coder
    order: int = 1
    group_log2: int = 0  # lorenzo; adaptive: of units
    axes: int = 0  # adaptive
    sorting: int = 0  # particles
    errors: int = 1  # progressive
    bound: float = 0.0
    step: float = 0.0
    sentinel: int | None = None
    pointwise: bool = False  # hierarchical_delta, lorenzo
    raw: bool = False
    big_endian: bool = False

    @property
    def value_bytes(self) -> int:
        return int(self.dtype[1])

    @property
    def code_bits(self) -> int:
        return 64 if self.value_bytes == 8 else 32

    @property
    def values_per_block(self) -> int:
        return 32 if self.packed or self.block_dims == 1 else 64

    @property
    def packed(self) -> bool:
        return self.codec in ("hierarchical_delta", "lorenzo")

    @property
    def exact(self) -> bool:
        return self.codec == "lossless" or self.step == 0

    @property
    def version(self) -> int:
        """Of the format."""
        if self.codec == "lorenzo" and self.outliers == SHORT_STATES:
            return 10
        if self.codec == "adaptive" and self.axes == 2:
            return 11
        return 7 if self.bins else VERSIONS[self.codec]

    @property
    def parameters(self) -> bytes:
        if self.bins:
            return b"\1"
        if self.codec == "particles":
            return bytes((self.sorting,))
        if self.codec == "progressive":
            return bytes((self.errors,))
        if self.codec == "adaptive":
            return bytes((1, self.axes, self.group_log2))
        mode = MODES[self.mode] if self.codec == "cuszp2" else 0
        packed = (self.tile_shape, self.outliers, self.order, self.group_log2)
        return bytes(packed if self.packed else (mode, self.block_dims))

    @property
    def summed(self) -> bool:
        return self.codec == "lossless" or self.mode != "fixed"


@dataclass(frozen=True, kw_only=True)
class Block:
    """One block: planes of codes, with or without masks; or all sentinel; or verbatim."""

    codes: list[int] = field(default_factory=list)  # q of section 5, B of them
    planes: int | None = None  # P; None: as few as possible after the outlier bytes
    outlier_bytes: int = 0  # E
    outlier_excess: int = 0  # added to e * 2^P in units of 2^W, where it makes no difference
    sentinel_mask: int | None = None
    nan_mask: int | None = None
    verbatim: dict[int, int] | None = None  # position -> bit pattern
    all_sentinel: bool = False
    all_verbatim: list[int] | None = None  # bit patterns

    @property
    def masks(self) -> int:
        given = (self.sentinel_mask, self.nan_mask, self.verbatim)
        return sum(1 << bit for bit, mask in enumerate(given) if mask is not None)


# ---- 2. Header ------------------------------------------------------------------------------------------------------


def write_header(spec: Spec, payload_bytes: int) -> bytes:
    """Section 2."""
    rank = len(spec.dims)
    flags = spec.raw | spec.big_endian << 1 | (spec.sentinel is not None) << 2 | spec.pointwise << 3
    start = bytes((0x89, 0x50, 0x59, 0x46, spec.version, 0, 1, 7 + rank))
    start += bytes((CODECS[spec.codec], DTYPE_CODES[spec.dtype], flags, rank))
    rest = struct.pack("<Qdd", 56 + 8 * rank + payload_bytes, spec.bound, spec.step)
    rest += struct.pack("<Q8s", spec.sentinel or 0, spec.parameters) + struct.pack(f"<{rank}Q", *spec.dims)
    return start + struct.pack("<I", zlib.crc32(start + bytes(4) + rest)) + rest


# ---- 4.1 Blocks of a shape ------------------------------------------------------------------------------------------


def positions(spec: Spec) -> Iterator[list[int | None]]:
    """For each block the flat indices of its values, None for padding."""
    if spec.block_dims == 1:
        count = math.prod(spec.dims)
        for first in range(0, count, 32):
            yield [i if i < count else None for i in range(first, first + 32)]
        return
    edge = 8 if spec.block_dims == 2 else 4
    *others, nz, ny, nx = (1, *spec.dims) if spec.block_dims == 2 else spec.dims
    if spec.block_dims == 2:
        others, nz = [*others, nz], 1
    depth = 1 if spec.block_dims == 2 else 4
    if math.prod(spec.dims) == 0:
        return
    for p in range(math.prod(others)):
        for z0 in range(0, nz, depth):
            for y0 in range(0, ny, edge):
                for x0 in range(0, nx, edge):
                    yield [
                        ((p * nz + z) * ny + y) * nx + x if z < nz and y < ny and x < nx else None
                        for z in range(z0, z0 + depth)
                        for y in range(y0, y0 + edge)
                        for x in range(x0, x0 + edge)
                    ]


# ---- 4.4 Rate codes, 4.5 words of a block ---------------------------------------------------------------------------


def rate_codes(planes: int, outlier_bytes: int) -> list[int]:
    """All rate codes that mean this P and E."""
    found = []
    for code in range(247):
        if code < 200:
            meaning = (code // 8, (0, 1, 2, 3, 4, 5, 6, 8)[code % 8])
        elif code < 214:
            meaning = (25 + (code - 200) // 2, code % 2)
        else:
            meaning = (code - 182, 0)
        if meaning == (planes, outlier_bytes):
            found.append(code)
    return found


def residuals(codes: list[int], spec: Spec) -> list[int]:
    """Codes -> differences -> zigzag: section 5 backwards."""
    d = list(codes)
    if spec.summed:
        strides = {1: [(1, 32)], 2: [(8, 8), (1, 8)], 3: [(16, 4), (4, 4), (1, 4)]}[spec.block_dims]
        for stride, length in strides:
            d = [d[i] - (d[i - stride] if i // stride % length else 0) for i in range(len(d))]
    modulus = 1 << spec.code_bits
    half = modulus >> 1
    signed = [(x + half) % modulus - half for x in d]
    return [2 * x if x >= 0 else -2 * x - 1 for x in signed]


def plane_words(z: list[int], planes: int) -> bytes:
    """Section 4.5: the bit planes of 32 values, then those of the next 32."""
    words = b""
    for first in range(0, len(z), 32):
        for p in range(planes):
            words += struct.pack("<I", sum((z[first + i] >> p & 1) << i for i in range(32)))
    return words


def write_block(block: Block, spec: Spec) -> tuple[int, bytes, bytes, bytes]:
    """Rate code, descriptor, outlier bytes, words."""
    size, pattern = spec.values_per_block, {4: "<I", 8: "<Q"}.get(spec.value_bytes, "")
    if block.all_sentinel:
        return 247, b"", b"", b""
    if block.all_verbatim is not None:
        return 255, b"", b"", b"".join(struct.pack(pattern, bits) for bits in block.all_verbatim)
    z = residuals(block.codes, spec)
    if (planes := block.planes) is None:
        planes = max(v.bit_length() for v in (z[1:] if block.outlier_bytes else z))
    if max(z[1:]) >> planes or z[0] >> planes >= 1 << 8 * block.outlier_bytes:
        raise ValueError(f"{planes} planes and {block.outlier_bytes} outlier bytes do not hold {z}")
    code = rate_codes(planes, block.outlier_bytes)[0]
    outlier = (z[0] >> planes) + (block.outlier_excess << spec.code_bits - planes)
    outliers = outlier.to_bytes(block.outlier_bytes, "little")
    words = plane_words(z, planes)
    if block.masks == 0:
        return code, b"", outliers, words
    before = b""
    chosen = block.verbatim
    for mask in (block.sentinel_mask, block.nan_mask, None if chosen is None else sum(1 << i for i in chosen)):
        before += b"" if mask is None else mask.to_bytes(size // 8, "little")
    before += b"".join(struct.pack(pattern, chosen[i]) for i in sorted(chosen or {}) if chosen is not None)
    return 247 + block.masks, bytes((code, len(chosen or {}))), outliers, before + words


# ---- 4.3 Tile, 4.2 directory, 1. whole frame ------------------------------------------------------------------------


def write_tile(blocks: list[Block], spec: Spec, uniform: str = "no") -> bytes:
    """Section 4.3. `uniform`: "no"; "yes": one rate code for all; "empty": no bytes at all, every code is 0."""
    rates, descriptors, outliers, words = zip(*(write_block(block, spec) for block in blocks), strict=True)
    if uniform != "no" and (len(set(rates)) > 1 or 248 <= rates[0] <= 254):
        raise ValueError(f"rate codes {rates} in a uniform tile")
    if uniform == "empty":
        if rates[0] != 0:
            raise ValueError(f"rate code {rates[0]} in an empty tile")
        return b""
    front = bytes(rates if uniform == "no" else rates[:1]) + b"".join(descriptors) + b"".join(outliers)
    return front + bytes(-len(front) % 4) + b"".join(words)


def largest_tile(spec: Spec) -> int:
    """Section 4.3: no tile may have more bytes."""
    return 4096 * spec.value_bytes + 1412


def write_frame(spec: Spec, blocks: list[Block], uniform: list[str] | None = None) -> bytes:
    """A tiled frame; `uniform` has one word of `write_tile` for each tile."""
    per_tile = 4096 // spec.values_per_block
    if len(blocks) != sum(1 for _ in positions(spec)):
        raise ValueError(f"{len(blocks)} blocks for dims {spec.dims}")
    groups = [blocks[i : i + per_tile] for i in range(0, len(blocks), per_tile)]
    uniform = uniform or ["no"] * len(groups)
    tiles = [write_tile(group, spec, how) for group, how in zip(groups, uniform, strict=True)]
    directory, offset = b"", 0
    for tile, how in zip(tiles, uniform, strict=True):
        directory += struct.pack("<I", offset | (how != "no") << 31)
        offset += len(tile) // 4
    payload = directory + struct.pack("<I", offset) + b"".join(tiles)
    return write_header(spec, len(payload)) + payload


def write_raw(spec: Spec, values: list[int]) -> bytes:
    """Section 3; the values as bit patterns."""
    payload = b"".join(value.to_bytes(spec.value_bytes, "little") for value in values)
    return write_header(spec, len(payload)) + payload


# ---- 6. What a decoder has to make of it ----------------------------------------------------------------------------


def code_value(q: int, spec: Spec) -> int | None:
    """Section 6 for one code, in exact arithmetic and rounded as IEEE says -> bit pattern; None: some NaN."""
    width = spec.code_bits
    q %= 1 << width
    if spec.exact:
        if spec.dtype[0] == "f" and q >> (width - 1):
            q ^= (1 << (width - 1)) - 1
        return q % (1 << 8 * spec.value_bytes)
    if spec.dtype[0] != "f":
        signed, bits = spec.dtype[0] == "i", 8 * spec.value_bytes
        lowest, highest = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
        product = (q - (q >> width - 1 << width)) * int(spec.step)
        return min(max(product, lowest), highest) % (1 << bits)
    k, m, form = (0x4B400000, 12582912, "<f") if width == 32 else (0x4338000000000000, 6755399441055744, "<d")
    t = struct.unpack(form, ((q + k) % (1 << width)).to_bytes(width // 8, "little"))[0]
    difference = t if not math.isfinite(t) else round_to(Fraction(t) - m, width)
    if math.isnan(difference) or (math.isinf(difference) and spec.step == 0):
        return None
    if math.isinf(difference):
        return int.from_bytes(struct.pack(form, difference), "little")
    value = math.copysign(round_to(Fraction(difference) * Fraction(spec.step), width), difference)
    return int.from_bytes(struct.pack(form, value), "little")


def is_finite(q: int, spec: Spec) -> bool:
    """Whether t of section 6 is."""
    if spec.code_bits == 32:
        return (q + 0x4B400000) >> 23 & 0xFF != 0xFF
    return (q + 0x4338000000000000) >> 52 & 0x7FF != 0x7FF


def round_to(exact: Fraction, width: int) -> float:
    """To the nearest binary32 or binary64, ties to even, subnormals kept; beyond the largest: infinity."""
    precision, low, high = (24, -149, 128) if width == 32 else (53, -1074, 1024)
    if exact == 0:
        return 0.0
    size = abs(exact)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > size  # now 2^exponent <= size < 2^(exponent + 1)
    unit = Fraction(2) ** max(exponent - precision + 1, low)
    rounded = round(exact / unit) * unit  # round() of a Fraction is to even
    if abs(rounded) >= Fraction(2) ** high:
        return -math.inf if exact < 0 else math.inf
    return float(rounded)


def block_values(block: Block, spec: Spec) -> list[int | None]:
    """Bit patterns of the values of a block, padding included."""
    if block.all_sentinel:
        return [spec.sentinel] * spec.values_per_block
    if block.all_verbatim is not None:
        return list(block.all_verbatim)
    values = [code_value(q, spec) for q in block.codes]
    nan = 0x7FC00000 if spec.value_bytes == 4 else 0x7FF8000000000000
    for i in range(len(values)):
        if (block.sentinel_mask or 0) >> i & 1:
            values[i] = spec.sentinel
        if (block.nan_mask or 0) >> i & 1:
            values[i] = nan
        if i in (block.verbatim or {}):
            values[i] = (block.verbatim or {})[i]
    return values


def frame_values(spec: Spec, blocks: list[Block]) -> list[int | None]:
    """Bit patterns of all values of a frame, flat."""
    values: list[int | None] = [0] * math.prod(spec.dims)
    for block, where in zip(blocks, positions(spec), strict=True):
        for bits, i in zip(block_values(block, spec), where, strict=True):
            if i is not None:
                values[i] = bits
    return values


# ---- Choices --------------------------------------------------------------------------------------------------------


def lossless_blocks(spec: Spec, values: list[int]) -> list[Block]:
    """Blocks of a lossless frame of these bit patterns; padding repeats the first value of its block."""
    width, top = 8 * spec.value_bytes, 1 << (8 * spec.value_bytes - 1)
    blocks = []
    for where in positions(spec):
        patterns = [values[(where[0] if i is None else i) or 0] for i in where]
        if spec.dtype[0] == "f":
            patterns = [bits ^ (top - 1) if bits >> (width - 1) else bits for bits in patterns]
        blocks.append(Block(codes=patterns))
    return blocks


def random_block(spec: Spec, rng: random.Random, smooth: bool) -> Block:
    """A block of any kind that the frame allows; some are far from what an encoder would choose."""
    size, lossy = spec.values_per_block, spec.codec == "cuszp2"
    if lossy and spec.sentinel is not None and rng.random() < 0.1:
        return Block(all_sentinel=True)
    if lossy and rng.random() < 0.1:
        return Block(all_verbatim=[rng.getrandbits(8 * spec.value_bytes) for _ in range(size)])
    outlier_bytes = rng.choice((0, 0, 1, 2, 3, 4, 5, 6, 8))
    limit = spec.code_bits if outlier_bytes == 0 else 31 if outlier_bytes == 1 else 24
    planes = rng.randint(0, min(limit, 8 if smooth else limit))
    first_bits = min(planes + 8 * outlier_bytes, 20 if smooth else spec.code_bits)
    block = plane_block(spec, rng, planes, outlier_bytes, max(planes, first_bits))
    if 8 * outlier_bytes + planes > spec.code_bits and rng.random() < 0.5:
        block = replace(block, outlier_excess=rng.getrandbits(8 * outlier_bytes + planes - spec.code_bits))
    if lossy and rng.random() < 0.3:
        masks = [rng.getrandbits(size) & rng.getrandbits(size) for _ in range(3)]
        if spec.sentinel is not None and rng.random() < 0.5:
            block = replace(block, sentinel_mask=masks[0])
        if rng.random() < 0.5:
            block = replace(block, nan_mask=masks[1])
        if rng.random() < 0.5:
            chosen = [i for i in range(size) if masks[2] >> i & 1]
            block = replace(block, verbatim={i: rng.getrandbits(8 * spec.value_bytes) for i in chosen})
    return block


def plane_block(spec: Spec, rng: random.Random, planes: int, outlier_bytes: int, first_bits: int) -> Block:
    """Random residuals of this many bits (any P is then as likely as any other), the first one of `first_bits`."""
    while True:
        z = [rng.getrandbits(planes) for _ in range(spec.values_per_block)]
        z[0] = rng.getrandbits(first_bits)
        codes = codes_of(z, spec)
        if spec.codec == "lossless" or all(is_finite(q, spec) for q in codes):  # no NaN of unknown bits
            return Block(codes=codes, planes=planes, outlier_bytes=outlier_bytes)


def codes_of(z: list[int], spec: Spec) -> list[int]:
    """Section 5 forwards, by its formulas: sums over everything before in each direction of the block."""
    modulus = 1 << spec.code_bits
    d = [v >> 1 if v % 2 == 0 else -(v >> 1) - 1 for v in z]
    if not spec.summed:
        return [x % modulus for x in d]
    edge = {1: 32, 2: 8, 3: 4}[spec.block_dims]
    axes = [[i // edge**a % edge for a in range(spec.block_dims)] for i in range(len(d))]
    return [sum(x for x, at in zip(d, axes, strict=True) if all(map(int.__le__, at, here))) % modulus for here in axes]


def random_spec(rng: random.Random) -> Spec:
    """Any codec, dtype, shape and parameters."""
    codec = rng.choice(("cuszp2", "cuszp2", "lossless"))
    dtype = rng.choice(("f4", "f8") if codec == "cuszp2" else tuple(DTYPE_CODES))
    rank = rng.choice((0, 1, 1, 2, 2, 3, 3, 4, 5))
    dims = tuple(rng.choice((1, 2, 3, 5, 7, 8, 9, 12, 17)) for _ in range(rank))
    if rank == 1:
        dims = (rng.randint(0, 9000),)
    elif math.prod(dims) > 9000:
        dims = (*(min(d, 3) for d in dims[:-2]), *dims[-2:])
    spec = Spec(codec=codec, dtype=dtype, dims=dims, block_dims=rng.randint(1, min(3, max(rank, 1))))
    if rng.random() < 0.5 and codec == "cuszp2":
        spec = replace(spec, sentinel=rng.getrandbits(8 * spec.value_bytes))
    if codec == "cuszp2":
        bound = rng.choice((2.0**-10, 0.01, 1.0, 1e-30))
        step = struct.unpack("<f", struct.pack("<f", 2 * bound))[0] if dtype == "f4" else 2 * bound
        spec = replace(spec, bound=bound, step=step, mode=rng.choice(tuple(MODES)))
    return replace(spec, big_endian=rng.random() < 0.3)


def random_frame(rng: random.Random) -> tuple[Spec, bytes, list[Block]]:
    """A valid frame of any kind, with uniform and empty tiles among its tiles."""
    spec = random_spec(rng)
    bits, zeros = 8 * spec.value_bytes, [0] * spec.values_per_block
    if rng.random() < 0.05:
        spec = replace(spec, raw=True, bound=0.0, step=0.0, sentinel=None)
        blocks = [Block(all_verbatim=[rng.getrandbits(bits) for _ in zeros]) for _ in positions(spec)]
        return spec, write_raw(spec, [v or 0 for v in frame_values(spec, blocks)]), blocks
    count, per_tile = sum(1 for _ in positions(spec)), 4096 // spec.values_per_block
    blocks = []
    uniform = []
    for first in range(0, count, per_tile):
        k = min(per_tile, count - first)
        kinds = ["mixed", "mixed", "mixed", "planes", "zero", "empty"]
        kinds += ["verbatim"] if spec.codec == "cuszp2" else []
        kind = rng.choice([*kinds, "sentinel"] if spec.sentinel is not None else kinds)
        if kind == "mixed":
            blocks += [random_block(spec, rng, rng.random() < 0.7) for _ in range(k)]
        elif kind == "sentinel":
            blocks += [Block(all_sentinel=True)] * k
        elif kind == "verbatim":
            blocks += [Block(all_verbatim=[rng.getrandbits(bits) for _ in zeros]) for _ in range(k)]
        elif kind == "planes":
            planes = rng.randint(1, spec.code_bits)
            extra = rng.choice((0, 1)) if planes < 32 else 0
            first_bits = min(planes + 8 * extra, spec.code_bits)
            blocks += [plane_block(spec, rng, planes, extra, first_bits) for _ in range(k)]
        else:
            blocks += [Block(codes=zeros)] * k
        uniform.append({"mixed": "no", "empty": "empty"}.get(kind, "yes"))
        if len(write_tile(blocks[first:], spec, uniform[-1])) > largest_tile(spec):
            blocks[first:], uniform[-1] = [Block(codes=zeros)] * k, "yes"
    return spec, write_frame(spec, blocks, uniform), blocks
