# SPDX-License-Identifier: BSD-3-Clause
"""Golden frames as chunks of HDF5 files, decoded by HDF5's own programs: h5repack for all, h5dump for one of each kind
(format version, codec, its parameters, dtype, flags).

Left out are frames that no chunk can be: scalars and empty arrays.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import h5py
import numpy as np
import pytest
from reference import decoder, records

import pyfilter

from .cases import FOLDER
from .test_golden import FRAMES, expected

TIMEOUT = 120


@pytest.fixture(scope="module")
def chunked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file with a dataset of one chunk for each frame that can be one, by the name of the frame."""
    path = tmp_path_factory.mktemp("golden") / "a.h5"
    with h5py.File(path, "w", libver=("earliest", "v110")) as file:
        for source in FRAMES:
            frame = source.read_bytes()
            if records.is_records(frame):
                dtype = expected(source).dtype
                shape = expected(source).shape
                made = file.create_dataset(source.stem, shape, dtype, chunks=shape, **pyfilter.Compound({}))
                made.id.write_direct_chunk((0,), frame)
                continue
            header = decoder.parse_header(frame)
            if not header.shape or 0 in header.shape or header.element.kind in "bV":  # h5py has no such types
                continue
            big = header.flags & decoder.BIG_ENDIAN
            dtype = header.element.newbyteorder(">" if big else "<")
            dataset = file.create_dataset(source.stem, header.shape, dtype, chunks=header.shape, **pyfilter.Lossless())
            dataset.id.write_direct_chunk((0,) * len(header.shape), frame)
    return path


def tool(name: str, *words: str | Path) -> str:
    program = shutil.which(name)
    assert program is not None, f"{name} is not installed: scripts/test installs it"
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 0, done.stderr
    assert "error" not in done.stderr.lower(), done.stderr
    return done.stdout


def test_h5repack_decodes_all(chunked: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain.h5"
    tool("h5repack", "-f", "NONE", chunked, plain)
    with h5py.File(plain) as file:
        assert len(file) > 0.9 * len(FRAMES)
        for name, dataset in file.items():
            assert dataset.id.get_create_plist().get_nfilters() == 0
            values = expected(FOLDER / f"{name}.pyf")
            assert dataset[...].astype(values.dtype).tobytes() == values.tobytes(), name


def kinds() -> list[str]:
    """One frame of each version, codec, dtype, flags and parameters: of every mode, that is."""
    found: dict[bytes, str] = {}
    for path in FRAMES:
        frame = path.read_bytes()
        if records.is_records(frame):  # whose text tests/hdf5/test_records.py reads
            continue
        header = decoder.parse_header(frame)
        if header.shape and 0 not in header.shape and header.element.kind not in "bV":
            found.setdefault(frame[4:5] + frame[8:11] + frame[48:56], path.stem)
    return sorted(found.values())


def test_h5dump(chunked: Path, tmp_path: Path) -> None:
    names = kinds()
    assert len(names) >= 150
    for name in names:
        values = expected(FOLDER / f"{name}.pyf")
        if values.dtype.kind == "c" or values.dtype == np.float16:  # of which h5dump 1.10 writes no binary file
            digits = "%.17g" if values.dtype.itemsize == 16 else "%.9g"
            text = tool("h5dump", "-d", f"/{name}", "-m", digits, "-w", "1", "-y", chunked).partition("DATA {")[2]
            numbers = [float(number) for number in re.findall(r"-?(?:\d[\d.e+-]*|nan|inf)", text)]
            parts = values.reshape(-1).view({2: "f2", 8: "f4", 16: "f8"}[values.dtype.itemsize])
            assert np.array_equal(np.array(numbers, parts.dtype), parts, equal_nan=True), name
            continue
        tool("h5dump", "-d", f"/{name}", "-b", "LE", "-o", tmp_path / "values", chunked)
        dumped = np.fromfile(tmp_path / "values", values.dtype.newbyteorder("<"))
        assert dumped.tobytes() == values.astype(values.dtype.newbyteorder("<")).tobytes(), name
