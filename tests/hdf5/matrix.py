# SPDX-License-Identifier: BSD-3-Clause
"""Every HDF5 writes, every HDF5 reads: each libhdf5 by itself in a process of its own, by ctypes on its C functions.

`python tests/hdf5/matrix.py LIBHDF5...` prints the table (scripts/hdf5-matrix finds the libraries). HDF5_PLUGIN_PATH
leads to the plugin, as for any program.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import tempfile
from ctypes import POINTER, byref, c_char_p, c_int, c_int64, c_size_t, c_uint, c_uint64, c_void_p
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FILTER_ID = 52907
SHAPE, CHUNK = (48, 40), (16, 40)
TYPES = {"<f4": "IEEE_F32LE", ">f4": "IEEE_F32BE", "<f8": "IEEE_F64LE", ">f8": "IEEE_F64BE"} | {
    f"{order}{kind}{size}": f"STD_{kind.upper()}{8 * size}{'LE' if order == '<' else 'BE'}"
    for order in "<>"
    for kind in "iu"
    for size in (1, 2, 4, 8)
}
#: name: codec, bound (of floats; of integers in brackets), parameters
CODECS = {
    "cuszp2": (1, 2.0**-8, None, 0),
    "lossless": (2, 0.0, 0, 0),
    "hierarchical_delta": (3, 2.0**-8, 2, 0),
    "lorenzo": (4, 2.0**-8, None, 0),
    "lorenzo_huffman": (4, 2.0**-8, None, 2 << 8),
    "particles": (5, 2.0**-8, None, 1),  # in an order of its own
    "progressive": (6, 2.0**-8, None, 0),
}
POSITIONS, POSITIONS_CHUNK, CELLS = (640, 3), (256, 3), 16


def values_of(codec: str, dtype: str) -> NDArray[Any]:
    """What is written, in the host's byte order; of particles one in a cell."""
    if codec == "particles":
        draw = np.random.default_rng(1)
        cells = draw.permutation(CELLS**3)[: POSITIONS[0]]
        inside = draw.uniform(0.25, 0.75, POSITIONS)
        positions: NDArray[Any] = (np.stack(np.unravel_index(cells, (CELLS,) * 3), -1) + inside) / CELLS
        return positions.astype(np.dtype(dtype).newbyteorder("="))
    y, x = np.indices(SHAPE)
    wave = np.sin(x / 9) * np.cos(y / 7)
    kind = np.dtype(dtype).newbyteorder("=")
    return wave.astype(kind) if kind.kind == "f" else (60 + 50 * wave).astype(kind)


def aligned(codec: str, values: NDArray[Any]) -> NDArray[np.float64]:
    """Particles in the order of their cells, chunk by chunk, since they may have been moved in those."""
    parts = [values.astype("f8")]
    if codec == "particles":
        parts = [
            part[np.lexsort(np.floor(part * CELLS).T)]
            for part in np.split(parts[0], range(POSITIONS_CHUNK[0], len(values), POSITIONS_CHUNK[0]))
        ]
    return np.concatenate(parts)


def cases() -> list[tuple[str, str, float]]:
    """Codec, dtype and the bound that the values must keep."""
    found = []
    for codec, (_, bound, integer_bound, _) in CODECS.items():
        for dtype in TYPES:
            of_type = bound if np.dtype(dtype).kind == "f" else integer_bound
            if of_type is not None:
                found.append((codec, dtype, float(of_type)))
    return found


