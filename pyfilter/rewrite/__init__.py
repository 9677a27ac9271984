# SPDX-License-Identifier: BSD-3-Clause
"""A whole file copied, some of its datasets compressed on the way: what ``pyfilter compress`` does.

plan.py decides what each dataset gets, copy.py copies the file, values.py what is attached to objects or points to
them, netcdf3.py brings netCDF-3 files into HDF5, job.py puts it together and checks the result.
"""

from __future__ import annotations

from pyfilter.rewrite.job import Report, Row, compress_file
from pyfilter.rewrite.plan import Rules

__all__ = ["Report", "Row", "Rules", "compress_file"]
