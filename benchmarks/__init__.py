# SPDX-License-Identifier: BSD-3-Clause
"""Speed and ratio against memcpy and other filters; run from the repository's root (README.md). Not installed."""
