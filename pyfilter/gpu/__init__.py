# SPDX-License-Identifier: BSD-3-Clause
"""Arrays on CUDA devices, in and out. `pyfilter.encode`, `decode`, `write`, `read` and `create_dataset` come here.

arrays.py recognises device arrays, frames.py encodes and decodes without a file, ranges.py finds value ranges,
writing.py and reading.py move chunks between device and file (tiling.py: boxes to chunks and back; staging.py: streams
and buffers). host_writing.py and host_reading.py send values of host memory through several devices (devices.py: which;
channels.py: by threads of the library; device_threads.py: by those of Python; host_memory.py: copies; fallback.py: what
the CPU does instead). CuPy is imported when a device is first met, and does all but the coding itself.
"""

from __future__ import annotations

from pyfilter._lib import cuda, library
from pyfilter.gpu.arrays import is_device_array


def device_count() -> int:
    """Return the number of CUDA devices that can be used by this process; asking initialises CUDA."""
    return cuda.device_count()


def release_memory() -> None:
    """Give the device memory that the library pools back to the driver.

    Of each device that is up to 512 MiB, or a 32nd of its memory.
    Memory in CuPy's own pools is CuPy's: ``cupy.get_default_memory_pool().free_all_blocks()``.
    """
    library.configure("release_memory", "1")


__all__ = ["device_count", "is_device_array", "release_memory"]
