# SPDX-License-Identifier: BSD-3-Clause
"""Tests of pyfilter.zarr. The folder is not named zarr, which would hide the package of that name."""
