# SPDX-License-Identifier: BSD-3-Clause
"""What our encoder made golden frames from; hand_made.py has the frames of other writers.

A case whose files are written must not change. Values: fields.py.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator
from pathlib import Path

import numpy as np

import pyfilter

from .adaptive_cases import adaptive_cases, parts_cases, update_cases
from .fields import TILE, lattice, missing, mixed_tiles, noise, signed, specials, spiky, swell, waves, with_bits
from .golden_case import GoldenCase
from .type_cases import bool_cases, bounded_half_cases, complex_cases, half_cases

FOLDER = Path(__file__).resolve().parent
DTYPES = ("f4", "f8", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")
SHAPES = {1: (130,), 2: (11, 19), 3: (5, 6, 9)}
PREDICTED = {"chain": (150,), "lorenzo2d": (13, 17), "lorenzo3d": (5, 6, 9), "columns": (70, 3)}

#: small chunks that have another predictor by the entropy of their residuals than by the widths of these; one that has
#: another by the entropy of magnitudes
CHOSEN_OTHERWISE = (
    *(f"lorenzo_f2_{what}" for what in ("big_endian", "pointwise")),
    *(f"adaptive_f2_{what}" for what in ("absolute", "big_endian", "pointwise")),
)
CHOSEN_BY_MAGNITUDE = "lorenzo_f8_lorenzo2d_rans"

#: cases whose frame our encoder no longer writes (it still decodes): the release since which, and why
ENCODED_DIFFERENTLY: dict[str, str] = {
    **dict.fromkeys(
        (
            *(f"progressive_f4_{what}" for what in ("rank1", "rank3", "rank4", "holes", "big_endian")),
            *(f"progressive_f8_{what}" for what in ("rank2", "rank3", "holes")),
        ),
        "0.1.0: fewer errors are measured, those of readers between them follow from the next one",
    ),
    **dict.fromkeys(
        (
            "particles_f8_3_runs",
            "particles_f8_3_runs_padded",
            *(f"adaptive_{what}" for what in ("f4_empty", "f8_empty", "f4_pointwise", "f2_specials", "f2_update")),
        ),
        "0.1.0: frames that are written as lorenzo have states of as many bits as they need",
    ),
    **dict.fromkeys(CHOSEN_OTHERWISE, "0.1.0: predictors of lorenzo are chosen by the entropy of residuals"),
    CHOSEN_BY_MAGNITUDE: "0.1.0: by the entropy of the magnitudes of residuals, and of all signs together",
}


def cuszp2_cases() -> Iterator[GoldenCase]:
    for dtype in ("f4", "f8"):
        name = f"cuszp2_{dtype}"
        kind = np.dtype(dtype).type
        for block_dims, shape in SHAPES.items():
            for mode in ("outlier", "plain", "fixed"):
                codec = pyfilter.Cuszp2(absolute=0.01, mode=mode, block_dims=block_dims)
                yield GoldenCase(f"{name}_{mode}_{block_dims}d", waves(shape, dtype), codec)
            holes = with_bits(waves(shape, dtype), specials(dtype))
            holes.reshape(-1)[60:100] = -999
            codec = pyfilter.Cuszp2(absolute=0.01, block_dims=block_dims)
            yield GoldenCase(f"{name}_specials_{block_dims}d", holes, codec, kind(-999))
        plain = waves((130,), dtype)
        for word, fill in (("nan", np.nan), ("tiny", np.finfo(dtype).smallest_subnormal), ("zero", 0.0)):
            filled = plain.copy()
            filled[20:70] = fill
            yield GoldenCase(f"{name}_fill_{word}", filled, pyfilter.Cuszp2(relative=1e-3), kind(fill))
        masked = plain.copy()
        masked[30:100] = kind(1e35)
        yield GoldenCase(f"{name}_undeclared_mask", masked, pyfilter.Cuszp2(absolute=0.01))
        yield GoldenCase(f"{name}_relative", plain, pyfilter.Cuszp2(relative=1e-4))
        yield GoldenCase(f"{name}_wide_outliers", plain + kind(12345.678), pyfilter.Cuszp2(absolute=0.003))
        yield GoldenCase(f"{name}_at_the_bound", lattice(dtype), pyfilter.Cuszp2(absolute=0.125))
        random_bits = np.array([v % (1 << 8 * int(dtype[1])) for v in noise(70)], f"u{dtype[1]}").view(dtype)
        yield GoldenCase(f"{name}_raw", random_bits, pyfilter.Cuszp2(absolute=1e-3))
        yield GoldenCase(f"{name}_falls_back", np.full(130, kind(2.5)), pyfilter.Cuszp2(absolute=1e-308))
        yield GoldenCase(f"{name}_scalar", np.array(kind(2.5)), pyfilter.Cuszp2(absolute=0.01))
        yield GoldenCase(f"{name}_empty", np.empty((3, 0, 2), dtype), pyfilter.Cuszp2(absolute=0.01, block_dims=2))
        yield GoldenCase(f"{name}_big_endian", plain.astype(f">{dtype}"), pyfilter.Cuszp2(absolute=0.01))
    deep = waves((2, 2, 5, 3, 5), "f4")
    for block_dims in (1, 2, 3):
        yield GoldenCase(f"cuszp2_f4_rank5_{block_dims}d", deep, pyfilter.Cuszp2(absolute=0.05, block_dims=block_dims))
    tiles = np.zeros(5 * TILE - 1000, np.float32)  # an empty tile, uniform ones, one of the fill value, a mixed one
    tiles[TILE : 2 * TILE] = np.arange(TILE) % 2
    tiles[2 * TILE : 3 * TILE] = -999
    tiles[3 * TILE : 4 * TILE] = 5.5
    tiles[4 * TILE :] = np.repeat(waves((31,), "f4"), 100)[:3096]
    yield GoldenCase("cuszp2_f4_tiles", tiles, pyfilter.Cuszp2(absolute=0.5), np.float32(-999))


def lossless_cases() -> Iterator[GoldenCase]:
    for dtype in DTYPES:
        for block_dims, shape in SHAPES.items():
            if block_dims == 1 or dtype in ("f4", "f8", "u1", "i2", "u4", "i8"):
                codec = pyfilter.Lossless(block_dims=block_dims)
                yield GoldenCase(f"lossless_{dtype}_{block_dims}d", waves(shape, dtype), codec)
    for dtype in ("f4", "f8"):
        values = with_bits(waves((130,), dtype), specials(dtype))
        yield GoldenCase(f"lossless_{dtype}_specials", values, pyfilter.Lossless())
    for dtype in ("i1", "u8"):
        random_bits = np.array([v % (1 << 8 * int(dtype[1])) for v in noise(70)], f"u{dtype[1]}").view(dtype)
        yield GoldenCase(f"lossless_{dtype}_raw", random_bits, pyfilter.Lossless())
        yield GoldenCase(f"lossless_{dtype}_empty", np.empty(0, dtype), pyfilter.Lossless())
        yield GoldenCase(f"lossless_{dtype}_scalar", np.array(77, dtype), pyfilter.Lossless())
    for dtype in ("f8", "u2", "i4"):
        yield GoldenCase(f"lossless_{dtype}_big_endian", waves((130,), dtype).astype(f">{dtype}"), pyfilter.Lossless())
    extremes = np.array([127, -128] * 40 + [0, -1] * 40, np.int8)
    yield GoldenCase("lossless_i1_extremes", extremes, pyfilter.Lossless())
    yield GoldenCase("lossless_i2_rank5", waves((2, 2, 5, 3, 5), "i2"), pyfilter.Lossless(block_dims=3))
    yield GoldenCase("lossless_u1_rank32", waves((1,) * 30 + (9, 11), "u1"), pyfilter.Lossless(block_dims=2))
    yield GoldenCase("lossless_u1_tiles", waves((19, 20, 23), "u1"), pyfilter.Lossless(block_dims=3))


def bins_cases() -> Iterator[GoldenCase]:
    """Lossless with bins: every dtype; multiples, decimals, few different values, f64 that are f32, special values."""
    ratio = pyfilter.Lossless(effort="ratio")
    drawn = np.array([v % 997 for v in noise(400)])
    for dtype in DTYPES:
        name = f"lossless_{dtype}_ratio"
        yield GoldenCase(name, waves((400,), dtype), ratio)
        different = np.array([v % (1 << 8 * int(dtype[1])) for v in noise(9)], f"u{dtype[1]}").view(dtype)
        yield GoldenCase(f"{name}_few_different", different[drawn % 9], ratio)
        if dtype[0] != "f" and dtype[1] != "1":
            yield GoldenCase(f"{name}_common_divisor", (drawn * 12 + 7).astype(dtype), ratio)
    for dtype in ("f4", "f8"):
        name, kind = f"lossless_{dtype}_ratio", np.dtype(dtype).type
        decimals = (drawn.astype(np.float64) / 100).astype(dtype)
        yield GoldenCase(f"{name}_decimals", decimals, ratio)
        yield GoldenCase(f"{name}_decimals_specials", with_bits(decimals, specials(dtype)), ratio)
        yield GoldenCase(f"{name}_quarters", drawn.astype(dtype) / kind(4), ratio)
        yield GoldenCase(f"{name}_specials", with_bits(waves((130,), dtype), specials(dtype)), ratio)
        yield GoldenCase(f"{name}_components", waves((150, 3), dtype), ratio)
        yield GoldenCase(f"{name}_plane", swell((17, 26), dtype), ratio)
        whole = np.round(9000 * swell((9, 26), "f8")) + drawn[:26] % 9
        unpacked = (whole * 0.0017351236 + 273.4178).astype(dtype)
        yield GoldenCase(f"{name}_unpacked", unpacked, ratio)
        yield GoldenCase(f"{name}_unpacked_specials", with_bits(unpacked, specials(dtype)), ratio)
        references = np.repeat([271.3071, 255.9137, 249.0019], 3)[:, None]
        yield GoldenCase(f"{name}_messages", (whole / 512 + references).astype(dtype), ratio)
    yield GoldenCase("lossless_f8_ratio_of_f4", swell((500,), "f4").astype("f8"), ratio)
    for dtype in ("f4", "i2"):
        random_bits = np.array([v % (1 << 8 * int(dtype[1])) for v in noise(70)], f"u{dtype[1]}").view(dtype)
        yield GoldenCase(f"lossless_{dtype}_ratio_raw", random_bits, ratio)
        yield GoldenCase(f"lossless_{dtype}_ratio_empty", np.empty((0, 3), dtype), ratio)
        yield GoldenCase(f"lossless_{dtype}_ratio_scalar", np.array(77, dtype), ratio)
        yield GoldenCase(f"lossless_{dtype}_ratio_constant", np.full(1000, 77, dtype), ratio)
        yield GoldenCase(f"lossless_{dtype}_ratio_big_endian", waves((400,), dtype).astype(f">{dtype}"), ratio)
    yield GoldenCase("lossless_i8_ratio_extremes", np.array([2**63 - 1, -(2**63)] * 40 + [0, -1] * 40, np.int64), ratio)
    yield GoldenCase("lossless_u1_ratio_volume", waves((9, 10, 21), "u1"), ratio)


def missing_cases(dtype: str) -> Iterator[GoldenCase]:
    """Masks that are predicted, plain ones, and lines and slabs without values; noise."""
    name, kind = f"hierarchical_delta_{dtype}", np.dtype(dtype).type
    shapes = {"chain": (300,), "lorenzo2d": (23, 21), "lorenzo3d": (9, 7, 9), "columns": (140, 3)}
    for predictor, shape in shapes.items():
        for how in ("bay", "points", "rare") if dtype == "f4" else ("bay",):
            values = waves(shape, dtype)
            values[missing(shape, how)] = -999
            codec = pyfilter.HierarchicalDelta(absolute=0.05, predictor=predictor, outliers="on")
            yield GoldenCase(f"{name}_{predictor}_missing_{how}", values, codec, kind(-999))
    white = np.array([v % 1021 - 510 for v in noise(300)], dtype)
    yield GoldenCase(f"{name}_auto_noise", white.copy(), pyfilter.HierarchicalDelta(absolute=0.5))
    white[100:150] = np.nan
    yield GoldenCase(f"{name}_auto_noise_nan", white, pyfilter.HierarchicalDelta(absolute=0.5), kind(np.nan))


def pointwise_cases(dtype: str) -> Iterator[GoldenCase]:
    """Bounds relative to each value: signs, zeros, special values, a tile of negative values."""
    name, kind = f"hierarchical_delta_{dtype}_pointwise", np.dtype(dtype).type
    for predictor, shape in PREDICTED.items():
        codec = pyfilter.HierarchicalDelta(pointwise_relative=0.01, predictor=predictor)
        values = with_bits(signed(shape, dtype, 5), specials(dtype))
        values.reshape(-1)[60:100] = -999
        yield GoldenCase(f"{name}_{predictor}_mixed", values, codec, kind(-999))
        yield GoldenCase(f"{name}_{predictor}_negative", signed(shape, dtype, 14), codec, kind(-999))
    dry = signed((400,), dtype, 0)
    dry[np.arange(400) // 50 % 2 == 0] = 0  # the sentinel
    yield GoldenCase(f"{name}_auto_zeros", dry, pyfilter.HierarchicalDelta(pointwise_relative=1e-3))


def delta_cases() -> Iterator[GoldenCase]:
    for dtype in ("f4", "f8"):
        name = f"hierarchical_delta_{dtype}"
        kind = np.dtype(dtype).type
        for predictor, shape in PREDICTED.items():
            for outliers in ("on", "off"):
                codec = pyfilter.HierarchicalDelta(absolute=0.01, predictor=predictor, outliers=outliers)
                yield GoldenCase(f"{name}_{predictor}_{outliers}", spiky(shape, dtype), codec)
            codec = pyfilter.HierarchicalDelta(absolute=0.01, predictor=predictor)
            holes = with_bits(waves(shape, dtype), specials(dtype))
            holes.reshape(-1)[60:140] = -999
            yield GoldenCase(f"{name}_{predictor}_specials", holes, codec, kind(-999))
            exact = pyfilter.HierarchicalDelta(absolute=1e-310, predictor=predictor)
            stairs = (np.arange(math.prod(shape)) // 40).astype(dtype).reshape(shape)
            yield GoldenCase(f"{name}_{predictor}_exact", stairs, exact)
        for word, shape in (("row", (130,)), ("plane", (13, 21)), ("volume", (5, 6, 9)), ("columns", (70, 3))):
            yield GoldenCase(f"{name}_auto_{word}", waves(shape, dtype), pyfilter.HierarchicalDelta(relative=1e-2))
        yield GoldenCase(f"{name}_at_the_bound", lattice(dtype), pyfilter.HierarchicalDelta(absolute=0.125))
        constant, empty = np.full((3, 5), kind(2.5)), np.empty((3, 0, 2), dtype)
        yield GoldenCase(f"{name}_constant", constant, pyfilter.HierarchicalDelta(absolute=0.01))
        yield GoldenCase(f"{name}_scalar", np.array(kind(2.5)), pyfilter.HierarchicalDelta(absolute=0.01))
        yield GoldenCase(f"{name}_empty", empty, pyfilter.HierarchicalDelta(absolute=0.01, predictor="lorenzo3d"))
        swapped = waves((70, 3), dtype).astype(f">{dtype}")
        yield GoldenCase(f"{name}_big_endian", swapped, pyfilter.HierarchicalDelta(absolute=0.01))
        random_bits = np.array([v % (1 << 8 * int(dtype[1])) for v in noise(70)], f"u{dtype[1]}").view(dtype)
        yield GoldenCase(f"{name}_raw", random_bits, pyfilter.HierarchicalDelta(absolute=1e-3))
        filled = waves((130,), dtype)
        filled[20:70] = np.nan
        yield GoldenCase(f"{name}_fill_nan", filled, pyfilter.HierarchicalDelta(relative=1e-3), kind(np.nan))
        yield from missing_cases(dtype)
        yield from pointwise_cases(dtype)
    tiles = np.concatenate((-np.abs(signed((TILE,), "f4", 0)), signed((300,), "f4", 0)))
    signs = pyfilter.HierarchicalDelta(pointwise_relative=0.25, predictor="chain")
    yield GoldenCase("hierarchical_delta_f4_pointwise_chain_tiles", tiles, signs)
    bumps = np.add.outer(np.arange(40) ** 2 % 97, np.arange(70) ** 2 % 89).astype(np.float32)
    planes = pyfilter.HierarchicalDelta(absolute=0.4, predictor="lorenzo2d")
    yield GoldenCase("hierarchical_delta_f4_lorenzo2d_bumps", bumps.reshape(2, 20, 70), planes)
    slope = np.add.outer(np.arange(9) * 3, np.add.outer(np.arange(17), np.arange(33) * 7)).astype(np.float32)
    volumes = pyfilter.HierarchicalDelta(absolute=0.4, predictor="lorenzo3d")
    yield GoldenCase("hierarchical_delta_f4_lorenzo3d_slope", slope, volumes)
    deep = waves((2, 2, 5, 3, 5), "f4")
    for predictor in PREDICTED:
        codec = pyfilter.HierarchicalDelta(absolute=0.05, predictor=predictor)
        yield GoldenCase(f"hierarchical_delta_f4_rank5_{predictor}", deep, codec)
    chain = pyfilter.HierarchicalDelta(absolute=0.5, predictor="chain", outliers="on")
    yield GoldenCase("hierarchical_delta_f4_tiles", mixed_tiles("f4"), chain, np.float32(-999))


def integer_cases() -> Iterator[GoldenCase]:
    """hierarchical_delta of integers: bounds of all sizes, fill values with what lies near them, the ends of types."""
    predictors = list(PREDICTED)
    for number, dtype in enumerate(DTYPES[2:]):
        name, info = f"hierarchical_delta_{dtype}", np.iinfo(dtype)
        predictor = predictors[number % 4]
        values = waves(PREDICTED[predictor], dtype)
        codec = pyfilter.HierarchicalDelta(absolute=2, predictor=predictor)
        yield GoldenCase(f"{name}_{predictor}", values, codec)
        exact = np.array([(int(info.max) - 9 + i // 20) % (1 << 8 * int(dtype[1])) for i in range(273)], f"u{dtype[1]}")
        exact = exact.view(dtype).reshape(13, 21)
        yield GoldenCase(f"{name}_exact", exact, pyfilter.HierarchicalDelta(absolute=0, predictor="lorenzo2d"))
        smooth = {"i8": "i4", "u1": "i1"}.get(dtype, dtype)  # waves of these two wrap around
        holes = np.abs(waves((3, 5, 15), smooth)).astype(dtype)
        holes[1:, 3:, 5:12] = 35
        holes[0, 0, :12:3] = 36  # would become the fill value
        codec = pyfilter.HierarchicalDelta(absolute=3, predictor="lorenzo3d" if info.bits > 16 else "auto")
        yield GoldenCase(f"{name}_fill", holes, codec, 35)
        ends = np.array([info.min, info.max, 0, info.min + 1, info.max - 1, 5], dtype)
        wide = pyfilter.HierarchicalDelta(absolute=int(info.max) // 5, predictor="chain")
        yield GoldenCase(f"{name}_ends", np.resize(ends, 50), wide)
    for dtype in ("u2", "i4", "u8"):
        swapped = waves((70, 3), dtype).astype(f">{dtype}")
        yield GoldenCase(f"hierarchical_delta_{dtype}_big_endian", swapped, pyfilter.HierarchicalDelta(relative=0.01))
    random_bits = np.array([v % 256 for v in noise(70)], np.uint8)
    yield GoldenCase("hierarchical_delta_u1_raw", random_bits, pyfilter.HierarchicalDelta(absolute=0))
    far = np.array([v % (1 << 64) for v in noise(40)], np.uint64)
    for power in (51, 52, 53, 60, 62):
        codec = pyfilter.HierarchicalDelta(absolute=1 << power, predictor="chain")
        yield GoldenCase(f"hierarchical_delta_u8_bound_2_{power}", far, codec)


#: large enough that tables of frequencies pay
STREAMED = {"chain": (2500,), "lorenzo2d": (45, 60), "lorenzo3d": (10, 15, 18), "columns": (900, 3)}


def lorenzo_cases() -> Iterator[GoldenCase]:
    for i, (predictor, shape) in enumerate(STREAMED.items()):
        dtype = ("f4", "f8")[i % 2]
        name, kind = f"lorenzo_{dtype}_{predictor}", np.dtype(dtype).type
        holes = with_bits(spiky(shape, dtype), specials(dtype))
        holes.reshape(-1)[60:140] = -999
        yield GoldenCase(f"{name}_rans", holes, pyfilter.Lorenzo(absolute=0.1, predictor=predictor), kind(-999))
        huffman = pyfilter.Lorenzo(absolute=0.02, predictor=predictor, coder="huffman", gap_array=i % 2 == 0)
        yield GoldenCase(f"{name}_huffman", spiky(shape, dtype), huffman)
    for dtype in ("f4", "f8"):
        empty = np.empty((3, 0, 2), dtype)
        yield GoldenCase(f"lorenzo_{dtype}_empty", empty, pyfilter.Lorenzo(absolute=0.01, predictor="lorenzo3d"))
        scalar = np.array(np.dtype(dtype).type(2.5))
        yield GoldenCase(f"lorenzo_{dtype}_scalar", scalar, pyfilter.Lorenzo(absolute=0.01))
    swapped = waves((800, 3), "f4").astype(">f4")
    yield GoldenCase("lorenzo_f4_auto_big_endian", swapped, pyfilter.Lorenzo(relative=1e-2))
    signs = pyfilter.Lorenzo(pointwise_relative=0.02, predictor="lorenzo2d")
    yield GoldenCase("lorenzo_f4_pointwise", with_bits(signed((40, 64), "f4", 5), specials("f4")), signs)
    sparse = np.zeros((5, 40, 40), np.float32)  # tiles without coded blocks, with a few, and with flags
    sparse[1, 3:6, 7:9] = 40
    sparse[3] = waves((40, 40), "f4")
    planes = pyfilter.Lorenzo(absolute=0.5, predictor="lorenzo2d")
    yield GoldenCase("lorenzo_f4_sparse_rans", sparse, planes)
    yield GoldenCase("lorenzo_f4_sparse_huffman", sparse, pyfilter.Lorenzo(absolute=0.5, coder="huffman"))
    far = waves((50, 50), "f8") * 2.0**40  # residuals of more than 32 bits
    yield GoldenCase("lorenzo_f8_wide", far, pyfilter.Lorenzo(absolute=0.5, predictor="chain"))


def particle_cases() -> Iterator[GoldenCase]:
    """Sorted already, so that rows stay where they are."""
    for dtype, axes, levels in (("f4", 3, 5), ("f8", 3, 9), ("f4", 2, 6), ("f8", 2, 8)):
        total = 1 << axes * levels
        step = 1 - 2.0 ** (-7 if dtype == "f4" else -12)  # of a bound of 0.5
        for name, count in (("runs", 90), ("gaps", 200)):
            some = total // 40 if name == "runs" else total
            keys = sorted({0, total - 1, *(v * 7919 % some for v in noise(count))} | {total // 2})
            keys = sorted(keys * (1 if name == "gaps" else 3))
            rows = [[key_bits(key >> axis, axes, levels) for axis in reversed(range(axes))] for key in keys]
            values = (np.array(rows, np.float64) * step).astype(dtype)
            yield GoldenCase(f"particles_{dtype}_{axes}_{name}", values, pyfilter.Particles(absolute=0.5))
            padded = np.concatenate(
                [values, with_bits(values[:1], {1: specials(dtype)[2]}), np.zeros((40, axes), dtype)]
            )
            codec = pyfilter.Particles(absolute=0.5, order="tile" if axes == 2 else "chunk")
            yield GoldenCase(f"particles_{dtype}_{axes}_{name}_padded", padded.astype(dtype), codec)


def key_bits(key: int, axes: int, levels: int) -> int:
    """Every `axes`-th bit of a key."""
    return sum((key >> axes * level & 1) << level for level in range(levels))


def progressive_cases() -> Iterator[GoldenCase]:
    """Grids of one to three dimensions and more, of several tiles, with missing values; whole and cut at a bound."""
    shapes = {"f4": ((4300,), (3, 17, 66), (2, 3, 7, 9)), "f8": ((34, 40), (6, 7, 8), ())}
    for dtype in ("f4", "f8"):
        name, kind = f"progressive_{dtype}", np.dtype(dtype).type
        for shape in shapes[dtype]:
            smooth = waves(shape, dtype) if shape else np.array(kind(2.5))
            yield GoldenCase(f"{name}_rank{len(shape)}", smooth, pyfilter.Progressive(absolute=0.01))
        near = waves((13, 20), dtype) / 7
        yield GoldenCase(f"{name}_near_lossless", near, pyfilter.Progressive(errors="bounds"))
        holes = with_bits(waves((3, 20, 21), dtype), specials(dtype))
        holes[1:, 10:, 3:20] = -999
        yield GoldenCase(f"{name}_holes", holes, pyfilter.Progressive(absolute=0.05), kind(-999))
        undeclared = waves((20, 23), dtype)
        undeclared[5:9] = 1e30
        yield GoldenCase(f"{name}_undeclared", undeclared, pyfilter.Progressive(relative=1e-3))
        yield GoldenCase(f"{name}_constant", np.full((20, 20), 273, dtype), pyfilter.Progressive())
        yield GoldenCase(f"{name}_empty", np.empty((3, 0, 2), dtype), pyfilter.Progressive(absolute=0.01))
    swapped = waves((30, 33), "f4").astype(">f4")
    yield GoldenCase("progressive_f4_big_endian", swapped, pyfilter.Progressive(psnr=80))


def again(of: Iterable[GoldenCase], names: Container[str], suffix: str) -> Iterator[GoldenCase]:
    """Those of ``names`` under a new name: their frames differ from the files of old."""
    for case in of:
        if case.name in names:
            yield GoldenCase(f"{case.name}_{suffix}", case.values, case.codec, case.fill)


def cases() -> list[GoldenCase]:
    """All of them."""
    return [
        *cuszp2_cases(), *lossless_cases(), *bins_cases(), *delta_cases(), *integer_cases(), *lorenzo_cases(),
        *again(lorenzo_cases(), {CHOSEN_BY_MAGNITUDE}, "by_magnitude"),
        *particle_cases(), *progressive_cases(), *again(progressive_cases(), ENCODED_DIFFERENTLY, "by_next"),
        *update_cases(), *adaptive_cases(), *parts_cases(), *complex_cases(), *bool_cases(), *half_cases(),
        *again(bounded_half_cases(waves((70,), "f4").astype("f2")), CHOSEN_OTHERWISE, "by_entropy"),
    ]  # fmt: skip
