# SPDX-License-Identifier: BSD-3-Clause
"""A C program with HDF5 linked in every way: where the filter finds the functions and ids of its caller.

Dynamic and not position-independent, the program holds copies of the variables H5T_IEEE_F32LE_g and so on (copy
relocation), and libhdf5's own stay at -1. Static, HDF5 is the program; it has to export its functions for us to write.
"""

from __future__ import annotations

import ctypes.util
import importlib.util
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import h5py
import pytest

from .support import TIMEOUT, cd_values, frames, stored, words

SOURCE = Path(__file__).with_name("client.c")
STATIC_NEEDS = ["-lsz", "-lz", "-lm", "-ldl", "-lcurl", "-lcrypto"]


def build(folder: Path, *linker: str | Path) -> Path:
    """The program, or a skipped test where the compiler or the library is missing."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    program = folder / "client"
    command = [compiler, "-O1", str(SOURCE), *map(str, linker), "-lm", "-o", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    if done.returncode != 0:
        pytest.skip(f"cannot be linked here: {done.stderr.strip()[-300:]}")
    return program


def dynamic_hdf5() -> str:
    """The linker's name for a shared libhdf5 of the system."""
    for name in ("hdf5_serial", "hdf5"):
        if found := ctypes.util.find_library(name):
            return f"-l:{found}"
    pytest.skip("no shared libhdf5 in the system")


def wheel_hdf5() -> list[str]:
    """The shared libhdf5 of the h5py wheel."""
    spec = importlib.util.find_spec("h5py")
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parent.parent / "h5py.libs"
    found = sorted(folder.glob("libhdf5-*.so*"))
    if not found:
        pytest.skip("h5py brings no libhdf5 of its own")
    return [str(found[0]), f"-Wl,-rpath,{folder}", "-Wl,--allow-shlib-undefined"]


def static_hdf5() -> list[str]:
    """A libhdf5.a of the system and what it needs."""
    if shutil.which("pkg-config") is None:
        pytest.skip("no pkg-config")
    for name in ("hdf5-serial", "hdf5"):
        done = subprocess.run(["pkg-config", "--libs-only-L", name], capture_output=True, text=True, check=False)
        folders = [Path(part[2:]) for part in done.stdout.split() if part.startswith("-L")]
        for folder in folders:
            if (folder / "libhdf5.a").is_file():
                return [str(folder / "libhdf5.a"), *STATIC_NEEDS]
    pytest.skip("no static libhdf5 (Debian: libhdf5-dev)")


def run(program: Path, action: str, path: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [str(program), action, str(path)]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=TIMEOUT, check=False)


def writes(program: Path, path: Path, env: dict[str, str]) -> None:
    done = run(program, "write", path, env)
    assert done.returncode == 0, done.stderr
    with h5py.File(path) as file:
        assert cd_values(file["x"]) == stored(words()[:5], "f4", (32, 32), fill=0xC479C000)
        assert len(frames(file["x"])) == 8


@pytest.mark.parametrize("kind", [["-no-pie", "-fno-pie"], ["-pie", "-fPIE"], ["-pie", "-fPIC"]], ids=" ".join)
def test_dynamic_program(tmp_path: Path, env: dict[str, str], kind: Sequence[str]) -> None:
    program = build(tmp_path, *kind, dynamic_hdf5())
    writes(program, tmp_path / "a.h5", env)


@pytest.mark.parametrize("kind", [["-no-pie", "-fno-pie"], ["-pie", "-fPIC"]], ids=" ".join)
def test_dynamic_program_on_the_wheels_hdf5(tmp_path: Path, env: dict[str, str], kind: Sequence[str]) -> None:
    program = build(tmp_path, *kind, *wheel_hdf5())
    writes(program, tmp_path / "a.h5", env)


def test_static_program_that_exports_its_functions(tmp_path: Path, env: dict[str, str]) -> None:
    program = build(tmp_path, "-rdynamic", *static_hdf5())
    writes(program, tmp_path / "a.h5", env)


def test_static_program_that_does_not(tmp_path: Path, env: dict[str, str]) -> None:
    """It reads; it cannot write, and HDF5 says so instead of storing the chunks raw."""
    exporting = build(tmp_path, "-rdynamic", *static_hdf5())
    writes(exporting, tmp_path / "a.h5", env)
    program = build(tmp_path, *static_hdf5())
    done = run(program, "read", tmp_path / "a.h5", env)
    assert done.returncode == 0, done.stderr
    done = run(program, "write", tmp_path / "b.h5", env)
    assert done.returncode == 3
    assert "error during user callback" in done.stderr


def test_static_program_beside_a_shared_hdf5(tmp_path: Path, env: dict[str, str]) -> None:
    """The shared one's functions are in reach, but the program's ids are not theirs: as if there were none."""
    shared = dynamic_hdf5().removeprefix("-l:")
    program = build(tmp_path, *static_hdf5())
    done = run(program, "write", tmp_path / "a.h5", {**env, "LD_PRELOAD": shared})
    assert done.returncode == 3
    assert "error during user callback" in done.stderr
    assert "H5Pget_nfilters" not in done.stderr, "the shared library was asked about an id of the program"
