# SPDX-License-Identifier: BSD-3-Clause
"""Threads for concurrent calls, such as those of dask's workers: each call gets its share."""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyfilter import settings
from pyfilter._lib import library

if TYPE_CHECKING:
    from collections.abc import Iterator

_lock = threading.Lock()
_calls = 0


@contextmanager
def share_of_threads() -> Iterator[None]:
    """Have the calls in the block use the threads of the settings divided by the number of such blocks at work.

    In a worker of a cluster these are at most the worker's threads, since each of them stands for a core.
    """
    global _calls
    before = library.config("local_threads") or "0"
    threads = min(settings.config().threads, _worker_threads())
    with _lock:
        _calls += 1
        share = max(1, threads // _calls)
    library.configure("local_threads", str(share))
    try:
        yield
    finally:
        library.configure("local_threads", before)
        with _lock:
            _calls -= 1


def _worker_threads() -> int:
    """Return the threads of this process's worker of dask.distributed, the most that can be set where it is none."""
    distributed = sys.modules.get("distributed")
    try:
        return int(distributed.get_worker().state.nthreads) if distributed is not None else settings.MAX_THREADS
    except ValueError:  # no worker here
        return settings.MAX_THREADS
