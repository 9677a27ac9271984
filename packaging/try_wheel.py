# SPDX-License-Identifier: BSD-3-Clause
"""Uses an installed pyfilter as a newcomer would, with only its wheel installed. Exits with 1 if anything fails.

The argument ``--cuda`` says that the CUDA library of another wheel must be there.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np

import pyfilter

READ_ONLY_BY_PLUGIN = """
import sys, h5py
with h5py.File(sys.argv[1]) as file:
    print(float(abs(file["t"][...] - file["original"][...]).max()))
assert "pyfilter" not in sys.modules
"""


def require(condition: bool, text: str) -> None:
    """Exit with a message if a condition does not hold."""
    if not condition:
        raise SystemExit(f"the wheel does not work: {text}")


def fields() -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Return a smooth field with missing values."""
    x = np.linspace(0, 20, 200, dtype=np.float32)
    values = np.sin(x)[:, None, None] * np.cos(x[:100])[None, :, None] + 0.1 * np.sin(5 * x[:50])
    values[:20, :10] = np.nan
    return values.astype(np.float32)


def main(cuda: bool) -> None:
    """Try the package, the plugin and the command."""
    installed = importlib.metadata.distribution("h5pyfilter")
    place = Path(str(installed.locate_file("pyfilter"))).resolve()
    require(Path(pyfilter.__file__).resolve().parent == place, f"{pyfilter.__file__} was imported, not {place}")
    require(installed.version == pyfilter.__version__, f"{installed.version} is not {pyfilter.__version__}")
    names = {point.group for point in importlib.metadata.entry_points(name="pyfilter")}
    require({"xarray.backends", "dask.sizeof", "zarr.codecs", "console_scripts"} <= names, f"entry points: {names}")
    values = fields()
    for cls in pyfilter.FILTERS.values():
        if cls is pyfilter.Particles:
            continue
        codec = cls() if cls is pyfilter.Lossless else cls(absolute=1e-3)
        found = pyfilter.verify(values, pyfilter.decode(pyfilter.encode(values, codec)), codec)
        require(found.ok, f"{codec}: {found}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.h5"
        with h5py.File(path, "w") as file:
            file["original"] = np.nan_to_num(values)
            file.create_dataset("t", data=np.nan_to_num(values), chunks=(50, 50, 50), **pyfilter.Lorenzo(absolute=1e-3))
        env = {**os.environ, "HDF5_PLUGIN_PATH": pyfilter.PLUGIN_PATH}
        command = [sys.executable, "-c", READ_ONLY_BY_PLUGIN, str(path)]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        require(done.returncode == 0 and float(done.stdout) <= 1e-3, f"as a plugin: {done.stdout}{done.stderr}")
        script = Path(sys.prefix) / "bin" / "pyfilter"
        start = [str(script)] if script.is_file() else [sys.executable, "-m", "pyfilter"]
        for words in (["compress", str(path), f"{folder}/b.h5", "--relative", "1e-4"], ["check", f"{folder}/b.h5"]):
            done = subprocess.run([*start, *words], capture_output=True, text=True, check=False)
            require(done.returncode == 0, f"{' '.join(words)}: {done.stdout}{done.stderr}")
        done = subprocess.run([*start, "doctor"], capture_output=True, text=True, check=False)
        require(done.returncode == 0, f"doctor: {done.stdout}{done.stderr}")
        require(not cuda or "library loaded" in done.stdout, f"the CUDA library: {done.stdout}")
    versions = f"h5py {h5py.__version__}, NumPy {np.__version__}, Python {platform.python_version()}"
    print(f"h5pyfilter {installed.version} works in {sys.prefix}: {platform.machine()}, {versions}")


if __name__ == "__main__":
    main("--cuda" in sys.argv[1:])
