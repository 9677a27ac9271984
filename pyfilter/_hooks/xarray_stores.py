# SPDX-License-Identifier: BSD-3-Clause
"""Has xarray save through the stores of pyfilter/xarray/stores.py, once it has been imported; imports no xarray itself.

xarray keeps what opens a file for writing in a table by engine. Ours behave as its own for variables without a codec;
they say so where a codec would be lost, which xarray itself cannot know.
"""

from __future__ import annotations

import sys
from typing import Any

#: modules of xarray that have the table, of present and of earlier releases
MODULES = ("xarray.backends.writers", "xarray.backends.api")
ENGINES = ("h5netcdf", "netcdf4")


class Opener:
    """Opens a store for writing; loads our stores when it is first called."""

    def __init__(self, engine: str) -> None:
        self.engine = engine

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Open a store, with the arguments of xarray's own."""
        from pyfilter.xarray import stores

        return stores.STORES[self.engine].open(*args, **kwargs)


def install() -> None:
    """Put our stores into xarray's table, where it has been imported; once."""
    for name in MODULES:
        table = getattr(sys.modules.get(name), "WRITEABLE_STORES", {})
        for engine in ENGINES:
            if engine in table and not isinstance(table[engine], Opener):
                table[engine] = Opener(engine)
