# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures: the built library (PYFILTER_LIBRARY, else the installed pyfilter's) and processes that find it."""

from __future__ import annotations

import ctypes
import importlib
import os
from collections.abc import Callable
from pathlib import Path

import h5py
import pytest
from reference.library import Library

from . import support
from .filter_calls import FilterClass


def find_library() -> Path | None:
    """Return the library's file."""
    if named := os.environ.get("PYFILTER_LIBRARY"):
        return Path(named).resolve()
    try:
        pyfilter = importlib.import_module("pyfilter")
    except ImportError:
        return None
    return Path(pyfilter.PLUGIN_PATH) / "libh5pyfilter.so"


@pytest.fixture(scope="session")
def library_path() -> Path:
    path = find_library()
    if path is None or not path.is_file():
        pytest.fail("no library: install pyfilter or set PYFILTER_LIBRARY")
    return path


@pytest.fixture(scope="session")
def plugin_folder(library_path: Path) -> str:
    return str(library_path.parent)


@pytest.fixture(scope="session")
def library(library_path: Path) -> Library:
    return Library(library_path)


@pytest.fixture(autouse=True, scope="session")
def plugin_is_found(plugin_folder: str) -> None:
    """In this process too, as any plugin is found: by its folder."""
    if not h5py.h5z.filter_avail(support.FILTER_ID):
        h5py.h5pl.append(os.fsencode(plugin_folder))
    assert h5py.h5z.filter_avail(support.FILTER_ID)


@pytest.fixture(scope="session")
def env(plugin_folder: str) -> dict[str, str]:
    """Environment in which HDF5 finds the plugin by HDF5_PLUGIN_PATH and nothing else."""
    return support.environment(plugin_folder)


@pytest.fixture
def script(env: dict[str, str]) -> Callable[..., str]:
    """Run a script in a fresh interpreter, in that environment."""
    return lambda text, *arguments: support.run_python(text, *arguments, env=env)


@pytest.fixture
def tool(env: dict[str, str]) -> Callable[..., str]:
    """Run a command-line program in that environment."""
    return lambda name, *arguments, check=True: support.run_tool(name, *arguments, env=env, check=check)


@pytest.fixture(scope="session")
def filter_class(library: Library) -> FilterClass:
    library.c.H5PLget_plugin_info.restype = ctypes.POINTER(FilterClass)
    found: FilterClass = library.c.H5PLget_plugin_info().contents
    return found
