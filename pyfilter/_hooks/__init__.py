# SPDX-License-Identifier: BSD-3-Clause
"""What runs when something else does, without a call by the user.

imports.py: after imports of other packages; xarray_stores.py: when xarray saves; dask_workers.py: when dask starts in a
process; signals.py: when a signal ends the process; foreign.py: when another project's package of the same
name is installed.
"""
