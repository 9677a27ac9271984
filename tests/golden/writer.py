# SPDX-License-Identifier: BSD-3-Clause
"""Writes the golden files of cases that have none. A file that is there is never written again: README.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from reference import decoder

import pyfilter

from .cases import FOLDER, cases, hand_made


def stem(name: str, version: int) -> str:
    """Name of a case's files without their ending."""
    return f"v{version}_{name}"


def write_pair(folder: Path, name: str, version: int, frame: bytes, values: NDArray[Any]) -> list[Path]:
    """Write frame and values, unless both are there; refuse where only one is, or where the decoders disagree."""
    paths = [folder / f"{stem(name, version)}{ending}" for ending in (".pyf", ".npy")]
    there = [path for path in paths if path.exists()]
    if len(there) == 2:
        return []
    if there:
        message = f"{there[0].name} is there without its other half: golden files are never written again"
        raise FileExistsError(message)
    for which, decoded in (("library", pyfilter.decode(frame)), ("reference decoder", decoder.decode(frame))):
        if decoded.shape != values.shape or decoded.tobytes() != values.tobytes():
            message = f"{name}: the {which} gives other values than those to be written"
            raise ValueError(message)
    with paths[0].open("xb") as file:
        file.write(frame)
    with paths[1].open("xb") as file:
        np.save(file, values, allow_pickle=False)
    return paths


def write_missing(folder: Path = FOLDER) -> list[Path]:
    """Write what is missing; return the files written."""
    written = []
    for case in cases():
        frame = case.encode()
        written += write_pair(folder, case.name, case.version, frame, pyfilter.decode(frame))
    for name, frame, values in hand_made():
        written += write_pair(folder, name, frame[4], frame, values)
    return written
