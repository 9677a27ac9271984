# SPDX-License-Identifier: BSD-3-Clause
"""Zarr is optional: without it these tests are not collected."""

from __future__ import annotations

import importlib.util

collect_ignore_glob = (
    [] if importlib.util.find_spec("zarr") and importlib.util.find_spec("numcodecs") else ["test_*.py"]
)
