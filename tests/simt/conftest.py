# SPDX-License-Identifier: BSD-3-Clause
"""The CUDA library with kernels that run on a CPU: built once, for all processes of pytest-xdist."""

from __future__ import annotations

import fcntl
import os
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from pyfilter._lib import library

ROOT = Path(__file__).resolve().parents[2]
BOOST = ("/usr/include/boost/context/detail/fcontext.hpp", "/usr/local/include/boost/context/detail/fcontext.hpp")


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of this run."""
    base = tmp_path_factory.getbasetemp()
    folder = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    if platform.machine() != "x86_64":
        pytest.skip("kernels have addresses of shared memory in 32 bits, for which there is room on x86-64")
    if not any(Path(path).exists() for path in BOOST):
        pytest.skip("Boost.Context is not here: scripts/test installs libboost-context-dev")
    return folder


@pytest.fixture(scope="session")
def simt_library(shared_folder: Path) -> Path:
    """PYFILTER_SIMT_LIBRARY, or one that is built for this run. The host library is that of all tests."""
    named = os.environ.get("PYFILTER_SIMT_LIBRARY")
    if named:
        return Path(named).resolve()
    cmake = shutil.which("cmake")
    if cmake is None or shutil.which("ninja") is None:
        pytest.skip("CMake or Ninja is not here: scripts/test installs them")
    build = shared_folder / "simt"
    built = build / "cuda" / "libh5pyfilter_cuda.so"
    with (shared_folder / "simt.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # whoever comes first builds it
        if not built.exists():
            for command in (
                [cmake, "-S", str(ROOT), "-B", str(build), "-G", "Ninja", "-DPYF_SIMT=ON"],
                [cmake, "--build", str(build), "--target", "h5pyfilter_cuda"],
            ):
                done = subprocess.run(command, capture_output=True, text=True, timeout=1200, check=False)
                assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return built


@pytest.fixture(scope="session")
def simt_environment(simt_library: Path) -> dict[str, str]:
    """Of a process whose kernels run on the CPU."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "PYFILTER_"))}
    host = library.path()
    assert host is not None
    return {
        **kept,
        "PYFILTER_LIBRARY": str(host),
        "PYFILTER_CUDA_LIBRARY": str(simt_library),
        "PYTHONPATH": path,
    }
