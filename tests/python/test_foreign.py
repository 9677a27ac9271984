# SPDX-License-Identifier: BSD-3-Clause
"""PyPI's distribution ``pyfilter``, which is another project's, installed into the same folder as ours."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .support import REPOSITORY, clean_environment

METADATA = "Metadata-Version: 1.0\nName: pyfilter\nVersion: 1.0.0\n"
HIDES_INSTALLED = """
import os, sys
from importlib.machinery import PathFinder

class Here:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return PathFinder.find_spec(name, [os.path.dirname(__file__)]) if name == "pyfilter" else None

sys.meta_path.insert(0, Here)
"""


def our_package(folder: Path) -> Path:
    """Return a folder with a copy of our package, as site-packages has it."""
    shutil.copytree(
        REPOSITORY / "pyfilter", folder / "site" / "pyfilter", ignore=shutil.ignore_patterns("__pycache__", "lib")
    )
    shutil.copy(REPOSITORY / "registry.json", folder / "site" / "pyfilter")
    return folder / "site"


def foreign_package(folder: Path, *, last: bool = True) -> Path:
    """Return a folder with both packages; ``last``: theirs came last, so that its __init__.py is there."""
    site = our_package(folder)
    (site / "pyfilter-1.0.0.dist-info").mkdir()
    (site / "pyfilter-1.0.0.dist-info" / "METADATA").write_text(METADATA, encoding="utf-8")
    # the files of pyfilter 1.0.0, as far as they matter
    (site / "pyfilter" / "pyfilter.py").write_text("from tools import *\n\ndef main():\n    pass\n", encoding="utf-8")
    (site / "pyfilter" / "tools.py").write_text("", encoding="utf-8")
    if last:
        (site / "pyfilter" / "__init__.py").write_text("from .pyfilter import main", encoding="utf-8")
    return site


def run(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words], env=clean_environment(PYTHONPATH=str(site)), cwd=site.parent,
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


def test_ours_alone_says_nothing(tmp_path: Path) -> None:
    done = run(our_package(tmp_path), "-W", "error", "-c", "import pyfilter\nprint(pyfilter.__file__, pyfilter.Cuszp2)")
    assert done.stdout.startswith(str(tmp_path))
    assert done.stderr == ""


@pytest.mark.parametrize("words", [("-c", "import pyfilter"), ("-m", "pyfilter", "doctor")], ids=["import", "command"])
def test_theirs_over_ours_is_an_error(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = run(foreign_package(tmp_path), *words)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ImportError: the distribution 'pyfilter' is another project's and has replaced files")
    assert last.endswith("pip uninstall -y pyfilter h5pyfilter, then pip install h5pyfilter")


@pytest.mark.parametrize("suffix", [".dist-info", "-py3.11.egg-info"])
def test_ours_over_theirs_is_a_warning(tmp_path: Path, suffix: str) -> None:
    site = foreign_package(tmp_path, last=False)
    (site / "pyfilter-1.0.0.dist-info").rename(site / f"pyfilter-1.0.0{suffix}")
    done = run(site, "-c", "import pyfilter\nprint(pyfilter.Cuszp2(absolute=1))")
    assert done.returncode == 0
    assert done.stdout == "Cuszp2(absolute=1.0)\n"
    assert "RuntimeWarning: the distribution 'pyfilter' is another project's" in done.stderr
    assert f"pyfilter-1.0.0{suffix}" in done.stderr
    assert done.stderr.startswith("<string>:1:")  # the line that imports it


def test_doctor_tells_of_theirs(tmp_path: Path) -> None:
    done = run(foreign_package(tmp_path, last=False), "-m", "pyfilter", "doctor")
    assert done.returncode == 1
    line = next(line for line in done.stdout.splitlines() if line.startswith("distribution"))
    assert f"pyfilter 1.0.0 in {tmp_path}" in line
    assert "is another project's" in line


def test_after_theirs_is_uninstalled_the_library_says_what_is_missing(tmp_path: Path) -> None:
    site = foreign_package(tmp_path)
    for path in (site / "pyfilter").glob("*.py"):  # what uninstalling removes
        if path.name in ("__init__.py", "pyfilter.py", "tools.py"):
            path.unlink()
    shutil.rmtree(site / "pyfilter-1.0.0.dist-info")
    # a folder without __init__.py comes behind every package: one that is installed for these tests is hidden
    (site / "sitecustomize.py").write_text(HIDES_INSTALLED, encoding="utf-8")
    done = run(site, "-m", "pyfilter", "doctor")
    assert done.returncode != 0
    assert "pyfilter/__init__.py is missing" in done.stdout + done.stderr
    assert "pip install h5pyfilter" in done.stdout + done.stderr
