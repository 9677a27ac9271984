# SPDX-License-Identifier: BSD-3-Clause
"""What goes wrong around the filter: ended processes, full disks, damaged files, readers beside writers, threads."""
