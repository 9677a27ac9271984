# SPDX-License-Identifier: BSD-3-Clause
"""The advice that follows from a comparison: the best form of each codec, and the codec to take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyfilter.compare.candidates import OURS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyfilter.compare.run import Outcome

#: a slower codec has to save this share of a faster one's bytes, as in `pyfilter compress`
WORTH = 0.02
_MUCH_FASTER = 1.5


def best_forms(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return of each codec the outcome that stored the least and kept its promise, else the first one.

    Parameters
    ----------
    outcomes : sequence of Outcome
        Of forms of codecs: candidates whose names differ behind a comma.
    """
    groups: dict[tuple[str, str], list[Outcome]] = {}
    for item in outcomes:
        groups.setdefault((item.candidate.source, _codec(item)), []).append(item)
    return [
        max((item for item in group if item.ok), key=lambda item: item.ratio, default=group[0])
        for group in groups.values()
    ]


def advice(outcomes: Sequence[Outcome]) -> str:
    """Return a sentence that says which of our codecs to take at this bound and why, and what is smaller elsewhere.

    A codec with smaller files is preferred where it saves more than 2 % of the bytes of one that writes faster.
    """
    ours = sorted((item for item in outcomes if item.ok and item.candidate.source == OURS), key=lambda item: item.ratio)
    if not ours:
        return "no codec of pyfilter kept its promise on this sample: take none, and report it"
    taken = ours.pop()
    while ours:
        second = ours.pop()
        if second.ratio < taken.ratio * (1 - WORTH):
            ours.append(second)
            break
        if second.write_speed > _MUCH_FASTER * taken.write_speed:
            taken = second
    others = [item for item in outcomes if item.ok and item.candidate.source != OURS]
    plain = next((item for item in others if item.candidate.name.startswith("gzip")), None)
    if plain is not None and plain.ratio >= taken.ratio:
        return (
            f"take shuffle + gzip, HDF5's own: ratio {plain.ratio:.2f} without loss, {taken.candidate.name} has "
            f"{taken.ratio:.2f}"
        )
    text = f"take {taken.candidate.name}: ratio {taken.ratio:.2f}"
    faster = [item for item in ours if item.write_speed > _MUCH_FASTER * taken.write_speed]
    if faster:
        text += f"; {_faster(max(faster, key=lambda item: item.ratio), taken)}"
    smaller = max(others, key=lambda item: item.ratio, default=None)
    if smaller is not None and smaller.ratio > taken.ratio:
        text += f"; {smaller.candidate.name} (hdf5plugin) is {1 - taken.ratio / smaller.ratio:.0%} smaller, written at "
        text += f"{_speed(smaller)} ({_speed(taken)} here)"
    elif smaller is not None:
        text += f"; the smallest of the others, {smaller.candidate.name}, has {smaller.ratio:.2f}"
    return text


def _faster(item: Outcome, taken: Outcome) -> str:
    times, more = item.write_speed / taken.write_speed, taken.ratio / item.ratio - 1
    return f"for speed {item.candidate.name}, written {times:.1f} times as fast, {more:.0%} larger"


def _codec(item: Outcome) -> str:
    return item.candidate.name.partition(",")[0]


def _speed(item: Outcome) -> str:
    return f"{item.write_speed:.{0 if item.write_speed >= 10 else 1}f} MB/s"
