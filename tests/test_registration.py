# SPDX-License-Identifier: BSD-3-Clause
"""What docs/registration.md hands to other projects: it fits the sources, and it works."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import pyfilter
from pyfilter.registry import registry

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "registration.md").read_text("utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def defined(block: str, **names: Any) -> dict[str, Any]:
    exec(block, names)
    return names


@pytest.fixture
def entry() -> Any:
    """The class for hdf5plugin."""
    filters = pytest.importorskip("hdf5plugin._filters")
    return defined(BLOCKS[1], struct=struct, FilterBase=filters.FilterBase, PYFILTER_ID=registry().filter_id)[
        "Pyfilter"
    ]


def test_sources_of_the_extension(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "pyfilter").symlink_to(ROOT)
    monkeypatch.chdir(tmp_path)
    from glob import glob

    plugin = defined(BLOCKS[0], glob=glob, HDF5PluginExtension=lambda name, **options: {"name": name, **options})
    extension = plugin["_get_pyfilter_plugin"]()
    sources = {Path(name).relative_to("src/pyfilter").as_posix() for name in extension["sources"]}
    here = {
        path.relative_to(ROOT).as_posix() for folder in ("filter", "kernels") for path in (ROOT / folder).rglob("*.cpp")
    }
    assert sources == here | {"generated/codec_table.cpp"}
    flags = (ROOT / "CMakeLists.txt").read_text("utf-8")
    assert all(flag in flags for flag in extension["extra_compile_args"] if flag != "-std=c++20")
    assert "set(CMAKE_CXX_STANDARD 20)" in flags


@pytest.mark.parametrize(
    ("arguments", "codec"),
    [
        ({"codec": "lossless"}, pyfilter.Lossless()),
        ({"codec": "lorenzo", "absolute": 0.25}, pyfilter.Lorenzo(absolute=0.25)),
        ({"codec": "hierarchical_delta", "relative": 1e-3}, pyfilter.HierarchicalDelta(relative=1e-3)),
        ({"codec": "lorenzo", "pointwise_relative": 1e-3}, pyfilter.Lorenzo(pointwise_relative=1e-3)),
        ({"codec": "lorenzo", "psnr": 60.0}, pyfilter.Lorenzo(psnr=60.0)),
    ],
    ids=str,
)
def test_words_of_the_class(entry: Any, tmp_path: Path, arguments: dict[str, Any], codec: pyfilter.Codec) -> None:
    asked = entry(**arguments)
    assert asked.filter_options == codec.filter_options
    values = np.linspace(0, 100, 5000, dtype="f4").reshape(50, 100)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        stored = file.create_dataset("x", data=values, chunks=values.shape, compression=asked)
        plist = stored.id.get_create_plist()
        assert plist.get_filter(0)[0] == registry().filter_id
        for words in (asked.filter_options, plist.get_filter(0)[2]):
            assert entry._from_filter_options(words).get_config() == asked.get_config()
        assert stored.id.get_storage_size() < values.nbytes
        assert np.abs(stored[...] - values).max() <= 0.25


@pytest.mark.parametrize("arguments", [{"codec": "gzip"}, {}, {"codec": "lossless", "absolute": 1}, {"tolerance": 1}])
def test_what_the_class_refuses(entry: Any, arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="another codec with one of absolute"):
        entry(**arguments)


def test_the_class_for_stored_words_of_another_layout(entry: Any) -> None:
    with pytest.raises(ValueError, match="unknown layout"):
        entry._from_filter_options((2, 4, 1, 0, 0))


def test_the_page_names_the_id_and_the_licence() -> None:
    assert f"**{registry().filter_id}**" in PAGE
    assert "BSD-3-Clause" in PAGE
    assert "BSD" in (ROOT / "LICENSE").read_text("utf-8")
