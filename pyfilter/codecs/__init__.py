# SPDX-License-Identifier: BSD-3-Clause
"""The codecs: one frozen dataclass each. What they take in common is in base.py."""

from __future__ import annotations

from pyfilter.codecs.auto import Auto
from pyfilter.codecs.base import Codec
from pyfilter.codecs.cuszp2 import Cuszp2
from pyfilter.codecs.hierarchical_delta import HierarchicalDelta
from pyfilter.codecs.lorenzo import Lorenzo
from pyfilter.codecs.lossless import Lossless
from pyfilter.codecs.particles import Particles
from pyfilter.codecs.progressive import Progressive

#: every codec class by its name in registry.json
FILTERS: dict[str, type[Codec]] = {
    cls.codec_name: cls for cls in (Cuszp2, HierarchicalDelta, Lorenzo, Lossless, Particles, Progressive)
}

__all__ = ["FILTERS", "Auto", "Codec", "Cuszp2", "HierarchicalDelta", "Lorenzo", "Lossless", "Particles", "Progressive"]
