# SPDX-License-Identifier: BSD-3-Clause
"""Golden frames as chunks of HDF5 files, decoded by HDF5's own programs: h5repack for all, h5dump for one of each kind.

Left out are frames that no chunk can be: scalars and empty arrays.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import h5py
import numpy as np
import pytest
from reference import decoder

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
            header = decoder.parse_header(frame)
            if not header.dims or 0 in header.dims:
                continue
            big = header.flags & decoder.BIG_ENDIAN
            dtype = header.dtype.newbyteorder(">") if big else header.dtype.newbyteorder("<")
            dataset = file.create_dataset(source.stem, header.dims, dtype, chunks=header.dims, **pyfilter.Lossless())
            dataset.id.write_direct_chunk((0,) * len(header.dims), frame)
    return path


def tool(name: str, *words: str | Path) -> None:
    program = shutil.which(name)
    assert program is not None, f"{name} is not installed: scripts/test installs it"
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 0, done.stderr
    assert "error" not in done.stderr.lower(), done.stderr


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
    """One frame of each version, codec and dtype."""
    found: dict[tuple[int, int, int], str] = {}
    for path in FRAMES:
        header = decoder.parse_header(path.read_bytes())
        if header.dims and 0 not in header.dims:
            found.setdefault((path.read_bytes()[4], header.codec, path.read_bytes()[9]), path.stem)
    return sorted(found.values())


def test_h5dump(chunked: Path, tmp_path: Path) -> None:
    names = kinds()
    assert len(names) >= 24
    for name in names:
        tool("h5dump", "-d", f"/{name}", "-b", "LE", "-o", tmp_path / "values", chunked)
        values = expected(FOLDER / f"{name}.pyf")
        dumped = np.fromfile(tmp_path / "values", values.dtype.newbyteorder("<"))
        assert dumped.tobytes() == values.astype(values.dtype.newbyteorder("<")).tobytes(), name
