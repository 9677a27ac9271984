# SPDX-License-Identifier: BSD-3-Clause
"""Code that runs without a call by the user: when modules are imported, workers start, or signals arrive.

imports.py: after imports of other packages; xarray_stores.py: when xarray saves; dask_workers.py: when dask starts in a
process; signals.py: when a signal ends the process; foreign.py: when another project's package of the same
name is installed.
"""
