# SPDX-License-Identifier: BSD-3-Clause
"""docs/patches: copies of kerchunk and VirtualiZarr with them read files with our filter by their own classes."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path

import h5py
import numpy as np
import pytest
from python.support import REPOSITORY, clean_environment, run_script

import pyfilter

from .support import within

KERCHUNK = """
import sys, warnings
warnings.simplefilter("ignore")
import kerchunk.hdf, numpy as np, zarr, fsspec
assert kerchunk.__file__.startswith(sys.argv[2]), kerchunk.__file__
refs = kerchunk.hdf.SingleHdf5ToZarr(sys.argv[1], error="raise").translate()
import xarray
options = {"consolidated": False, "storage_options": {"fo": refs}}
dataset = xarray.open_dataset("reference://", engine="zarr", backend_kwargs=options, mask_and_scale=False)
np.save(sys.argv[3], dataset["v"].values)
"""
VIRTUALIZARR = """
import sys, warnings
warnings.simplefilter("ignore")
import virtualizarr, numpy as np, xarray
from virtualizarr.parsers import HDFParser
from obspec_utils.registry import ObjectStoreRegistry
from obstore.store import LocalStore
assert virtualizarr.__file__.startswith(sys.argv[2]), virtualizarr.__file__
store = HDFParser()("file://" + sys.argv[1], ObjectStoreRegistry({"file://": LocalStore()}))
dataset = xarray.open_zarr(store, consolidated=False, zarr_format=3, mask_and_scale=False)
np.save(sys.argv[3], dataset["v"].values)
"""


@pytest.mark.parametrize(("package", "text"), [("kerchunk", KERCHUNK), ("virtualizarr", VIRTUALIZARR)])
def test_a_patched_copy_reads_our_filter(tmp_path: Path, package: str, text: str) -> None:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None or shutil.which("patch") is None:
        pytest.skip(f"needs {package} and the program patch")
    pytest.importorskip("xarray")
    shutil.copytree(Path(spec.origin).parent, tmp_path / package, ignore=shutil.ignore_patterns("tests", "__pycache__"))
    patch = (REPOSITORY / "docs" / "patches" / f"{package}.patch").read_bytes()
    done = subprocess.run(["patch", "-p1"], cwd=tmp_path, input=patch, capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"the patch is for another release: {done.stdout.decode()}")
    codec, values = pyfilter.Lorenzo(absolute=0.01), np.sin(np.arange(60_000, dtype="f4")).reshape(20, 30, 100) * 9
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", data=values, chunks=(10, 20, 50), **codec)
    env = clean_environment()
    env["PYTHONPATH"] = f"{tmp_path}:{env['PYTHONPATH']}"
    run_script(text, tmp_path / "a.h5", tmp_path, tmp_path / "b.npy", env=env)
    assert within(values, np.load(tmp_path / "b.npy"), codec, None)
