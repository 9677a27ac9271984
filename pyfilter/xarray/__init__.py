# SPDX-License-Identifier: BSD-3-Clause
"""Datasets of xarray: ``encoding`` for ``Dataset.to_netcdf``, and a ``to_netcdf`` that does what encoding cannot.

xarray can hand filters of others to h5netcdf but not to netCDF4, and forgets them when it reads a file. In here:

    saving.py     to_netcdf and encoding
    choice.py     which codec a variable gets, its bound resolved
    origin.py     which codec a variable had in the file that it was read from
    stores.py     xarray's stores, which give new variables their codec (imports the real xarray)
    engine.py     the engine "pyfilter" of ``xarray.open_dataset``
    reading.py    the stores that it reads with
    lazy.py       their arrays, decoded in parallel
"""

from __future__ import annotations

from pyfilter.xarray.origin import stored_codecs
from pyfilter.xarray.saving import ENGINES, encoding, to_netcdf

__all__ = ["ENGINES", "encoding", "stored_codecs", "to_netcdf"]
