# SPDX-License-Identifier: BSD-3-Clause
"""Moves chunks between arrays and files; `pyfilter.read`, `write` and `create_dataset` (h5.py) are made of this.

layout.py has chunk shapes and the grid of chunks, selection.py the selections of users. pipeline.py decides whether
chunks may bypass HDF5's pipeline, and how they are encoded. stored.py finds and reads chunks in the file. transfer.py
compresses and decompresses chunks: grids.py many in one call of the library, threads of Python what is unusual.
zero_extents.py creates datasets that never have a value.
"""
