# SPDX-License-Identifier: BSD-3-Clause
"""What moves chunks between arrays and files; `pyfilter.read`, `write` and `create_dataset` (h5.py) are made of it.

layout.py has chunk shapes and the grid of chunks, selection.py what users select, pipeline.py whether chunks may go
past HDF5's pipeline and how they are encoded then, stored.py where chunks are in the file and their bytes. transfer.py
compresses and decompresses chunks by several threads, small_chunks.py many of them in one call of the library,
zero_extents.py creates datasets that never have a value.
"""
