# SPDX-License-Identifier: BSD-3-Clause
"""Allocations are refused, one by one and all from one on: an error or a good result, never a crash.

A process of its own does so (without_memory.py), with an allocator that refuses on request (no_memory.c).
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from . import support

#: More than these allocations were refused when this was written.
FEWEST = {"lossless with bins": 30, "adaptive": 40, "filter little-endian": 40}


@pytest.fixture(scope="module")
def allocator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.fail("no C compiler: scripts/test installs g++")
    path = tmp_path_factory.mktemp("allocator") / "no_memory.so"
    source = Path(__file__).with_name("no_memory.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", str(source), "-o", str(path)], check=True, timeout=60)
    return path


def test_every_allocation_is_refused_once(allocator: Path, library_path: Path) -> None:
    env = support.environment(None, {"LD_PRELOAD": str(allocator)})
    command = [sys.executable, "-m", "hdf5.without_memory", str(library_path)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    refused = {name: int(number) for name, number in (line.rsplit(" ", 1) for line in done.stdout.splitlines())}
    assert len(refused) == 14
    assert all(refused[name] >= FEWEST.get(name, 5) for name in refused), refused
