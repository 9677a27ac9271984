# SPDX-License-Identifier: BSD-3-Clause
"""compress, of datasets that are copied as they are after chunks of them were read: HDF5's copy of cached chunks."""

from __future__ import annotations

from pathlib import Path

import h5py

from pyfilter import Lorenzo

from .support import field
from .test_cli import in_a_shell


def test_chunks_in_the_cache_are_copied_whole(tmp_path: Path) -> None:
    """HDF5 copies values from its chunk cache into a buffer of the compressed size, and writes past its end."""
    values = field((36, 100, 250))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name in ("t", "u"):  # chunks of 900 kB
            file.create_dataset(name, data=values, chunks=(9, 100, 250), **Lorenzo(absolute=1e-2))
        stored = file["t"][...]
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        file["other"] = field((100, 1000))
    done = in_a_shell("compress", tmp_path / "a.h5", tmp_path / "b.h5", "--relative", "1e-5", "--json")
    assert done.returncode == 0, f"{done.returncode}: {done.stderr}"
    with h5py.File(tmp_path / "b.h5") as file:
        assert (file["t"][...] == stored).all()
        assert (file["u"][...] == stored).all()
