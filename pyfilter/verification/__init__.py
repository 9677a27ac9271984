# SPDX-License-Identifier: BSD-3-Clause
"""Compares values with stored ones: to a bound (bounds.py), bit for bit (same_bits.py), by field (records.py)."""

from pyfilter.verification.bounds import Comparison, Verification, verify
from pyfilter.verification.records import verify_records

__all__ = ["Comparison", "Verification", "verify", "verify_records"]
