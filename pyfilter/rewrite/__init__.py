# SPDX-License-Identifier: BSD-3-Clause
"""A whole file copied, some of its datasets compressed on the way: what ``pyfilter compress`` does.

rules.py has the user's request (wishes.py reads it as text, bounds_file.py as TOML, recommendations.py from a
community's table). plan.py decides the filters of each dataset, alternatives.py finds the smallest on a sample,
rounding.py detects values that were rounded before. copy.py copies the file, values.py attributes and references,
netcdf3.py converts netCDF-3 files to HDF5. job.py puts it together and checks the result, batch.py does so for many
files.
"""

from __future__ import annotations

from pyfilter.rewrite.batch import Result, compress_files
from pyfilter.rewrite.bounds_file import BoundsFile
from pyfilter.rewrite.job import Report, Row, compress_file
from pyfilter.rewrite.rules import Rules

__all__ = ["BoundsFile", "Report", "Result", "Row", "Rules", "compress_file", "compress_files"]
