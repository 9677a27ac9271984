# SPDX-License-Identifier: BSD-3-Clause
"""Golden frames that the writers of tests/reference make: choices that our encoder never makes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from reference import (
    adaptive_parts_writer,
    adaptive_writer,
    bins_writer,
    decoder,
    encoder,
    hostile_tools,
    packed_choices,
    particles_writer,
    progressive_writer,
    stream_writer,
)

import pyfilter

from .fields import waves
from .type_cases import bounded_half_cases

Array = NDArray[Any]

#: seeds of `encoder.random_frame`, whose frames use what the format allows and our encoder does not: masks that
#: overlap or cover padding, more planes than needed, outlier bytes in every mode, rate codes written in other ways
HAND_MADE = (10, 49, 63, 64, 88, 130, 144, 190, 197, 242, 730, 985, 1225)


#: seeds of `packed_choices.random_frame` likewise
HAND_MADE_PACKED = (
    *(18, 29, 60, 74, 101, 116, 125, 176, 200, 209, 218, 233, 250, 267, 269, 303, 310, 316),
    *(343, 383, 423, 430, 466, 467, 566, 567, 570, 593, 612, 619, 660, 663, 665, 670),
)


#: seeds of `stream_writer.random_frame` likewise
HAND_MADE_STREAMS = (67, 117, 8, 62, 58, 39, 44, 60, 25, 96, 84, 55, 81, 94, 101)


#: the same with states of as many bits as they need
HAND_MADE_SHORT_STATES = (3, 8, 17, 25, 39, 44)


#: seeds of `particles_writer.random_frame` likewise
HAND_MADE_PARTICLES = (6, 10, 11, 19, 24, 30, 31, 40, 56, 76, 82, 101, 102, 111, 148, 178, 190)


#: seeds of `progressive_writer.random_frame` likewise
HAND_MADE_PROGRESSIVE = (2, 3, 6, 7, 9, 14, 15, 18, 26, 31, 38, 39, 54, 58, 78, 85, 97, 115, 153, 187, 480, 536)


#: seeds of `adaptive_writer.random_frame` likewise
HAND_MADE_ADAPTIVE = (0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 38, 49, 76, 112)


#: seeds of `adaptive_parts_writer.random_frame` likewise
HAND_MADE_PARTS = (
    *(43, 67, 96, 185, 205, 298, 360, 380, 385, 449, 450, 471, 526, 539, 544, 549, 566, 597, 619, 647, 697),
)


#: seeds of `bins_writer.random_frame` likewise
HAND_MADE_BINS = (
    *(5, 13, 65, 66, 118, 232, 256, 285, 307, 318, 326, 329, 357, 437, 444, 555, 579, 592, 609, 623),
    *(742, 782, 812, 845, 891, 905, 915, 940, 968, 1044, 1114, 1129, 1159, 1195),
)


#: cases of float16 whose frames are taken for bfloat16, too
BFLOAT16_TOO = (
    "cuszp2_f2_holes",
    "hierarchical_delta_f2_pointwise",
    "lorenzo_f2_absolute",
    "adaptive_f2_absolute",
)


def hand_made() -> Iterator[tuple[str, bytes, Array]]:
    """Name, frame and values of frames that the writers of tests/reference make."""
    for seed in HAND_MADE:
        spec, frame, blocks = encoder.random_frame(random.Random(seed))
        yield named_frame(spec, frame, encoder.frame_values(spec, blocks), seed)
    for seed in HAND_MADE_PACKED:
        yield named_frame(*packed_choices.random_frame(random.Random(seed)), seed)
    for seed in HAND_MADE_STREAMS:
        yield named_frame(*stream_writer.random_frame(random.Random(seed)), seed)
    for seed in HAND_MADE_SHORT_STATES:
        yield named_frame(*stream_writer.random_frame(random.Random(seed), (encoder.SHORT_STATES,)), seed)
    for seed in HAND_MADE_PARTICLES:
        spec, frame, _ = particles_writer.random_frame(random.Random(seed))
        yield f"made_particles_{spec.dtype}_{seed}", frame, decoder.decode(frame)
    for seed in HAND_MADE_PROGRESSIVE:
        spec, frame, _ = progressive_writer.random_frame(random.Random(seed))
        yield f"made_progressive_{spec.dtype}_{seed}", frame, decoder.decode(frame)
    for seed in HAND_MADE_ADAPTIVE:
        spec, frame, _ = adaptive_writer.random_frame(random.Random(seed))
        yield f"made_adaptive_{spec.dtype}_{seed}", frame, decoder.decode(frame)
    for seed in HAND_MADE_PARTS:
        spec, frame, _ = adaptive_parts_writer.random_frame(random.Random(seed))
        yield f"made_adaptive_parts_{spec.dtype}_{seed}", frame, decoder.decode(frame)
    for case in bounded_half_cases(waves((70,), "f4").astype("f2")):  # bfloat16: the same f32, rounded otherwise
        if case.name in BFLOAT16_TOO:
            frame = hostile_tools.seal(hostile_tools.patch(case.encode(), 9, "B", decoder.BF16))
            yield f"made_{case.name.replace('f2', 'bfloat16')}", frame, decoder.decode(frame)
    for effort in ("fast", "ratio"):  # bfloat16: the values of another type behind the same integers
        frame = pyfilter.encode(waves((20, 33), "f4").astype("f2"), pyfilter.Lossless(effort=effort))
        frame = hostile_tools.seal(hostile_tools.patch(frame, 9, "B", decoder.BF16))
        yield f"made_bfloat16_{effort}", frame, decoder.decode(frame)
    for seed in HAND_MADE_BINS:
        spec, frame, patterns = bins_writer.random_frame(random.Random(seed))
        values = np.array(patterns, f"u{spec.dtype[1]}").view(spec.dtype).reshape(spec.dims)
        yield f"made_bins_{spec.dtype}_{seed}", frame, values


def named_frame(spec: encoder.Spec, frame: bytes, patterns: list[int | None], seed: int) -> tuple[str, bytes, Array]:
    values = np.array([bits or 0 for bits in patterns], f"<u{spec.value_bytes}").view(f"<{spec.dtype}")
    return f"made_{spec.codec}_{spec.dtype}_{seed}", frame, values.reshape(spec.dims)
