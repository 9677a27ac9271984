# SPDX-License-Identifier: BSD-3-Clause
"""For PYTHONPATH: processes in which pyfilter is on the path at most, since no entry point of it is installed.

Tests of what entry points do need processes without them too, also where the tests' own environment has pyfilter.
"""

from __future__ import annotations

import contextlib
import importlib
import site
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

INSTALLED = {Path(folder).resolve() for folder in (*site.getsitepackages(), site.getusersitepackages())}


def others(discover: Callable[..., Any]) -> Callable[..., Iterator[Any]]:
    """Leave out pyfilter where it was installed; a folder on the path that a test made counts."""

    def discover_others(**arguments: Any) -> Iterator[Any]:
        for found in discover(**arguments):
            if found.metadata["Name"] != "pyfilter" or Path(found.locate_file("")).resolve() not in INSTALLED:
                yield found

    return discover_others


for name in ("importlib.metadata", "importlib_metadata"):  # dask asks the latter before Python 3.12
    with contextlib.suppress(ImportError):
        distribution: Any = importlib.import_module(name).Distribution
        distribution.discover = staticmethod(others(distribution.discover))
