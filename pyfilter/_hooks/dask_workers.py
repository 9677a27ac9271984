# SPDX-License-Identifier: BSD-3-Clause
"""Has every process of dask know the filter, its workers too, whenever and by whom they were started.

dask calls what packages name in the entry point group ``dask.sizeof`` (pyproject.toml) once in each process that
imports it. To name this module there is enough: it cannot be imported without pyfilter, whose import registers the
filter. So a worker can read data that was opened in a process of another kind.
"""

from __future__ import annotations


def register_sizeof(_sizeof: object) -> None:
    """Add nothing to dask's table of sizes; importing this module is enough."""
