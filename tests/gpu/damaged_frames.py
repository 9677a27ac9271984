# SPDX-License-Identifier: BSD-3-Clause
"""Frames that are damaged or made by an adversary: what the CPU refuses the GPU refuses, and what it takes is the same.

Run by same_bytes.py; tests/simt/damaged.py compares frames of its own.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from contract import fields
from numpy.typing import NDArray
from reference import bins_writer, hostile, particles_writer

import pyfilter
from gpu import device, lossless_cases, particle_cases, progressive_cases
from gpu.group import Group
from pyfilter import dtypes

Array = NDArray[Any]


def outcome(decode: Callable[[], bytes]) -> bytes | None:
    try:
        return decode()
    except pyfilter.errors.FrameError:
        return None


def compare_frame(group: Group, frame: bytes, what: str, any_nan: bool = False) -> bool:
    """Decode a frame on both sides; whether the CPU refuses it. Some frames are left out."""
    group.cases += 1
    group.bytes += len(frame)
    try:
        info = pyfilter.frame_info(frame)
    except pyfilter.PyfilterError:
        return True
    of_integers = info.codec == "hierarchical_delta" and info.dtype.kind in "iu"
    without_kernels = of_integers or dtypes.code_of(info.dtype) is None
    if info.value_bytes > 1 << 24 or without_kernels:
        return False

    def bits(values: Array) -> bytes:  # made codes may give NaNs: some NaN (docs/format.md, section 6)
        return (np.where(np.isnan(values), np.array(np.nan, info.dtype), values) if any_nan else values).tobytes()

    on_cpu = outcome(lambda: bits(pyfilter.decode(frame).reshape(-1)))
    on_gpu = outcome(lambda: bits(device.decode([frame], info.dtype, info.value_count)[0]))
    if on_cpu != on_gpu:
        states = ["refused" if each is None else "taken" for each in (on_cpu, on_gpu)]
        group.bad.append(f"{what}: CPU {states[0]}, GPU {states[1]}")
    return on_cpu is None


def damaged(quick: bool, every: int) -> Iterator[Group]:
    """What the CPU refuses the GPU refuses; what it takes has the same values."""
    rng = np.random.default_rng(8)
    group = Group("damaged and crafted frames")

    def compare_broken(frame: bytes, times: int, what: str, end: int | None = None) -> None:
        for _ in range(-(-times // every)):
            broken = bytearray(frame)
            for _ in range(int(rng.integers(1, 4))):
                at = int(rng.integers(8 * frame[7], min(len(frame), end or len(frame))))
                broken[at] ^= 1 << int(rng.integers(0, 8))
            compare_frame(group, bytes(broken), f"{what} with flipped bits")

    for case in itertools.islice(hostile.crafted(), 0, None, every):
        compare_frame(group, case.frame, case.name)
    for seed in range((200 if quick else 1000) // every):
        compare_frame(
            group, particles_writer.random_frame(random.Random(seed))[1], f"made particles {seed}", any_nan=True
        )
        made = bins_writer.random_frame(random.Random(seed))[1]
        compare_frame(group, made, f"made lossless with bins {seed}")
    for dtype, block_dims, mode in itertools.product(("f4", "f8"), (1, 2, 3), fields.MODES):
        values = np.cumsum(rng.normal(size=(17, 23, 29)), axis=2).astype(dtype)
        values = fields.sprinkle(values, None, "few", rng)
        frame = pyfilter.encode(values, pyfilter.Cuszp2(absolute=0.01, mode=mode, block_dims=block_dims))
        compare_broken(frame, 60 if quick else 400, f"{dtype} {block_dims}-D {mode}")
    for dtype, predictor in itertools.product(("f4", "f8"), ("chain", "lorenzo2d", "lorenzo3d", "columns")):
        values = np.cumsum(rng.normal(size=(17, 23, 29)), axis=2).astype(dtype)
        values = fields.sprinkle(values, None, "few", rng)
        if predictor == "chain":
            values[3:9, :, 5:20] = np.nan
        kind = "pointwise_relative" if predictor == "columns" else "absolute"
        codec = pyfilter.HierarchicalDelta(predictor=predictor, outliers="on", **{kind: 0.01})
        frame = pyfilter.encode(values, codec)
        compare_broken(frame, 60 if quick else 400, f"{dtype} {predictor}")
    for dtype, axes, place in itertools.product(("f4", "f8"), (2, 3), particle_cases.KINDS):
        cloud = particle_cases.sprinkle(place(6000, axes, rng), "few", rng).astype(dtype)
        frame = pyfilter.encode(cloud, pyfilter.Particles(absolute=0.01, order="chunk"))
        compare_broken(frame, 60 if quick else 400, f"{dtype} particles, {place.__name__},")
    for dtype in ("f4", "f8"):
        for frame in progressive_cases.frames(dtype):
            compare_broken(frame, 20 if quick else 150, f"{dtype} progressive")
            compare_broken(frame, 20 if quick else 150, f"{dtype} progressive, its head", 8 * frame[7] + 1500)
    for dtype, predictor in itertools.product(("f4", "f8"), ("regression", "interpolation")):
        values = np.cumsum(rng.normal(size=(20, 30, 61)), axis=2).astype(dtype)
        values[3:9, :, 5:20] = np.nan
        values.reshape(-1)[rng.integers(0, values.size, 60)] *= 1000
        frame = pyfilter.encode(values, pyfilter.Adaptive(absolute=0.2, predictor=predictor), fill_value=np.nan)
        assert pyfilter.frame_info(frame).codec == "adaptive"
        compare_broken(frame, 60 if quick else 400, f"{dtype} {predictor}")
        compare_broken(frame, 60 if quick else 400, f"{dtype} {predictor}, its model", 8 * frame[7] + 1000)
    for name, kind in itertools.product(("f32", "f64", "i8", "u16"), ("walk", "grid", "list", "outliers")):
        frame = pyfilter.encode(lossless_cases.make(kind, (20, 30, 61), name, rng), lossless_cases.RATIO)
        compare_broken(frame, 40 if quick else 300, f"{name} with bins, {kind}")
        compare_broken(frame, 40 if quick else 300, f"{name} with bins, {kind}, its model", 8 * frame[7] + 1000)
    for dtype, coder in itertools.product(("f4", "f8"), ("rans", "huffman", "unsynced")):
        values = np.cumsum(rng.normal(size=(40, 50, 61)), axis=2).astype(dtype)
        values[3:9, :, 5:20] = np.nan
        values[20:, 20:] = 3
        gaps = coder != "unsynced"
        streams = pyfilter.Lorenzo(absolute=0.2, coder="rans" if coder == "rans" else "huffman", gap_array=gaps)
        frame = pyfilter.encode(fields.sprinkle(values, None, "few", rng), streams)
        assert pyfilter.frame_info(frame).codec == "lorenzo"
        compare_broken(frame, 100 if quick else 800, f"{dtype} {coder}")
    yield group
