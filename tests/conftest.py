# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures for all tests: real data files, where the checkout has them beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED_FILES = Path(__file__).resolve().parents[2] / "shared" / "data" / "files"


@pytest.fixture(scope="session")
def shared_files() -> list[Path]:
    """Real HDF5 and netCDF files; an empty list where there are none (tests make files of their own as well)."""
    return sorted(SHARED_FILES.glob("*.*")) if SHARED_FILES.is_dir() else []
