# SPDX-License-Identifier: BSD-3-Clause
"""Golden cases of complex numbers, bool, halves and compound types."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

import pyfilter
from pyfilter.registry import registry

from .fields import Array, complex_waves, waves, with_bits
from .golden_case import GoldenCase, RecordCase


def complex_cases() -> Iterator[GoldenCase]:
    """Every codec that takes them, ranks, special parts, fill values of every kind, a chunk written in parts."""
    for dtype in ("c8", "c16"):
        plane, special = complex_waves((7, 17), dtype), complex_waves((70,), dtype)
        special[[3, 40, 41]] = complex(math.nan, 1), complex(-0.0, math.inf), complex(-math.inf, -0.0)
        codecs: dict[str, pyfilter.Codec] = {
            "cuszp2": pyfilter.Cuszp2(absolute=2.0**-6),
            "lossless": pyfilter.Lossless(),
            "lossless_ratio": pyfilter.Lossless(effort="ratio"),
            "hierarchical_delta": pyfilter.HierarchicalDelta(absolute=2.0**-6),
            "pointwise": pyfilter.HierarchicalDelta(pointwise_relative=2.0**-6),
            "lorenzo": pyfilter.Lorenzo(absolute=2.0**-6),
            "adaptive": pyfilter.Adaptive(absolute=2.0**-6),
        }
        for name, codec in codecs.items():
            values = complex_waves((24, 40), dtype) if name in ("lorenzo", "adaptive") else plane
            yield GoldenCase(f"{name}_{dtype}_plane", values, codec)
            yield GoldenCase(f"{name}_{dtype}_specials", special, codec)
        cuszp2 = codecs["cuszp2"]
        for rank, shape in {"scalar": (), "empty": (0, 3), "rank32": (1,) * 31 + (3,)}.items():
            yield GoldenCase(f"cuszp2_{dtype}_{rank}", complex_waves(shape, dtype), cuszp2)
        for kind, fill in {"real": -999.0, "both": -999.0 - 999.0j, "different": -999.0 + 7.0j}.items():
            values = plane.copy()
            values[3:5] = fill
            yield GoldenCase(f"cuszp2_{dtype}_fill_{kind}", values, cuszp2, fill)
        yield GoldenCase(f"cuszp2_{dtype}_big_endian", plane.astype(f">{dtype}"), cuszp2)
        before = plane.copy()
        before[0, 0] = 1000
        yield GoldenCase(f"cuszp2_{dtype}_update", plane, pyfilter.Cuszp2(relative=2.0**-8), before=before)


def bool_cases() -> Iterator[GoldenCase]:
    """Both efforts, ranks, bytes that are neither 0 nor 1."""
    for effort in ("fast", "ratio"):
        codec = pyfilter.Lossless(effort=effort)
        for name, shape in {"plane": (40, 60), "scalar": (), "empty": (0,), "row": (33,)}.items():
            yield GoldenCase(f"lossless_bool_{effort}_{name}", waves(shape, "u1") > 40, codec)
        odd = (np.arange(70, dtype="u1") // 9).view("?")
        yield GoldenCase(f"lossless_bool_{effort}_odd", odd, codec)


def half_cases() -> Iterator[GoldenCase]:
    """Both efforts, both byte orders, ranks, every kind of special value."""
    for effort in ("fast", "ratio"):
        codec = pyfilter.Lossless(effort=effort)
        for name, shape in {"plane": (20, 33), "scalar": (), "empty": (0,), "row": (33,)}.items():
            yield GoldenCase(f"lossless_f2_{effort}_{name}", waves(shape, "f4").astype("f2"), codec)
        yield GoldenCase(f"lossless_f2_{effort}_big_endian", waves((20, 33), "f4").astype(">f2"), codec)
        patterns = (0x7E00, 0x7E01, 0xFE00, 0x7D01, 0x7C00, 0xFC00, 0x8000, 1, 0x8001)
        special = with_bits(waves((70,), "f4").astype("f2"), dict(enumerate(patterns, 3)))
        yield GoldenCase(f"lossless_f2_{effort}_specials", special, codec)
    yield from bounded_half_cases(special)


def bounded_half_cases(special: Array) -> Iterator[GoldenCase]:
    """float16 with each kind of bound, a fill value, missing values, either byte order, and written in parts."""
    plane = waves((20, 33), "f4").astype("f2")
    holes = with_bits(plane, dict.fromkeys(range(50, 200), 0xE3CE))  # -999
    before = plane.copy()
    before[0, 0] = 40
    for name in ("cuszp2", "hierarchical_delta", "lorenzo", "adaptive"):
        codec = getattr(pyfilter, registry().codecs[name].class_name)
        large = waves((44, 45), "f4").astype("f2") if name == "lorenzo" else plane
        yield GoldenCase(f"{name}_f2_absolute", large, codec(absolute=0.0625))
        yield GoldenCase(f"{name}_f2_holes", holes, codec(absolute=0.0625), fill=-999)
        yield GoldenCase(f"{name}_f2_big_endian", plane.astype(">f2"), codec(relative=2.0**-6))
        yield GoldenCase(f"{name}_f2_specials", special, codec(absolute=1.0))
        yield GoldenCase(f"{name}_f2_update", plane, codec(relative=2.0**-6), before=before)
        if name != "cuszp2":
            yield GoldenCase(f"{name}_f2_pointwise", plane + np.float16(2), codec(pointwise_relative=2.0**-5))


def record_cases() -> list[RecordCase]:
    """Compound types: one with padding, both byte orders and all kinds of fields; one that was written in parts."""
    names = ["id", "x", "y", "t", "flag", "v", "c", "h", "s"]
    formats = ["<i8", "<f4", ">f4", "<f8", "u1", "(3,)<f4", "<c8", "<f2", "S5"]
    offsets = [3, 12, 16, 20, 28, 29, 41, 49, 51]
    values = np.zeros(13, np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": 57}))
    n = np.arange(13)
    values["id"], values["flag"], values["s"] = 1000 + n, n % 3, b"abc"
    for number, field in enumerate(("x", "y", "t", "h"), 1):
        values[field] = number * n * n / 32 - n
    values["v"] = values["x"][:, None] * np.array([1, -2, 0.5], "f4")
    values["c"].real, values["c"].imag = values["x"], values["y"]
    values["x"][5], values["y"][7] = np.nan, -np.inf
    fill = np.zeros((), values.dtype)
    fill["x"], fill["y"] = -999, -999
    values["x"][10:12] = -999
    bounds = {
        "x": pyfilter.Cuszp2(absolute=0.25),
        "y": pyfilter.HierarchicalDelta(relative=2.0**-8),
        "v": pyfilter.Lorenzo(absolute=0.125),
        "c": pyfilter.Cuszp2(absolute=0.5),
    }
    before = np.zeros(40, [("y", ">f4"), ("n", "<i2")])
    before["y"], before["n"] = np.arange(40) ** 2 / 32, 7
    after = before.copy()
    after["y"][30:] = 3
    relative = pyfilter.Compound({"y": pyfilter.HierarchicalDelta(relative=2.0**-8)})
    return [
        RecordCase("records_padded", values, pyfilter.Compound(bounds), fill),
        RecordCase("records_update", after, relative, None, before),
    ]
