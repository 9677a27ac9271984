# SPDX-License-Identifier: BSD-3-Clause
"""What the tables of benchmarks on a GPU begin with."""

from __future__ import annotations

import shlex
import sys

import cupy

from benchmarks.report import origin


def gpu_origin(benchmark: str, more: str = "") -> list[str]:
    """Return the lines of `origin` for the command that runs now, and the current device, with more behind its name."""
    device = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
    command = shlex.join(["python", "-m", f"benchmarks.{benchmark}", *sys.argv[1:]])
    return [*origin(command), f"GPU: {device['name'].decode()}{more}"]
