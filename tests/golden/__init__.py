# SPDX-License-Identifier: BSD-3-Clause
"""Frames of every released format version, which must stay decodable for ever: see README.md."""
