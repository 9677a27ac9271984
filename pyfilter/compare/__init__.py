# SPDX-License-Identifier: BSD-3-Clause
"""Codecs side by side on somebody's own data, at one bound: what ``pyfilter compare`` does.

sample.py takes a sample of a dataset, candidates.py lists the filters to try. worker.py tries them in a process of its
own (some filters crash on NaN), which run.py drives. figures.py and page.py show the outcome.
"""

from __future__ import annotations

from pyfilter.compare.candidates import Candidate
from pyfilter.compare.run import Outcome, compare
from pyfilter.compare.sample import Sample

__all__ = ["Candidate", "Outcome", "Sample", "compare"]
