# SPDX-License-Identifier: BSD-3-Clause
"""Compares values with stored ones: by an error bound (bounds.py), or bit for bit (same_bits.py)."""

from pyfilter.verification.bounds import Comparison, Verification, verify

__all__ = ["Comparison", "Verification", "verify"]
