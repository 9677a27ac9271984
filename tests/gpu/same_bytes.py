# SPDX-License-Identifier: BSD-3-Clause
"""Every frame of the GPU is that of the CPU, byte for byte, and decodes to the same bits, there and back.

Run on a machine with a GPU: ``python tests/gpu/same_bytes.py [--data FOLDER] [--quick]``. Prints a line for each group
of cases; ends with status 1 where one differs. With ``--sanitize`` only small cases, for compute-sanitizer.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import lzma
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from contract import fields
from hypothesis import given, settings

import pyfilter
from gpu import adaptive_cases, derived_cases, device, lorenzo_cases, lossless_cases, particle_cases, progressive_cases
from gpu.damaged_frames import damaged
from gpu.group import Group, check_batch, compare_parts
from pyfilter import frames
from pyfilter._lib import host
from pyfilter.registry import registry

Array = NDArray[Any]
ROOT = Path(__file__).resolve().parents[2]
BOUNDS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-6)
ONLY: str | None = None  # a codec's name
SANITIZED_EVERY = 29  # of particles, progressive and damaged frames; prime, so that of every choice some are taken


def float_codecs(rank: int, **bound: Any) -> Iterator[pyfilter.Codec]:
    """Return the codecs of a case; only those that were asked for."""
    return (codec for codec in all_codecs(rank, **bound) if ONLY in (None, type(codec).__name__))


def all_codecs(rank: int, **bound: Any) -> Iterator[pyfilter.Codec]:
    for mode, block_dims in itertools.product(fields.MODES, range(1, min(3, max(1, rank)) + 1)):
        if "pointwise_relative" not in bound:
            yield pyfilter.Cuszp2(mode=mode, block_dims=block_dims, **bound)
    yield pyfilter.HierarchicalDelta(predictor="chain", outliers="on", **bound)
    for predictor, needs in (
        ("auto", 0),
        ("fast", 0),
        ("chain", 0),
        ("lorenzo2d", 2),
        ("lorenzo3d", 3),
        ("columns", 2),
    ):
        if rank >= needs:
            yield pyfilter.HierarchicalDelta(predictor=predictor, **bound)
        if rank >= needs and predictor != "fast":
            yield pyfilter.Lorenzo(predictor=predictor, **bound)
    yield pyfilter.Lorenzo(coder="huffman", **bound)
    yield pyfilter.Lorenzo(coder="huffman", gap_array=False, **bound)
    if "pointwise_relative" not in bound:
        yield pyfilter.Progressive(**bound)


def load(path: Path) -> Array:
    if path.suffix == ".xz":
        with lzma.open(path) as file:
            unpacked: Array = np.lib.format.read_array(file)
            return unpacked
    loaded: Array = np.load(path)
    return loaded


def real_fields(folder: Path) -> Iterator[Group]:
    for path in sorted([*folder.glob("*.npy"), *folder.glob("*.npy.xz")]):
        values = np.ascontiguousarray(load(path))
        group = Group(path.name.removesuffix(".xz").removesuffix(".npy"))
        for block_dims in range(1, min(3, values.ndim) + 1):
            group.check(values, pyfilter.Lossless(block_dims=block_dims))
        if values.dtype.kind == "f":
            flat = np.abs(values[np.isfinite(values) & (np.abs(values) < 1e19)])
            scale = float(flat.max()) if flat.size else 1.0
            for bound in BOUNDS:
                for codec in float_codecs(values.ndim, relative=bound):
                    group.check(values, codec)
                for codec in float_codecs(values.ndim, absolute=bound * (scale or 1.0)):
                    group.check(values, codec, fill=values.reshape(-1)[0])
                for codec in float_codecs(values.ndim, pointwise_relative=bound):
                    group.check(values, codec)
        yield group


def sizes(quick: bool) -> Iterator[Group]:
    rng = np.random.default_rng(5)
    wanted = [*range(0, 130), *fields.SIZES, *(4096 * k + d for k in (1, 2, 5, 24) for d in (-33, -1, 0, 1, 32))]
    wanted += rng.integers(130, 100001, 40 if quick else 300).tolist()
    for code in ("f4", "f8"):
        group = Group(f"sizes 0 to 100000, {code}")
        for size in wanted:
            values = np.cumsum(rng.normal(size=size)).astype(code)
            for codec in float_codecs(1, absolute=1e-2):
                group.check(values, codec, ranges=1)
        yield group
    group = Group("sizes, Lossless, ten dtypes")
    for name in fields.BASE_DTYPES:
        dtype = np.dtype(registry().dtypes[name].numpy)
        for size in wanted[:: 6 if quick else 2]:
            walk = np.cumsum(rng.normal(size=size) * 3)
            values = walk.astype(dtype) if dtype.kind == "f" else np.int64(walk).astype(dtype)
            group.check(values, pyfilter.Lossless(), ranges=1)
    yield group
    group = Group("shapes of rank 0 to 5")
    for rank, shapes in fields.SHAPES.items():
        for shape, code in itertools.product(shapes, ("f4", "f8", "i2", "u1")):
            values = (100 * rng.normal(size=shape)).astype(code)
            for block_dims in range(1, min(3, max(1, rank)) + 1):
                group.check(values, pyfilter.Lossless(block_dims=block_dims))
            if values.dtype.kind == "f":
                for codec in float_codecs(rank, absolute=0.5):
                    group.check(values, codec)
    yield group


def missing(quick: bool) -> Iterator[Group]:
    """Masks of every kind in tiles of every shape, with bounds of every kind."""
    rng = np.random.default_rng(9)
    group = Group("missing values, signs and zeros")
    for shape, code in itertools.product(((9, 70, 130), (70, 130), (9000, 3), (9000,)), ("f4", "f8")):
        smooth = 100 * np.sin(np.arange(np.prod(shape)) / 300).reshape(shape) + rng.normal(size=shape)
        coast = np.cumsum(rng.normal(size=shape), axis=0) > 1
        noise = rng.random(shape) < 0.3
        runs = np.repeat(rng.random(-(-smooth.size // 200)) < 0.5, 200)[: smooth.size].reshape(shape)
        for mask in (coast, noise, runs, runs | noise):
            for missing_value, other in itertools.product((np.nan, 1e20, 0.0), ((), (np.inf,), (np.nan, -0.0, 0.0))):
                values = np.where(mask, missing_value, smooth).astype(code)
                places = rng.integers(0, values.size, values.size // 50)
                values.reshape(-1)[places] = rng.choice([*other, 3.0], places.size)
                for sign, kind in itertools.product((1, -1), ("absolute", "pointwise_relative")):
                    for codec in list(float_codecs(len(shape), **{kind: 0.01}))[:: 2 if quick else 1]:
                        group.check((sign * values).astype(code), codec, fill=missing_value if missing_value else None)
            if quick:
                break
    yield group


def random_cases(count: int) -> Iterator[Group]:
    kinds: dict[str, dict[str, Any]] = {
        "blocks": {"predictors": None},
        "packed tiles": fields.drawn(pyfilter.HierarchicalDelta),
        "streams": fields.drawn(pyfilter.Lorenzo),
    }
    of_codec = {"Cuszp2": "blocks", "HierarchicalDelta": "packed tiles", "Lorenzo": "streams"}
    for code, kind in itertools.product(("f4", "f8"), ("absolute", "relative", "pointwise_relative")):
        dtype = np.dtype(code)
        for name in kinds:
            if (name == "blocks" and kind == "pointwise_relative") or of_codec.get(ONLY or "", name) != name:
                continue
            group = Group(f"random {name}, {dtype}, {kind}")

            @settings(parent=fields.hunt(1), max_examples=count)
            @given(fields.float_cases(dtype, "relative" if kind[0] == "p" else kind, **kinds[name]))
            def hunt(case: fields.Case) -> None:
                codec = case.codec
                if kind[0] == "p" and isinstance(codec, pyfilter.HierarchicalDelta | pyfilter.Lorenzo):  # noqa: B023
                    fraction = min(0.5, max(1e-9, codec.bound[1]))
                    codec = dataclasses.replace(codec, relative=None, pointwise_relative=fraction)
                group.check(case.values, codec, case.fill)  # noqa: B023  (called before the next round)

            hunt()
            yield group


def particles(quick: bool, every: int) -> Iterator[Group]:
    """Positions in every order."""
    for dtype, axes in itertools.product(("f4", "f8"), (2, 3)):
        group = Group(f"particles, {dtype}, {axes} axes")
        chosen = itertools.islice(particle_cases.cases(quick, dtype, axes), 0, None, every)
        for i, (values, codec, fill) in enumerate(chosen):
            group.check(values, codec, fill, copies=3 if i % 20 == 0 else 1)
            if i % 4 in (1, 2):  # sorted in tiles, through the chunk
                request = frames.make_request(codec, values.dtype, values.shape, fill)
                if not np.array_equal(device.particle_order(request, values), host.particle_order(request, values)):
                    group.bad.append(f"{values.dtype} {values.shape} {codec!r} fill={fill!r}: another order")
        yield group
    group = Group("particles, batches of different chunks")
    rng = np.random.default_rng(12)
    for dtype, axes, count in itertools.product(("f4", "f8"), (2, 3), (700, 9000)):
        kinds = list(itertools.islice(itertools.cycle(particle_cases.KINDS), 150 // every))
        chunks = particle_cases.chunks(dtype, axes, count, kinds, 6, rng)
        for order, bound in itertools.product(particle_cases.ORDERS, ({"absolute": 0.01}, {"relative": 1e-3})):
            check_batch(group, chunks, pyfilter.Particles(order=order, **bound))
    yield group
    if every == 1:
        yield from moved_particles(("f4",) if quick else ("f4", "f8"), rng)


def moved_particles(dtypes: tuple[str, ...], rng: np.random.Generator) -> Iterator[Group]:
    """Batches of several groups of chunks: tiles of one go to their frames while those of a later one are encoded."""
    group = Group("particles, batches of several groups")
    for dtype, axes in itertools.product(dtypes, (2, 3)):
        kinds = list(itertools.islice(itertools.cycle(particle_cases.KINDS), 33))
        chunks = particle_cases.chunks(dtype, axes, 632_003, kinds, 5, rng)  # of 155 tiles; groups have 1536 or more
        for order, bound in itertools.product(particle_cases.ORDERS, ({"absolute": 0.01}, {"relative": 1e-3})):
            check_batch(group, chunks, pyfilter.Particles(order=order, **bound))
    yield group


def progressive(quick: bool, every: int) -> Iterator[Group]:
    """Whole frames, parts of them, and batches of different chunks."""
    for dtype in ("f4", "f8"):
        group = Group(f"progressive, {dtype}")
        chosen = itertools.islice(progressive_cases.cases(quick, dtype), 0, None, every)
        for i, (values, codec, fill) in enumerate(chosen):
            group.check(values, codec, fill, copies=3 if i % 10 == 0 else 1)
            if i % 4 == 0:
                compare_parts(group, pyfilter.encode(values, codec, fill_value=fill))
        yield group
    group = Group("progressive, batches of different chunks")
    rng = np.random.default_rng(16)
    for dtype, codec in itertools.product(("f4", "f8"), progressive_cases.codecs()):
        kinds = [progressive_cases.KINDS[i % 6] for i in range(6 if every > 1 else 30)]  # without a fill value
        check_batch(group, [progressive_cases.make(kind, (30, 40, 50), dtype, rng)[0] for kind in kinds], codec)
    yield group
    group = Group("progressive, blocks that march through lines")
    pairs = 25 if every <= SANITIZED_EVERY else 3
    for dtype, count in (("f4", 20_000_003), ("f8", 9_999_999)):
        if every == 1:
            group.check(progressive_cases.make("smooth", (count,), dtype, rng)[0], pyfilter.Progressive(), ranges=0)
        lines = [progressive_cases.make(kind, (96_001,), dtype, rng)[0] for kind in ("smooth", "noise") * pairs]
        check_batch(group, lines, pyfilter.Progressive(absolute=0.01))
    yield group


def adaptive(quick: bool, every: int) -> Iterator[Group]:
    """Tiles of every kind and size, masks, stored values, passes that refine, batches."""
    rng = np.random.default_rng(21)
    shapes: list[tuple[int, ...]] = [(1,), (70,), (2100,), (40000,), (3000, 3), (2, 9), (40, 300), (33, 1100)]
    shapes += [(5, 6, 8), (6, 32, 20), (33, 34, 70), (3, 40, 65), (70, 33, 9), (4, 5, 20, 30), (2, 3, 4, 9, 10)]
    for dtype in ("f4", "f8"):
        group = Group(f"adaptive, {dtype}")
        kinds = itertools.product(
            shapes, ("smooth", "rough", "missing", "stored"), ("auto", "regression", "interpolation")
        )
        for i, (shape, kind, predictor) in enumerate(itertools.islice(kinds, 0, None, every)):
            values = rng.standard_normal(shape) * 0.3
            if kind != "rough":
                values = np.cumsum(values, axis=-1) + np.cumsum(rng.standard_normal(shape), axis=0)
            if kind == "missing":
                values[np.cumsum(rng.standard_normal(shape), axis=-1) > 2] = np.nan
                values.reshape(-1)[rng.integers(0, values.size, 1 + values.size // 30)] = np.nan
            if kind == "stored":
                values.reshape(-1)[rng.integers(0, values.size, 1 + values.size // 90)] *= 3000
                values[rng.random(shape) < 0.01] = 0
            bound = (0.3, 0.03, 1e-3)[i % 3]
            codec = pyfilter.Adaptive(absolute=bound, predictor=predictor, effort=("fast", "best")[i % 2])
            group.check(values.astype(dtype), codec, np.nan if kind == "missing" else None, 3 if i % 5 == 0 else 1)
        yield group
    yield adaptive_cases.written(600 // every)
    yield adaptive_cases.parts(every)
    if every == 1 and not quick:
        group = Group("adaptive, many units")
        for shape in ((150, 260, 200), (3000, 1500), (2_000_003,)):
            values = np.cumsum(rng.standard_normal(shape), axis=-1).astype(np.float32)
            for predictor, bound in itertools.product(("regression", "interpolation"), (0.01, 1.0)):
                group.check(values, pyfilter.Adaptive(absolute=bound, predictor=predictor))
        yield group


def derived(quick: bool, every: int) -> Iterator[Group]:
    """Complex numbers, bool and floats of 16 bits, in batches of chunks that are encoded in different ways."""
    rng = np.random.default_rng(23)
    for dtype in derived_cases.dtypes():
        group = Group(f"derived types, {dtype}")
        for i, (values, codec, fill) in enumerate(itertools.islice(derived_cases.cases(dtype), 0, None, every)):
            if ONLY in (None, "Derived", type(codec).__name__):
                group.check(values, codec, fill, copies=7 if i % 5 == 0 else 1)
                if codec.is_lossless:
                    group.check(values, pyfilter.Lossless(effort="ratio"), copies=3 if i % 5 == 0 else 1)
        chunks = [derived_cases.make(kind, (3000,), dtype, 1.5, rng) for kind in derived_cases.KINDS * 2]
        for codec in derived_cases.codecs(dtype):
            if ONLY in (None, "Derived", type(codec).__name__):
                check_batch(group, chunks, codec)
        if not quick:
            values = derived_cases.make("smooth", (3_000_001,), dtype, None, rng)
            for codec in derived_cases.codecs(dtype):
                group.check(values, codec, ranges=1)
        yield group


def large(quick: bool) -> Iterator[Group]:
    rng = np.random.default_rng(6)
    group = Group("large, no multiple of anything")
    for dtype, count in (("f4", 300_000_007), ("f8", 134_217_729 + 999)):
        if quick:
            count //= 16
        values = np.sin(np.arange(count, dtype=np.float64) * 1e-4).astype(dtype)
        values += (1e-4 * rng.standard_normal(1 << 20)).astype(dtype)[np.arange(count) & (1 << 20) - 1]
        group.check(values, pyfilter.Cuszp2(relative=1e-3), ranges=1)
        group.check(values, pyfilter.Lossless(), ranges=1)
        group.check(values, pyfilter.Lorenzo(relative=1e-3), ranges=1)
        group.check(values, pyfilter.Lorenzo(relative=1e-4, coder="huffman"), ranges=1)
        if not quick:
            cube = values[: 997 * 313 * 401].reshape(997, 313, 401)
            for block_dims in (2, 3):
                group.check(cube, pyfilter.Cuszp2(absolute=1e-3, block_dims=block_dims), ranges=1)
    yield group


def batches(quick: bool) -> Iterator[Group]:
    rng = np.random.default_rng(7)
    group = Group("batches of chunks in one launch")
    for copies, shape in ((3000, (16, 32, 32)), (257, (1000,)), (40000, (33,)), (100, (64, 64, 64)), (5, (0,))):
        copies = max(2, copies // 8) if quick else copies
        values = np.cumsum(rng.normal(size=shape), axis=-1).astype(np.float32)
        for codec in (*float_codecs(len(shape), relative=1e-3), *float_codecs(len(shape), pointwise_relative=1e-3)):
            group.check(values, codec, copies=copies, ranges=0)
        group.check(values, pyfilter.Lossless(), copies=copies, ranges=0)
    yield group
    group = Group("batches of different chunks")
    for dtype in (np.float32, np.float64):
        chunks = []
        for i in range(600):
            scale = 10.0 ** rng.integers(-3, 8)
            values = fields.family(fields.FAMILIES[i % len(fields.FAMILIES)], 5000, np.dtype(dtype), rng, scale, 0.01)
            chunks.append(fields.sprinkle(values, None, ("none", "few", "runs")[i % 3], rng))
        bounds: list[dict[str, Any]] = [{"absolute": 0.01}, {"relative": 1e-3}, {"pointwise_relative": 0.01}]
        for codec in (*(codec for bound in bounds for codec in float_codecs(1, **bound)), pyfilter.Lossless()):
            check_batch(group, chunks, codec)
    yield group


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--quick", action="store_true", help="fewer and smaller cases")
    parser.add_argument("--sanitize", action="store_true", help="a few small cases of every kind")
    parser.add_argument("--every", type=int, default=SANITIZED_EVERY, help="of how many cases --sanitize takes one")
    parser.add_argument("--codec", help="only this one, as Lorenzo, LosslessRatio or Derived (types)")
    parser.add_argument("--damaged", choices=("with", "without", "only"), default="with", help="damaged frames")
    options = parser.parse_args()
    globals()["ONLY"] = options.codec
    quick = options.quick or options.sanitize
    every = options.every if options.sanitize else 1
    gridded = ONLY not in ("Particles", "Progressive", "Adaptive", "Derived", "LosslessRatio")
    groups: list[Iterator[Group]] = [] if options.damaged == "without" else [damaged(quick, every)]
    if options.damaged != "only":
        if gridded:
            groups.insert(0, random_cases(435 // every if options.sanitize else 150 if quick else 1000))
        if ONLY in (None, "Particles"):
            groups.append(particles(quick, every))
        if ONLY in (None, "Progressive"):
            groups.append(progressive(quick, every))
        if ONLY in (None, "Derived") or gridded:
            groups.append(derived(quick, max(1, every // 4)))
        if ONLY in (None, "Adaptive"):
            groups.append(adaptive(quick, max(1, every // 4)))
        if ONLY in (None, "LosslessRatio"):
            groups.append(lossless_cases.binned(quick, max(1, every // 4)))
        if ONLY in (None, "Lorenzo"):
            groups.append(lorenzo_cases.residuals())
        if not options.sanitize and gridded:
            groups += [missing(quick), sizes(quick), batches(quick), lorenzo_cases.narrow(quick), large(quick)]
        if not options.sanitize and options.data.is_dir():
            groups.append(real_fields(options.data))
    good = [group.report() for group in itertools.chain.from_iterable(groups)]
    print(f"{sum(good)} of {len(good)} groups identical on CPU and GPU")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
