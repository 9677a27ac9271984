# SPDX-License-Identifier: BSD-3-Clause
"""Where the library is that tests compare with the reference decoder, and the mark of tests that need it."""

from __future__ import annotations

import importlib
import os
import warnings
from pathlib import Path

import pytest


def library_path() -> Path | None:
    if named := os.environ.get("PYFILTER_LIBRARY"):
        return Path(named).resolve()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyfilter warns when it was not built
        try:
            path = Path(importlib.import_module("pyfilter").PLUGIN_PATH) / "libh5pyfilter.so"
        except (ImportError, AttributeError):
            return None
    return path if path.exists() else None


PATH = library_path()
needs_library = pytest.mark.skipif(PATH is None, reason="no library: set PYFILTER_LIBRARY or install pyfilter")
