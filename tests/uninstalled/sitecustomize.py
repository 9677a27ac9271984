# SPDX-License-Identifier: BSD-3-Clause
"""For PYTHONPATH: processes in which pyfilter is on the path at most, since no entry point of it is installed.

Tests of what entry points do need processes without them too, also where the tests' own environment has pyfilter.
"""

from __future__ import annotations

import importlib.metadata
import site
from collections.abc import Iterator
from pathlib import Path
from typing import Any

INSTALLED = {Path(folder).resolve() for folder in (*site.getsitepackages(), site.getusersitepackages())}
discover = importlib.metadata.Distribution.discover


def discover_others(**arguments: Any) -> Iterator[importlib.metadata.Distribution]:
    """Leave out pyfilter where it was installed; a folder on the path that a test made counts."""
    for found in discover(**arguments):
        if found.metadata["Name"] != "pyfilter" or Path(str(found.locate_file(""))).resolve() not in INSTALLED:
            yield found


importlib.metadata.Distribution.discover = staticmethod(discover_others)  # type: ignore[assignment,method-assign]
