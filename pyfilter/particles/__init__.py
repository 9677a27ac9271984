# SPDX-License-Identifier: BSD-3-Clause
"""Groups of particle fields: positions, velocities, ids and other fields of the same particles, kept aligned.

`write` may sort the particles, chunk by chunk and all fields alike, if that makes the chunk's fields smaller (rows.py).
Positions get up to six times smaller at coarse bounds. Positions that keep their order may be stored coordinate by
coordinate (coordinates.py). `read` gives the fields back. Codec: `pyfilter.Particles`.
"""

from pyfilter.particles.groups import CHUNK_PARTICLES, GROUP_ATTRIBUTE, ORDER_ATTRIBUTE, read, write

__all__ = ["CHUNK_PARTICLES", "GROUP_ATTRIBUTE", "ORDER_ATTRIBUTE", "read", "write"]
