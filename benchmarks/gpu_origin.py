# SPDX-License-Identifier: BSD-3-Clause
"""The lines at the beginning of GPU benchmarks' tables."""

from __future__ import annotations

import shlex
import sys

import cupy

from benchmarks.report import origin


def gpu_origin(benchmark: str, more: str = "") -> list[str]:
    """Return the lines of `origin` for the running command and the current device, with a text behind its name."""
    device = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
    command = shlex.join(["python", "-m", f"benchmarks.{benchmark}", *sys.argv[1:]])
    return [*origin(command), f"GPU: {device['name'].decode()}{more}"]
