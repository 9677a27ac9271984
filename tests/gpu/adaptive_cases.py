# SPDX-License-Identifier: BSD-3-Clause
"""Frames of Adaptive that the reference writer makes, for same_bytes.py."""

from __future__ import annotations

import random

from reference import adaptive_writer
from reference.encoder import Spec

from gpu.group import Group


def written(count: int) -> Group:
    """Frames of few values with any choice that the format allows; the narrowest planes have halves of one column."""
    group = Group("adaptive, written")
    shapes = ((9, 8), (17, 8), (40, 8), (33, 9), (12, 10), (35, 12), (5, 9, 11), (34, 9, 8), (3, 4, 9), (700,))
    for seed in range(count):
        rng = random.Random(seed)
        spec = Spec(
            codec="adaptive",
            dtype=rng.choice(("f4", "f8")),
            dims=shapes[seed % len(shapes)],
            group_log2=rng.randrange(5),
            bound=0.25,
            step=0.5,
            sentinel=rng.choice((None, 0x7FC00000)),
        )
        group.check_frames([adaptive_writer.write_parts(spec, rng).join()])
    return group
