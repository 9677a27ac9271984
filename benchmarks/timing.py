# SPDX-License-Identifier: BSD-3-Clause
"""Times of works that take turns, so that what else the machine does meets all of them."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def in_turns(works: Sequence[Callable[[], object]], rounds: int, *, first_once: bool = False) -> list[float]:
    """Return the median seconds of each, after a round that does not count; of the first one round only if asked."""
    taken: list[list[float]] = [[] for _ in works]
    for i in range(rounds + 1):
        for number, (times, work) in enumerate(zip(taken, works, strict=True)):
            if first_once and number == 0 and i > 1:
                continue
            begin = time.perf_counter()
            work()
            if i:
                times.append(time.perf_counter() - begin)
    return [statistics.median(times) for times in taken]
