# SPDX-License-Identifier: BSD-3-Clause
"""Recommends a bound: the loosest that keeps a stated quality, found on a sample and verified on all of the data.

metrics.py and windows.py measure quality, real_information.py what bits tell, pieces.py compresses and decodes,
search.py looks for the bound, pictures.py draws what came of it.
"""

from __future__ import annotations

from pyfilter.recommendation.search import METRICS, Recommendation, Step, recommend

__all__ = ["METRICS", "Recommendation", "Step", "recommend"]
