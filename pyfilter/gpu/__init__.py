# SPDX-License-Identifier: BSD-3-Clause
"""Arrays on CUDA devices, in and out. `pyfilter.encode`, `decode`, `write`, `read` and `create_dataset` come here.

arrays.py recognises device arrays, frames.py encodes and decodes without a file, ranges.py finds value ranges.

writing.py, reading.py
    move chunks between a device and a file (tiling.py: boxes to chunks and back; staging.py: streams with buffers).
host_writing.py, host_reading.py
    send values in host memory through several devices (devices.py: the argument ``devices``; channels.py: threads of
    the library; device_threads.py: threads of Python; host_memory.py: copies; fallback.py: batches that the CPU takes
    over).

CuPy is imported when a device is first used, for everything but encoding and decoding.
"""

from __future__ import annotations

from pyfilter._lib import cuda, library
from pyfilter.gpu.arrays import is_device_array


def device_count() -> int:
    """Return the number of CUDA devices that this process can use; the call initialises CUDA."""
    return cuda.device_count()


def release_memory() -> None:
    """Give the device memory that the library pools back to the driver.

    For each device the library keeps up to 512 MiB, or 1/32 of the device's memory if that is more.
    Memory in CuPy's own pools is freed by ``cupy.get_default_memory_pool().free_all_blocks()``.
    """
    if device_count() > 0:
        library.configure("release_memory", "1")


__all__ = ["device_count", "is_device_array", "release_memory"]
