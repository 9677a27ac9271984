# SPDX-License-Identifier: BSD-3-Clause
"""Leaks, peak memory, and what the plugin does on its own: a C program that loads the library as HDF5 does."""
