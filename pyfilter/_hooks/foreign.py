# SPDX-License-Identifier: BSD-3-Clause
"""PyPI's distribution ``pyfilter`` is another project's, and installs a package of the same name as ours.

pip puts both into the same folder without a word. The consequences:

- theirs was installed last: its ``__init__.py`` has replaced ours. It imports ``pyfilter.pyfilter``, which is ours
  (pyfilter/pyfilter/) and raises an error that says so.
- ours was installed last: all works, until theirs is uninstalled and takes ``__init__.py`` with it. `warn` warns of
  it when pyfilter is imported.
- theirs was uninstalled: the package has no ``__init__.py``. `initialised` is False, and to load the library is an
  error that says so.
"""

from __future__ import annotations

import contextlib
import sys
import warnings
from pathlib import Path

NAME = "pyfilter"
REPAIR = "pip uninstall -y pyfilter h5pyfilter, then pip install h5pyfilter"
OVERWRITTEN = (
    "the distribution 'pyfilter' is another project's and has replaced files of h5pyfilter, which installs the "
    f"package pyfilter, too: {REPAIR}"
)
REMOVED = f"pyfilter/__init__.py is missing: uninstalling the distribution 'pyfilter' removes it. {REPAIR}"


def beside(folders: list[str]) -> list[Path]:
    """Return the metadata of foreign distributions that are in the same folder as one of the package's folders."""
    found: set[Path] = set()
    for parent in {Path(folder).resolve().parent for folder in folders}:
        with contextlib.suppress(OSError):  # a package inside of an archive
            found |= {item for item in parent.glob(f"{NAME}-*") if item.suffix in (".dist-info", ".egg-info")}
    return sorted(found)


def warn(folders: list[str]) -> None:
    """Warn where a foreign distribution has been installed over the package."""
    found = beside(folders)
    if found:
        message = (
            f"the distribution 'pyfilter' is another project's and is installed over h5pyfilter ({found[0]}). "
            f"Uninstalling it removes files of h5pyfilter: {REPAIR}"
        )
        warnings.warn(message, RuntimeWarning, stacklevel=3)


def initialised() -> bool:
    """Return whether the package has its ``__init__.py``."""
    return getattr(sys.modules.get("pyfilter"), "__file__", None) is not None
