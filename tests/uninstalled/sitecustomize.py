# SPDX-License-Identifier: BSD-3-Clause
"""For PYTHONPATH: processes in which pyfilter is on the path at most, since no entry point of it is installed.

Tests of what entry points do need processes without them too, also where the tests' own environment has pyfilter.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import site
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

INSTALLED = {Path(folder).resolve() for folder in (*site.getsitepackages(), site.getusersitepackages())}


def without_ours(discover: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    """Return a discovery that leaves out an installed pyfilter, but not one in a folder that a test put on the path."""

    def discover_others(**arguments: Any) -> Iterator[Any]:
        for found in discover(**arguments):
            if found.metadata["Name"] != "h5pyfilter" or Path(str(found.locate_file(""))).resolve() not in INSTALLED:
                yield found

    return discover_others


def hide(metadata: Any) -> None:
    """Hide it from one of the modules that packages find entry points with."""
    metadata.Distribution.discover = staticmethod(without_ours(metadata.Distribution.discover))


hide(importlib.metadata)
if importlib.util.find_spec("importlib_metadata") is not None:  # the backport, which dask takes where it is installed
    hide(importlib.import_module("importlib_metadata"))
