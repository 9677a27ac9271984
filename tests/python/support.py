# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of the Python package share: fields of data, and scripts in fresh interpreters."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pyfilter
from pyfilter._lib import library

TIMEOUT = 120
REPOSITORY = Path(__file__).resolve().parents[2]


def field(shape: Sequence[int], dtype: str = "f4", seed: int = 0) -> NDArray[Any]:
    """Return a smooth field with some noise, a few units high."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=shape) * 0.01
    for axis, extent in enumerate(shape):
        wave = np.sin(np.linspace(0, 3, extent) * (axis + 2))
        values += wave.reshape([-1 if index == axis else 1 for index in range(len(shape))])
    return values.astype(dtype)


def clean_environment(**extra: str) -> dict[str, str]:
    """Return this process's environment without what importing pyfilter (or netCDF4) added to it."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("HDF5_PLUGIN")}
    file = library.path()
    assert file is not None
    env["PYFILTER_LIBRARY"] = str(file)
    package = Path(pyfilter.__file__).resolve().parent.parent
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(package), os.environ.get("PYTHONPATH")]))
    return {**env, **extra}


def without_entry_points(**extra: str) -> dict[str, str]:
    """Return clean_environment() for processes to which pyfilter is on the path, but not installed."""
    env = clean_environment(**extra)
    return {**env, "PYTHONPATH": os.pathsep.join([str(REPOSITORY / "tests" / "uninstalled"), env["PYTHONPATH"]])}


def run_script(
    text: str, *arguments: str | Path, env: Mapping[str, str] | None = None, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run a script in a fresh interpreter, warnings being errors, and return what it printed."""
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", text, *map(str, arguments)],
        env=dict(env) if env is not None else clean_environment(),
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    if check:
        assert result.returncode == 0, result.stderr
    return result


def run_tool(name: str, *arguments: str | Path) -> str:
    """Run a command-line program of HDF5 or netCDF with the plugin in reach and return what it printed."""
    file = library.path()
    assert file is not None
    result = subprocess.run(
        [name, *map(str, arguments)],
        env={**clean_environment(), "HDF5_PLUGIN_PATH": str(file.parent)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout
