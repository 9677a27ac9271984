# SPDX-License-Identifier: BSD-3-Clause
"""Raises an error: only PyPI's distribution ``pyfilter`` imports a module of this name (_hooks/foreign.py).

A folder comes before the file ``pyfilter.py`` that it installs.
"""

from pyfilter._hooks import foreign

raise ImportError(foreign.OVERWRITTEN)
