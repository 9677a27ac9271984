# SPDX-License-Identifier: BSD-3-Clause
"""A second implementation of docs/format.md, for tests: decoder, writer of odd frames, hostile frames (README.md)."""
