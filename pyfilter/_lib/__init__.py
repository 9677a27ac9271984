# SPDX-License-Identifier: BSD-3-Clause
"""Calls into C libraries by ctypes, which drops the GIL for the length of each; nothing else in the package uses it.

Ours is libh5pyfilter.so: abi.py declares its functions, library.py finds and loads it, and host.py, cuda.py and
device_chunks.py call it. Libraries that other packages have loaded: hdf5.py (libhdf5) and netcdf_c.py (netCDF-C).
"""
