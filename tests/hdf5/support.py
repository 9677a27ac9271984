# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of the filter share: cd_values, data, fresh interpreters and command-line programs.

cd_values are packed here from docs/cd_values.md and not by pyfilter, so that these tests check the document too.
Scripts for fresh interpreters import this module: it loads no HDF5, since what is loaded when is what they are about.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

FILTER_ID = 52907
CUSZP2, LOSSLESS, HIERARCHICAL_DELTA, LORENZO, PARTICLES = 1, 2, 3, 4, 5
NONE, ABSOLUTE, RELATIVE = 0, 1, 2
STAMP = 0x31465950
DTYPES = {"f4": 1, "f8": 2, "i1": 3, "u1": 4, "i2": 5, "u2": 6, "i4": 7, "u4": 8, "i8": 9, "u8": 10}
COMPLEX = {"c8": 11, "c16": 12}
TESTS = Path(__file__).resolve().parent.parent
TIMEOUT = 60

Array = NDArray[Any]


def halves(value: int) -> tuple[int, int]:
    """64 bits as two words, low first."""
    return value & 0xFFFFFFFF, value >> 32


def double(value: float) -> tuple[int, int]:
    """A double as two words, low first."""
    return halves(struct.unpack("<Q", struct.pack("<d", value))[0])


def words(bound: float = 1e-3, mode: int = ABSOLUTE, codec: int = CUSZP2, parameters: int = 0) -> tuple[int, ...]:
    """The user form of cd_values."""
    return (1, codec, mode, *double(bound), parameters)


def lossless() -> tuple[int, ...]:
    """The shortest user form."""
    return (1, LOSSLESS, NONE)


def stored(
    user: Sequence[int], dtype: str, chunk: Sequence[int], big_endian: bool = False, fill: int | None = None
) -> tuple[int, ...]:
    """The stored form that set_local has to make of a user form; `fill` is a bit pattern."""
    settings = (*user[1:], *(0,) * (6 - len(user)))
    flags = {**DTYPES, **COMPLEX}[dtype] | big_endian << 8 | (fill is not None) << 9
    dims = [word for dim in chunk for word in halves(dim)]
    return (STAMP, *settings, flags, *halves(fill or 0), len(chunk), *dims)


def compressed(values: Sequence[int] | None = None) -> dict[str, Any]:
    """Keywords of h5py's create_dataset."""
    return {"compression": FILTER_ID, "compression_opts": tuple(words() if values is None else values)}


def cd_values(dataset: Any) -> tuple[int, ...]:
    """What the file stores for our filter."""
    import h5py

    found = tuple(word & 0xFFFFFFFF for word in dataset._filters[str(FILTER_ID)])
    if len(found) > 16 and h5py.version.version_tuple < (3, 16):
        pytest.skip("this h5py reads 16 words of a filter at most")
    return found


def field(shape: Sequence[int], dtype: str = "f4", seed: int = 0) -> Array:
    """A smooth field with some noise, a few units high."""
    rng = np.random.default_rng(seed)
    grids = np.meshgrid(*(np.linspace(0, 3, n) for n in shape), indexing="ij")
    smooth = sum(np.sin((i + 2) * grid) for i, grid in enumerate(grids))
    return np.asarray(smooth + rng.normal(scale=0.01, size=tuple(shape))).astype(dtype)


def largest_error(a: Array, b: Array) -> float:
    """Largest difference, in double precision."""
    return float(np.max(np.abs(np.asarray(a, "f8") - np.asarray(b, "f8"))))


@dataclass(frozen=True)
class Header:
    """A frame's header (docs/format.md, section 2)."""

    frame: bytes

    @property
    def codec(self) -> int:
        return self.frame[8]

    @property
    def big_endian(self) -> bool:
        return bool(self.frame[10] & 2)

    @property
    def bound(self) -> float:
        return float(struct.unpack_from("<d", self.frame, 24)[0])

    @property
    def size(self) -> int:
        return 8 * self.frame[7]


def frames(dataset: Any) -> list[bytes]:
    """The chunks as they are in the file, each of which must have gone through the filter."""
    found = []
    for index in range(dataset.id.get_num_chunks()):
        info = dataset.id.get_chunk_info(index)
        assert info.filter_mask == 0, f"chunk {info.chunk_offset} was stored without the filter"
        found.append(dataset.id.read_direct_chunk(info.chunk_offset)[1])
    return found


def loaded(part: str) -> str:
    """Path of the one library in this process whose path has `part`. Skips the test where there is none."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    found = sorted({line.split(maxsplit=5)[5] for line in lines if part in line})
    if not found:
        pytest.skip(f"no library {part} in this process")
    return found[0]


def environment(plugin_folder: str | None, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a process that finds the plugin by its path only, or not at all (None)."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(("HDF5_", "PYFILTER_NUM"))}
    if plugin_folder is not None:
        env["HDF5_PLUGIN_PATH"] = plugin_folder
    env["PYTHONPATH"] = os.pathsep.join([str(TESTS), *filter(None, [env.get("PYTHONPATH")])])
    return {**env, **(extra or {})}


def run_python(script: str, *arguments: str | Path, env: Mapping[str, str]) -> str:
    """Run a script in a fresh interpreter; its output. Fails with all that it wrote."""
    command = [sys.executable, "-c", "from hdf5.support import *\n" + script, *map(str, arguments)]
    done = subprocess.run(command, env=dict(env), capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def run_tool(name: str, *arguments: str | Path, env: Mapping[str, str], check: bool = True) -> str:
    """Run a command-line program; what it wrote, to both channels. Skips the test where it is not installed."""
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    done = subprocess.run(
        [name, *map(str, arguments)],
        env=dict(env),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert not check or done.returncode == 0, f"{name}: exit status {done.returncode}\n{done.stdout}"
    assert done.returncode >= 0, f"{name} was killed by signal {-done.returncode}"
    return done.stdout


def nc_compress(variable: Any, values: Sequence[int]) -> int:
    """Set our filter on a netCDF4 variable, in the netCDF4 wheel's own libnetcdf; nc_def_var_filter's status."""
    netcdf = ctypes.CDLL(loaded("libnetcdf"))
    array = (ctypes.c_uint * len(values))(*values)
    netcdf.nc_def_var_filter.argtypes = [
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_uint,
        ctypes.c_size_t,
        ctypes.POINTER(ctypes.c_uint),
    ]
    return int(netcdf.nc_def_var_filter(variable._grpid, variable._varid, FILTER_ID, len(values), array))
