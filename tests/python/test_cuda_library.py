# SPDX-License-Identifier: BSD-3-Clause
"""The second library, cuda/libh5pyfilter_cuda.so: when it is loaded, and what is said where it is missing or wrong."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import h5py
import numpy as np
import pytest

import pyfilter
from pyfilter._lib import library

from .support import clean_environment, run_script

REFUSED = """
import pyfilter
from pyfilter._lib import cuda
assert not pyfilter.config().cuda and pyfilter.config().cuda_devices == 0
for call in (cuda.require, lambda: pyfilter.config(backend="cuda"), lambda: cuda.check_fault(1)):
    try:
        call()
    except pyfilter.errors.DeviceError as error:
        print(error)
    else:
        raise SystemExit("no error")
assert pyfilter.config().backend == "auto"
import numpy as np
assert np.array_equal(pyfilter.decode(pyfilter.encode(np.arange(9), pyfilter.Lossless())), np.arange(9))
"""


def environment(path: Path | str) -> dict[str, str]:
    """Return the environment of a process whose CUDA library would be ``path``."""
    return clean_environment(PYFILTER_CUDA_LIBRARY=str(path))


def compiled(folder: Path, text: str) -> Path:
    """Return a shared library made from C, a stand-in for the CUDA library."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("a C compiler is not here")
    (folder / "other.c").write_text(text, encoding="utf-8")
    command = [compiler, "-shared", "-fPIC", "-o", folder / "other.so", folder / "other.c"]
    subprocess.run(list(map(str, command)), check=True)
    return folder / "other.so"


def test_a_missing_or_wrong_library_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "text.so").write_text("no library", encoding="utf-8")
    old = """
        struct version { const char* release; unsigned format, sizes[5]; };
        void* pyfilter_cuda_open(const void* version, const void* host, struct version* own) {
          own->release = "0.0.7"; own->format = 2; return 0;
        }"""
    cases = {
        tmp_path
        / "none.so": f"no CUDA library: {tmp_path}/none.so is not there; pip install 'h5pyfilter[gpu]', or build with",
        tmp_path / "text.so": "CUDA library cannot be loaded: ",
        compiled(tmp_path, "int nothing;"): "other.so is not pyfilter's CUDA library",
    }
    for path, text in cases.items():
        lines = run_script(REFUSED, env=environment(path)).stdout.splitlines()
        assert len(lines) == 3
        assert all(text in line for line in lines), lines
    lines = run_script(REFUSED, env=environment(compiled(tmp_path, old))).stdout.splitlines()
    wanted = f"belongs to pyfilter 0.0.7 (frame format 2), this is {pyfilter.__version__}"
    assert all(wanted in line for line in lines), lines


def test_programs_that_only_read_do_not_load_it(tmp_path: Path) -> None:
    """HDF5 opens all lib*.so of a plugin's folder, so the CUDA library lies in a folder of its own."""
    h5dump = shutil.which("h5dump")
    if h5dump is None:
        pytest.skip("h5dump is not installed")
    own = library.path()
    assert own is not None
    (tmp_path / "cuda").mkdir()
    shutil.copy(own, tmp_path / "libh5pyfilter.so")
    shutil.copy(own, tmp_path / "cuda" / "libh5pyfilter_cuda.so")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=np.sin(np.arange(9000.0)), chunks=True, **pyfilter.Cuszp2(absolute=1e-3))
    env = clean_environment(HDF5_PLUGIN_PATH=str(tmp_path), LD_DEBUG="files", LC_ALL="C")
    env.pop("PYFILTER_BACKEND", None)
    done = subprocess.run([h5dump, tmp_path / "a.h5"], env=env, capture_output=True, text=True, check=True)
    assert f"{tmp_path}/libh5pyfilter.so" in done.stderr
    assert "libh5pyfilter_cuda" not in done.stderr
