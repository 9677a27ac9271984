# SPDX-License-Identifier: BSD-3-Clause
"""Groups of particle fields: positions, velocities, ids and other fields of the same particles, kept aligned.

`write` may sort the particles, chunk by chunk and all fields alike, where that makes the chunk's fields smaller
(rows.py): positions up to six times at coarse bounds. Positions that keep their order may be stored coordinate by
coordinate (coordinates.py). `read` gives the fields back. Codec: `pyfilter.Particles`.
"""

from pyfilter.particles.groups import CHUNK_PARTICLES, GROUP_ATTRIBUTE, ORDER_ATTRIBUTE, read, write

__all__ = ["CHUNK_PARTICLES", "GROUP_ATTRIBUTE", "ORDER_ATTRIBUTE", "read", "write"]