class Hdf5:
    """One libhdf5."""

    def __init__(self, path: str) -> None:
        self.c = ctypes.CDLL(path)
        ids = ("H5Fcreate", "H5Fopen", "H5Screate_simple", "H5Pcreate", "H5Dcreate2", "H5Dopen2")
        for name in ids:
            getattr(self.c, name).restype = c_int64
        self.c.H5Fcreate.argtypes = [c_char_p, c_uint, c_int64, c_int64]
        self.c.H5Fopen.argtypes = [c_char_p, c_uint, c_int64]
        self.c.H5Screate_simple.argtypes = [c_int, POINTER(c_uint64), POINTER(c_uint64)]
        self.c.H5Pcreate.argtypes = [c_int64]
        self.c.H5Pset_chunk.argtypes = [c_int64, c_int, POINTER(c_uint64)]
        self.c.H5Pset_filter.argtypes = [c_int64, c_int, c_uint, c_size_t, POINTER(c_uint)]
        self.c.H5Dcreate2.argtypes = [c_int64, c_char_p, *[c_int64] * 5]
        self.c.H5Dopen2.argtypes = [c_int64, c_char_p, c_int64]
        self.c.H5Dwrite.argtypes = self.c.H5Dread.argtypes = [*[c_int64] * 5, c_void_p]
        self.c.H5Dclose.argtypes = self.c.H5Fclose.argtypes = [c_int64]
        self.check(self.c.H5open(), "H5open")

    def check(self, result: int, what: str) -> int:
        if result < 0:
            raise OSError(f"{what} failed")
        return result

    def version(self) -> str:
        numbers = [c_uint() for _ in range(3)]
        self.c.H5get_libversion(*map(byref, numbers))
        return ".".join(str(number.value) for number in numbers)

    def id(self, name: str) -> int:
        return c_int64.in_dll(self.c, f"{name}_g").value

    def type(self, dtype: str) -> int:
        return self.id(f"H5T_{TYPES[dtype]}")

    def write(self, path: str) -> None:
        file = self.check(self.c.H5Fcreate(path.encode(), 2, 0, 0), "H5Fcreate")
        for codec, dtype, bound in cases():
            name = f"{codec}{dtype}"
            shape, of_chunk = (POSITIONS, POSITIONS_CHUNK) if codec == "particles" else (SHAPE, CHUNK)
            dims, chunk = (c_uint64 * 2)(*shape), (c_uint64 * 2)(*of_chunk)
            space = self.check(self.c.H5Screate_simple(2, dims, None), "H5Screate_simple")
            number, _, _, parameters = CODECS[codec]
            halves = np.array([bound]).view(np.uint32).tolist()
            words = [1, number, 0 if codec == "lossless" else 1, *halves, parameters]
            plist = self.check(self.c.H5Pcreate(self.id("H5P_CLS_DATASET_CREATE_ID")), "H5Pcreate")
            self.check(self.c.H5Pset_chunk(plist, 2, chunk), "H5Pset_chunk")
            self.check(self.c.H5Pset_filter(plist, FILTER_ID, 0, 6, (c_uint * 6)(*words)), f"H5Pset_filter {name}")
            made = self.c.H5Dcreate2(file, name.encode(), self.type(dtype), space, 0, plist, 0)
            dataset, values = self.check(made, f"H5Dcreate2 {name}"), values_of(codec, dtype)
            native = self.type("<" + dtype[1:])
            self.check(self.c.H5Dwrite(dataset, native, 0, 0, 0, values.ctypes.data), f"H5Dwrite {name}")
            self.c.H5Dclose(dataset)
        self.check(self.c.H5Fclose(file), "H5Fclose")

    def read(self, path: str) -> None:
        file = self.check(self.c.H5Fopen(path.encode(), 0, 0), "H5Fopen")
        for codec, dtype, bound in cases():
            name, expected = f"{codec}{dtype}", values_of(codec, dtype)
            dataset = self.check(self.c.H5Dopen2(file, name.encode(), 0), f"H5Dopen2 {name}")
            values = np.full_like(expected, 99)
            native = self.type("<" + dtype[1:])
            self.check(self.c.H5Dread(dataset, native, 0, 0, 0, values.ctypes.data), f"H5Dread {name}")
            error = np.abs(aligned(codec, values) - aligned(codec, expected)).max()
            if not error <= bound:
                raise OSError(f"{name} is off by {error}")
            self.c.H5Dclose(dataset)
        self.check(self.c.H5Fclose(file), "H5Fclose")


def worker(library: str, *jobs: str) -> None:
    """Each job is write:FILE or read:FILE; prints the version and what came of each."""
    hdf5 = Hdf5(library)
    results: list[str] = []
    for job in jobs:
        how, _, path = job.partition(":")
        try:
            (hdf5.write if how == "write" else hdf5.read)(path)
            results.append("")
        except OSError as error:
            results.append(str(error))
    print(json.dumps([hdf5.version(), results]))


def run(library: str, jobs: list[str]) -> tuple[str, list[str]]:
    """A worker's answer, from a process that has only this libhdf5."""
    command = [sys.executable, __file__, "--worker", library, *jobs]
    env = dict(os.environ)
    if "/" in library:  # what a wheel brings for it lies beside it
        env["LD_LIBRARY_PATH"] = str(Path(library).parent)
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=env)
    if done.returncode != 0:
        raise OSError(f"{library}: {done.stderr}")
    version, results = json.loads(done.stdout.splitlines()[-1])
    return version, results


def matrix(libraries: list[str], folder: Path) -> dict[tuple[str, str], str]:
    """What went wrong ("" for nothing) by the versions of writer and reader."""
    files = [str(folder / f"{number}.h5") for number in range(len(libraries))]
    table: dict[tuple[str, str], str] = {}
    versions = []
    for library, file in zip(libraries, files, strict=True):
        version, (wrong,) = run(library, [f"write:{file}"])
        versions.append(version)
        if wrong:
            raise OSError(f"HDF5 {version} cannot write: {wrong}")
    for library in libraries:
        version, results = run(library, [f"read:{file}" for file in files])
        table |= {(writer, version): wrong for writer, wrong in zip(versions, results, strict=True)}
    return table


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = matrix(sys.argv[1:], Path(folder))
    readers = list(dict.fromkeys(reader for _, reader in table))
    print(f"{len(cases())} datasets in each cell: {', '.join(CODECS)}; dtypes in both byte orders.\n")
    print(f"| written by | {' | '.join(f'read by {reader}' for reader in readers)} |")
    print("|---" * (1 + len(readers)) + "|")
    for writer in readers:
        print(f"| {writer} | {' | '.join(table[writer, reader] or 'all' for reader in readers)} |")
    sys.exit(any(table.values()))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        worker(*sys.argv[2:])
    else:
        main()
