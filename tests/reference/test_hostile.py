# SPDX-License-Identifier: BSD-3-Clause
"""Hostile and mutated frames: refused by the reference decoder and by the library.

The library is the one of test_library.py.
"""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from . import encoder, hostile
from .decoder import CorruptFrame, FrameError, TooNew, TruncatedFrame, decode
from .hostile_tools import Hostile
from .library import FAMILIES, OK, Library, LibraryError, checksum
from .located import PATH, needs_library

ERRORS = {hostile.CORRUPT: CorruptFrame, hostile.TRUNCATED: TruncatedFrame, hostile.TOO_NEW: TooNew}


@pytest.fixture(scope="module")
def all_hostile() -> list[Hostile]:
    """Made once for both decoders: it takes longer than to decode them."""
    return list(hostile.all_hostile())


@pytest.fixture(scope="module")
def origins() -> list[tuple[str, bytes, bytes]]:
    """The frames that hostile ones come from: name, frame, values by the reference decoder."""
    return [(name, frame, decode(frame).tobytes()) for name, frame in hostile.small_frames()]


def test_hostile_frames(all_hostile: list[Hostile]) -> None:
    assert len(all_hostile) > 3000
    wrong = []
    for bad in all_hostile:
        try:
            decode(bad.frame)
            wrong.append((bad.name, "decoded"))
        except FrameError as error:
            if not isinstance(error, tuple(ERRORS[f] for f in bad.families)):
                wrong.append((bad.name, repr(error)))
    assert wrong == []


def run_apart(frames: Iterable[bytes], folder: Path) -> list[tuple[list[int], int | None]]:
    """What library.py as a program of its own says of frames, any of which might crash it."""
    with (folder / "frames").open("wb") as file:
        for frame in frames:
            file.write(len(frame).to_bytes(4, "little") + frame)
    package, path = str(__package__), Path(__file__)
    command = [sys.executable, "-m", f"{package}.library", str(PATH), str(folder / "frames")]
    root = path.parents[package.count(".") + 1]
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=600)
    lines: list[Any] = [json.loads(line) for line in run.stdout.splitlines()]
    assert run.returncode == 0, f"crashed at frame {lines[-1:]}: {run.stderr}"
    assert lines[::2] == list(range(len(lines) // 2))
    return [(codes, crc) for codes, crc in lines[1::2]]


@needs_library
def test_hostile_frames_by_the_library(all_hostile: list[Hostile], tmp_path: Path) -> None:
    wrong = []
    found = run_apart((bad.frame for bad in all_hostile), tmp_path)
    for bad, ((info, decoded, ranged), _) in zip(all_hostile, found, strict=True):
        for what, code in (("decode", decoded), ("decode_range", ranged)):
            if FAMILIES.get(code) not in bad.families:
                wrong.append((what, code, bad.name, sorted(bad.families)))
        if info != OK and FAMILIES.get(info) not in bad.families:
            wrong.append(("frame_info", info, bad.name, sorted(bad.families)))
        if info == OK and "size wraps around" in bad.name:  # who asks how many values there are must not be told 2^61
            wrong.append(("frame_info", info, bad.name, sorted(bad.families)))
    assert wrong == []


def test_frames_that_hostile_ones_come_from(origins: list[tuple[str, bytes, bytes]]) -> None:
    """The reference decoder refuses none of them."""
    assert len(origins) > 50


@needs_library
def test_the_same_frames_by_the_library(library: Library, origins: list[tuple[str, bytes, bytes]]) -> None:
    for name, frame, whole in origins:
        assert library.decode(frame, len(whole)) == whole, name


MUTATED = [
    (0, 100),
    (100, 100),
    (200, 100),
    (hostile.FIRST_STREAM_SEED, 40),
    (hostile.FIRST_PARTICLE_SEED, 100),
    (hostile.FIRST_PROGRESSIVE_SEED, 40),
    (hostile.FIRST_ADAPTIVE_SEED, 40),
    (hostile.FIRST_BINS_SEED, 200),
    (hostile.FIRST_PARTS_SEED, 60),
]


@needs_library
@pytest.mark.parametrize(("first", "count"), MUTATED)
def test_mutated_frames(first: int, count: int, tmp_path: Path) -> None:
    """Bytes changed behind the header: both refuse, or both give the same values."""
    frames = [hostile.mutated(seed) for seed in range(first, first + count)]
    for seed, (frame, (codes, crc)) in enumerate(zip(frames, run_apart(frames, tmp_path), strict=True), first):
        try:
            expected = checksum(decode(frame).tobytes(), frame[9])
        except FrameError:
            expected = None
        assert crc == expected, seed
        assert [FAMILIES.get(code) for code in codes[1:]] == [hostile.CORRUPT if crc is None else None] * 2, seed


@needs_library
def test_hostile_frames_after_which_all_is_well(library: Library) -> None:
    """A refusal leaves nothing behind."""
    spec, frame, _ = encoder.random_frame(random.Random(7))
    whole = decode(frame).tobytes()
    for bad in list(hostile.directories())[:5]:
        with pytest.raises(LibraryError):
            library.decode(bad.frame, 4 * 3 * 4096)
        assert library.decode(frame, len(whole)) == whole
    assert math.prod(spec.dims) * spec.value_bytes == len(whole)
