# SPDX-License-Identifier: BSD-3-Clause
"""The ``pyfilter`` command: one module a subcommand, main.py puts them together."""

from __future__ import annotations

from pyfilter.cli.main import app, main

__all__ = ["app", "main"]
