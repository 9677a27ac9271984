# SPDX-License-Identifier: BSD-3-Clause
"""Debian's programs (HDF5 1.10, netCDF 4.9) read our files, and say what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from . import support
from .support import FILTER_ID, compressed, field, frames, words

Tool = Callable[..., str]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=field((20, 30)), chunks=(10, 15), fillvalue=-999, **compressed())
        file.create_dataset("big", data=field((20, 30), ">f4"), chunks=(10, 15), **compressed())
    return tmp_path / "a.h5"


def numbers(text: str) -> list[float]:
    """All data lines of h5dump: those that start with an index."""
    rows = re.findall(r"^\s*\(\d[\d,]*\): (.*)$", text, re.MULTILINE)
    return [float(number) for row in rows for number in row.strip(",").split(",") if number.strip()]


@pytest.mark.parametrize("name", ["x", "big"])
def test_h5dump_values(path: Path, tool: Tool, name: str) -> None:
    with h5py.File(path) as file:
        expected = file[name][...]
    shown = numbers(tool("h5dump", "-m", "%.9g", "-w", "0", "-d", f"/{name}", path))
    assert np.array_equal(np.array(shown, "f4"), expected.ravel().astype("f4"))


def test_h5dump_names_the_filter(path: Path, tool: Tool) -> None:
    said = tool("h5dump", "-pH", "-d", "/x", path)
    assert f"FILTER_ID {FILTER_ID}" in said
    assert "COMMENT pyfilter: " in said


def test_h5diff_within_the_bound(tmp_path: Path, path: Path, tool: Tool) -> None:
    with h5py.File(tmp_path / "plain.h5", "w") as file:
        file["x"] = field((20, 30))
    tool("h5diff", "-d", "0.001", path, tmp_path / "plain.h5", "/x")
    assert "differences found" in tool("h5diff", "-d", "0.0001", path, tmp_path / "plain.h5", "/x", check=False)


def test_h5ls_and_h5stat(path: Path, tool: Tool) -> None:
    assert "pyfilter" in tool("h5ls", "-v", path)
    tool("h5stat", path)


def test_ncdump(tmp_path: Path, tool: Tool) -> None:
    with h5py.File(tmp_path / "a.nc", "w") as file:
        file["y"] = np.arange(20.0)
        file.create_dataset("x", data=field((20,)), chunks=(20,), **compressed())
        file["y"].make_scale()
        file["x"].dims[0].attach_scale(file["y"])
    shown = tool("ncdump", "-s", "-p", "9,17", tmp_path / "a.nc")
    assert f'x:_Filter = "{FILTER_ID},' in shown
    block = shown[shown.index(" x = ") + 5 :]
    values = [float(number) for number in block[: block.index(";")].split(",")]
    assert support.largest_error(np.array(values), field((20,))) <= 1e-3


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "truncated chunk: ": lambda frame: frame[:-5],
    "not a pyfilter frame: starts with 00 00 00 00": lambda frame: bytes(len(frame)),
    "frame format 12 needs pyfilter >= 3.1; this is pyfilter ": lambda frame: frame[:4] + b"\x0c\x03\x01" + frame[7:],
    "the header's checksum does not match": lambda frame: frame[:30] + b"?" + frame[31:],
}


@pytest.mark.parametrize("text", DAMAGES)
def test_texts_of_damage_on_the_error_stack(path: Path, tool: Tool, text: str) -> None:
    with h5py.File(path, "r+") as file:
        frame = frames(file["x"])[0]
        file["x"].id.write_direct_chunk((0, 0), DAMAGES[text](frame))
    said = tool("h5dump", "--enable-error-stack", "-d", "/x", path, check=False)
    assert re.search(rf"in decode\(\): pyfilter: .*{re.escape(text)}", said), said


def test_reader_without_the_plugin_gets_an_understandable_error(path: Path, tmp_path: Path) -> None:
    """The filter's name is in the file, so that HDF5 can say what is missing."""
    without = support.environment(str(tmp_path))
    said = support.run_tool("h5dump", "--enable-error-stack", "-d", "/x", path, env=without, check=False)
    assert "required filter 'pyfilter: " in said
    script = """
import h5py, sys
try:
    h5py.File(sys.argv[1])["x"][...]
except OSError as error:
    print(error)
"""
    assert re.search("plugin|not registered", support.run_python(script, path, env=without))


def test_cd_values_of_the_document_and_of_h5dump_agree(path: Path, tool: Tool) -> None:
    """h5dump prints signed numbers."""
    said = tool("h5dump", "-pH", "-d", "/x", path)
    parameters = re.search(r"PARAMS \{ ([-\d ]+)\}", said)
    assert parameters is not None
    shown = tuple(int(word) & 0xFFFFFFFF for word in parameters[1].split())
    assert shown == support.stored(words(), "f4", (10, 15), fill=0xC479C000)
