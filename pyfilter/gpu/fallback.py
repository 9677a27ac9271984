# SPDX-License-Identifier: BSD-3-Clause
"""Batches of host values that the CPU takes over because a device has no memory for them, and the warning."""

from __future__ import annotations

import threading
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyfilter.gpu.staging import Channel


class Fallbacks:
    """Counts the batches that the CPU took over; thread-safe."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._lock = threading.Lock()
        self._count = 0
        self._reason = ""

    def take_over(self, channel: Channel, error: Exception) -> None:
        """Count a batch that failed on a channel, and free the channel's buffers."""
        channel.drop()
        with self._lock:
            self._count += 1
            self._reason = self._reason or f"device {channel.number}: {error}"

    def warn(self, batches: int) -> None:
        """Warn if the CPU took over any of ``batches`` batches."""
        if self._count:
            message = f"{self._count} of {batches} batches of chunks were {self._what} by the CPU: {self._reason}"
            warnings.warn(message, RuntimeWarning, stacklevel=4)
