# SPDX-License-Identifier: BSD-3-Clause
"""Compound types (structured arrays): each field has a codec of its own, or comes back bit for bit.

``compound`` has the class that names the fields' codecs, ``fields`` takes element types apart, ``frames`` encodes and
decodes arrays, ``datasets`` resolves bounds and compares datasets field by field.
"""

from __future__ import annotations

from pyfilter.records.compound import Compound
from pyfilter.records.frames import Column, RecordsInfo

__all__ = ["Column", "Compound", "RecordsInfo"]
