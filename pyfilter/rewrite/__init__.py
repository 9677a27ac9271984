# SPDX-License-Identifier: BSD-3-Clause
"""A whole file copied, some of its datasets compressed on the way: what ``pyfilter compress`` does.

rules.py has what is asked for (wishes.py reads it as text, bounds_file.py as TOML, recommendations.py
a community's table), plan.py decides what each dataset
gets, alternatives.py tries on a sample what is smallest, rounding.py sees what was rounded before. copy.py copies the
file, values.py what is attached to objects or points to them, netcdf3.py brings netCDF-3 files into HDF5. job.py puts
it together and checks the result, batch.py does so for many files.
"""

from __future__ import annotations

from pyfilter.rewrite.batch import Result, compress_files
from pyfilter.rewrite.bounds_file import BoundsFile
from pyfilter.rewrite.job import Report, Row, compress_file
from pyfilter.rewrite.rules import Rules

__all__ = ["BoundsFile", "Report", "Result", "Row", "Rules", "compress_file", "compress_files"]
