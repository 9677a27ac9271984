# SPDX-License-Identifier: BSD-3-Clause
"""Calls functions after the import of modules: packages that bring their own libhdf5, and xarray's writers.

A finder at the front of ``sys.meta_path`` looks at those names only. It finds the module by the other finders, and
keeps the loader that they made. The loader calls us once it has run the module.
"""

from __future__ import annotations

import sys
from importlib.machinery import ExtensionFileLoader, SourceFileLoader, SourcelessFileLoader
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

WATCHED = frozenset({"esmpy", "fiona", "netCDF4", "Nio", "openpmd_api", "osgeo", "pyogrio", "rasterio", "tables"})
# these are made for each module, so that a change to one affects no other module; other loaders stay unchanged
_OWN_LOADERS = (ExtensionFileLoader, SourceFileLoader, SourcelessFileLoader)


class Watcher:
    """A meta path finder that adds a call after the import of some modules."""

    def __init__(self, calls: Mapping[str, Callable[[], None]]) -> None:
        self.calls = calls

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec that the other finders give, its loader calling us after the module has run."""
        if fullname not in self.calls:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                self._wrap(spec.loader, self.calls[fullname])
                return spec
        return None

    def _wrap(self, loader: Any, after: Callable[[], None]) -> None:
        if not isinstance(loader, _OWN_LOADERS):
            return  # the calls of our API look again
        run = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            run(module)
            after()

        vars(loader)["exec_module"] = exec_module


def install(calls: Mapping[str, Callable[[], None]]) -> None:
    """Put a watcher in front of the other finders, once. ``calls`` has what to call, by the name of a module."""
    if not any(isinstance(finder, Watcher) for finder in sys.meta_path):
        sys.meta_path.insert(0, Watcher(calls))
