# SPDX-License-Identifier: BSD-3-Clause
"""For all tests: their order, real data files, where the checkout has them beside it, and how hypothesis draws."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
SHARED_FILES = HERE.parents[1] / "shared" / "data" / "files"

with contextlib.suppress(ImportError):  # tests/gpu need no hypothesis
    from hypothesis import settings

    # the same examples in each run, new ones with PYFILTER_LONG=1; a busy machine is not an error
    settings.register_profile("pyfilter", deadline=None, derandomize=os.environ.get("PYFILTER_LONG", "") in ("", "0"))
    settings.load_profile("pyfilter")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of kernels on a CPU come first: one process builds their library while others run tests of other folders.

    Last, where pytest-xdist hands out what is left, two processes would wait for the build.
    """
    items.sort(key=lambda item: not item.path.is_relative_to(HERE / "simt"))


@pytest.fixture(scope="session")
def shared_files() -> list[Path]:
    """Real HDF5 and netCDF files; an empty list where there are none (tests make files of their own as well)."""
    return sorted(SHARED_FILES.glob("*.*")) if SHARED_FILES.is_dir() else []
