# SPDX-License-Identifier: BSD-3-Clause
"""The codecs: one frozen dataclass each. base.py has their common arguments."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import MappingProxyType

from pyfilter.codecs.adaptive import Adaptive
from pyfilter.codecs.auto import Auto
from pyfilter.codecs.base import Codec
from pyfilter.codecs.cuszp2 import Cuszp2
from pyfilter.codecs.hierarchical_delta import HierarchicalDelta
from pyfilter.codecs.lorenzo import Lorenzo
from pyfilter.codecs.lossless import Lossless
from pyfilter.codecs.particles import Particles
from pyfilter.codecs.progressive import Progressive
from pyfilter.registry import registry

#: every codec class by its name in registry.json; where none is named, the first that takes a bound is taken
FILTERS: dict[str, type[Codec]] = {
    cls.codec_name: cls for cls in (Cuszp2, HierarchicalDelta, Lorenzo, Lossless, Particles, Progressive, Adaptive)
}

for _spec in registry().codecs.values():  # codecs that are being added (docs/adding-a-codec.md)
    if _spec.name not in FILTERS:
        FILTERS[_spec.name] = getattr(importlib.import_module(f"{__name__}.{_spec.name}"), _spec.class_name)

#: the same and `Auto`, as command lines and configurations name them
CODECS: Mapping[str, type[Codec]] = MappingProxyType({**FILTERS, Auto.codec_name: Auto})

__all__ = [
    "CODECS",
    "FILTERS",
    "Adaptive",
    "Auto",
    "Codec",
    "Cuszp2",
    "HierarchicalDelta",
    "Lorenzo",
    "Lossless",
    "Particles",
    "Progressive",
]
