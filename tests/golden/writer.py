# SPDX-License-Identifier: BSD-3-Clause
"""Writes the golden files of cases that have none. A file that is there is never written again: README.md.

MANIFEST.sha256 has the checksum of each, so that a file that was changed or taken away is seen.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from reference import decoder

import pyfilter

from .cases import FOLDER, cases
from .golden_case import GoldenCase, RecordCase
from .hand_made import hand_made
from .type_cases import record_cases

MANIFEST = "MANIFEST.sha256"


def checksum(path: Path) -> str:
    """Of a file, as sha256sum prints it."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def read_manifest(folder: Path = FOLDER) -> dict[str, str]:
    """Checksums by file name, of all golden files that ever were."""
    path = folder / MANIFEST
    lines = path.read_text().splitlines() if path.exists() else []
    return {name: digest for digest, name in (line.split("  ") for line in lines)}


def add_to_manifest(folder: Path = FOLDER) -> None:
    """Add the files that it does not have; what it has stays."""
    known = read_manifest(folder)
    known |= {path.name: checksum(path) for path in folder.glob("v*.*") if path.name not in known}
    (folder / MANIFEST).write_text("".join(f"{known[name]}  {name}\n" for name in sorted(known)))


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
        np.save(file, np.asarray(values, order="C"), allow_pickle=False)  # C programs read them, too
    return paths


def write_missing(folder: Path = FOLDER) -> list[Path]:
    """Write what is missing; return the files written."""
    written = []
    every: list[GoldenCase | RecordCase] = [*cases(), *record_cases()]
    for case in every:
        frame = case.encode()
        written += write_pair(folder, case.name, case.version, frame, pyfilter.decode(frame))
    for name, frame, values in hand_made():
        written += write_pair(folder, name, frame[4], frame, values)
    add_to_manifest(folder)
    return written
