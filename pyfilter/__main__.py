# SPDX-License-Identifier: BSD-3-Clause
"""``python -m pyfilter``: the command, also where its script is not on the PATH."""

from __future__ import annotations

from pyfilter.cli import main

main()
