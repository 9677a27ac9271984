# SPDX-License-Identifier: BSD-3-Clause
"""docs/adding-a-codec.md, done on a copy of the tree: its blocks are the files, and the codec works in every door."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
USE = """
import sys
import h5py
import numpy as np
import pyfilter

values = np.sin(np.arange(30000, dtype="f4") / 50).reshape(3, 100, 100)
codec = pyfilter.Short(absolute=1e-3)
frame = pyfilter.encode(values, codec)
assert pyfilter.frame_info(frame).codec == "short", pyfilter.frame_info(frame)
assert 1.9 < pyfilter.frame_info(frame).ratio < 2
assert np.abs(pyfilter.decode(frame) - values).max() <= 1e-3
assert np.array_equal(pyfilter.decode(frame, 7, 99), pyfilter.decode(frame).ravel()[7:99])
wide = values.copy()
wide[0, 0, :2] = 1e30, np.nan
exact = pyfilter.encode(wide, codec)
assert pyfilter.frame_info(exact).codec == "lossless"
assert np.array_equal(pyfilter.decode(exact), wide, equal_nan=True)
with h5py.File(sys.argv[1], "w") as file:
    file.create_dataset("x", data=values, chunks=(1, 100, 100), **pyfilter.Short(relative=1e-3))
    file.create_dataset("plain", data=values, chunks=(1, 100, 100))
with h5py.File(sys.argv[1]) as file:
    assert pyfilter.codec_of(file["x"]) == pyfilter.Short(relative=1e-3)
    assert np.abs(file["x"][...] - values).max() <= 1e-3 * 2
assert pyfilter.check(sys.argv[1]) == []
try:
    pyfilter.Short()
except ValueError as error:
    assert "absolute" in str(error)
else:
    raise SystemExit("no error")
"""


def blocks(page: str) -> dict[str, str]:
    """Return the files of the page by their names, and the entry for the registry as "registry.json"."""
    found = dict(re.findall(r"`((?:kernels|pyfilter)/[\w/.]+)`:\n\n```\w+\n(.*?)```", page, re.DOTALL))
    entry = re.search(r"```json\n(.*?)```", page, re.DOTALL)
    assert entry is not None
    return {**found, "registry.json": entry[1]}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree with the codec of the page, built for the portable level without optimisation."""
    cmake = shutil.which("cmake")
    if cmake is None or shutil.which("ninja") is None:
        pytest.skip("CMake or Ninja is not here: scripts/test installs them")
    copy = tmp_path_factory.mktemp("tree")
    for folder in ("cmake", "filter", "kernels", "pyfilter"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__", "lib", "*.json"))
    shutil.copy(ROOT / "CMakeLists.txt", copy)
    files = blocks((ROOT / "docs" / "adding-a-codec.md").read_text(encoding="utf-8"))
    registry = json.loads((ROOT / "registry.json").read_text(encoding="utf-8"))
    registry["codecs"].append(json.loads(files.pop("registry.json")))
    (copy / "registry.json").write_text(json.dumps(registry), encoding="utf-8")
    assert set(files) == {"kernels/short/FORMAT.md", "kernels/short/codec.cpp", "pyfilter/codecs/short.py"}
    for name, text in files.items():
        (copy / name).parent.mkdir(exist_ok=True)
        (copy / name).write_text(text, encoding="utf-8")
    build = copy / "build"
    options = ("-DPYF_CUDA=OFF", "-DPYF_LEVELS=baseline", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O0")
    for command in ([cmake, "-S", copy, "-B", build, "-G", "Ninja", *options], [cmake, "--build", build]):
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=1200, check=False)
        assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return copy


def run(tree: Path, *arguments: str | Path) -> str:
    """Run Python with the copy's package and library."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYFILTER_", "HDF5_"))}
    env = {**kept, "PYTHONPATH": str(tree), "PYFILTER_LIBRARY": str(tree / "build" / "libh5pyfilter.so")}
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(command, env=env, cwd=tree, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_codec_is_one_folder_one_entry_and_one_class(tree: Path, tmp_path: Path) -> None:
    run(tree, "-c", USE, tmp_path / "a.h5")
    paths = (tmp_path / "a.h5", tmp_path / "b.h5")
    bounds = ("--absolute", "1e-3", "--var", "plain=absolute:0.001")
    run(tree, "-m", "pyfilter", "compress", *paths, "--codec", "short", *bounds)
    assert "Short(absolute=0.001)" in run(tree, "-m", "pyfilter", "inspect", paths[1])
