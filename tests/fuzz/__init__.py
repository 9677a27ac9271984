# SPDX-License-Identifier: BSD-3-Clause
"""Fuzz targets and their replay: see README.md."""
