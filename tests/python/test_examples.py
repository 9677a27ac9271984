# SPDX-License-Identifier: BSD-3-Clause
"""The examples of the tutorial and of the how-to pages run, in the order of each page."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from .pages import blocks
from .support import REPOSITORY, clean_environment

PAGES = [REPOSITORY / "docs" / "tutorial.md", *sorted((REPOSITORY / "docs" / "howto").glob("*.md"))]
#: packages that a page is about; without them its examples cannot run
NEEDS = {
    "tutorial": ["netCDF4", "xarray", "matplotlib"],
    "netcdf4": ["netCDF4"],
    "xarray": ["xarray", "netCDF4", "h5netcdf"],
    "xarray-engine": ["xarray", "netCDF4", "dask"],
    "dask": ["dask", "xarray", "distributed"],
    "zarr": ["zarr", "xarray", "dask"],
    "progressive": ["fsspec", "aiohttp"],
    "other-programs": ["netCDF4"],
}
#: why an example may be left out
REASONS = ("needs MPI", "needs a cluster", "needs a container", "needs programs", "a sketch")
#: packages that an example may need: where they are not installed, it is left out
OPTIONAL = ("icechunk", "kerchunk")


def run_page(page: Path, folder: Path, *options: str) -> str:
    """Run the page's examples in a folder and return what they print."""
    env = clean_environment(MPLBACKEND="agg")
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("pages.py")), str(page), *options],
        cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{page.name}\n{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
    return done.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.stem))
def test_the_examples_of_a_page_run(page: Path, tmp_path: Path) -> None:
    for package in NEEDS.get(page.stem, []):
        pytest.importorskip(package)
    found = blocks(page)
    for block in found:
        assert block.needs in ("", *OPTIONAL), f"{page.name}, line {block.line}"
        assert block.needs or not block.not_run or block.not_run.startswith(REASONS), f"{page.name}, line {block.line}"
    to_run = [block for block in found if not block.not_run]
    printed = run_page(page, tmp_path, *(["--model"] if page.stem == "gpu" else []))
    assert re.search(rf"^ran {len(to_run)}$", printed, re.MULTILINE)


def test_only_pages_about_other_machines_run_nothing() -> None:
    idle = {page.stem for page in PAGES if blocks(page) and all(block.not_run for block in blocks(page))}
    assert idle <= {"mpi", "clusters"}


def test_a_wrong_example_is_found(tmp_path: Path) -> None:
    page = tmp_path / "wrong.md"
    page.write_text("# Wrong\n\n```python\na = 1\n```\n\nText\n\n```python\nassert a == 2, 'no'\n```\n")
    with pytest.raises(AssertionError, match=r'wrong.md", line 10'):
        run_page(page, tmp_path)
