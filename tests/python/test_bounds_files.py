# SPDX-License-Identifier: BSD-3-Clause
"""Bounds for many variables and many files: TOML, patterns, standard names; folders, and runs taken up again."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import h5py
import numpy as np
import pytest

import pyfilter
from pyfilter import Auto, Cuszp2, HierarchicalDelta, Lorenzo, Lossless
from pyfilter.errors import InvalidArgument
from pyfilter.rewrite import Rules, batch, bounds_file, compress_file, compress_files

from .support import field
from .test_cli import run

TEXT = """
default = { relative = 1e-3, codec = "cuszp2" }
[variables]
"/group/tas" = { absolute = 0.25, codec = "lorenzo", predictor = "chain" }
"tas*" = "lorenzo:absolute:0.5"
count = { absolute = 2, codec = "hierarchical_delta" }
mask = "lossless"
scratch = "none"
absent = "none"
[standard_names]
wind_speed = { pointwise_relative = 0.01, codec = "lorenzo" }
latitude = { absolute = 0.001, codec = "cuszp2" }
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name in ("tas", "tasmax", "group/tas", "wind", "other", "mask", "scratch", "lat", "tas_lat"):
            file[name] = field((60, 70)) + 280
        file["count"] = np.arange(5000)
        file["tas_count"] = np.arange(5000)
        file["wind"].attrs["standard_name"] = "wind_speed"
        file["lat"].attrs["standard_name"] = "latitude"
        file["tas_lat"].attrs["units"] = "degrees_north"
    return tmp_path / "a.h5"


def test_which_entry_counts(source: Path, tmp_path: Path) -> None:
    config = tmp_path / "bounds.toml"
    config.write_text(TEXT, encoding="utf-8")
    target = tmp_path / "b.h5"
    out = run("compress", source, target, "--config", config)
    assert f"{config}: no variable is called absent\n" in out
    with h5py.File(target) as file:
        found = {name: pyfilter.codec_of(file[name]) for name in ("tas", "tasmax", "group/tas", "wind", "lat", "count")}
        assert isinstance(pyfilter.codec_of(file["other"]), Cuszp2)
        for name in ("mask", "scratch", "tas_lat", "tas_count"):
            codec = pyfilter.codec_of(file[name])
            assert codec is None or codec.is_lossless
    assert found == {
        "tas": Lorenzo(absolute=0.5),
        "tasmax": Lorenzo(absolute=0.5),
        "group/tas": Lorenzo(absolute=0.25, predictor="chain"),
        "wind": Lorenzo(pointwise_relative=0.01),
        "lat": Cuszp2(absolute=0.001),
        "count": HierarchicalDelta(absolute=2),
    }
    run("compress", source, target, "--config", config, "--var", "/tas=cuszp2:absolute:1", "--absolute", "4")
    with h5py.File(target) as file:
        assert pyfilter.codec_of(file["tas"]) == Cuszp2(absolute=1)
        other = pyfilter.codec_of(file["other"])
        assert not isinstance(other, pyfilter.Compound)
        assert other is None or other.bound in (("absolute", 4.0), ("none", 0.0))


def test_a_file_without_a_default_leaves_others_as_they_are(source: Path, tmp_path: Path) -> None:
    rules = Rules(listed={"wind": Auto(absolute=0.1)}, choose=True)
    report = compress_file(source, tmp_path / "b.h5", rules)
    assert [row.path for row in report.compressed] == ["/wind"]
    assert {row.note for row in report.rows if row.path != "/wind"} == {"not named"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("default = ", "is no TOML file"),
        ("defaults = 1", "known are default = "),
        ("variables = 1", "known are default = "),
        ("default = 0.1", "must be a text .* or a table such as"),
        ("default = {}", "must have one of absolute, relative, pointwise_relative, psnr; got none of them"),
        ("default = { absolute = 1, psnr = 3 }", "got absolute, psnr"),
        ("default = { absolute = '1' }", "absolute must be a number; got '1'"),
        ("default = { absolute = -1 }", "absolute must be a finite number > 0"),
        ("default = { absolute = 1, codec = 'zip' }", "codec must be one of cuszp2"),
        ("default = { absolute = 1, codec = 'cuszp2', predictor = 'chain' }", "predictor is no parameter of cuszp2"),
        ("default = { absolute = 1, predictor = 'chain' }", "predictor is no parameter of auto; it has objective"),
        ("[variables]\nt = 'absolute'", "variables: t must be absolute:X"),
        ("[standard_names]\nt = 'cuszp2:pointwise_relative:0.1'", "cuszp2 takes no bound pointwise_relative"),
    ],
)
def test_what_is_no_file_of_bounds(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "bounds.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidArgument, match=problem):
        bounds_file.load(path)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    name = 'odd "name"\\ \x01\x7f ü'
    text = bounds_file.dumps(
        [(name, {"absolute": 0.1}, "why"), ("t", {"relative": 1e-5, "codec": "lorenzo"}, "")], "made by\na test"
    )
    (tmp_path / "bounds.toml").write_text(text, encoding="utf-8")
    found = bounds_file.load(tmp_path / "bounds.toml")
    assert found.variables == {name: Auto(absolute=0.1), "t": Lorenzo(relative=1e-5)}
    assert text.startswith("# made by\n# a test\n")


# -- many files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(3):
        with h5py.File(tmp_path / f"in{number}.h5", "w") as file:
            file["t"] = field((60, 70)) + number
    (tmp_path / "bad.h5").write_bytes(b"no HDF5 at all")
    return tmp_path


def test_many_files_into_a_folder(folder: Path) -> None:
    out = run("compress", folder / "in*.h5", folder / "bad.h5", folder / "out", "--absolute", "0.01", status=2)
    assert out.count("total: ") == 3
    assert "4 files, 3 compressed, 1 failed: " in out
    assert f"{folder / 'bad.h5'}: " in out
    assert sorted(item.name for item in (folder / "out").glob("*.h5")) == ["in0.h5", "in1.h5", "in2.h5"]
    found = json.loads(run("compress", folder / "in0.h5", f"{folder}/other/", "--absolute", "0.01", "--json"))
    assert found["files"][0]["ok"] is True
    assert (folder / "other" / "in0.h5").is_file()


def test_a_run_is_taken_up_again(folder: Path) -> None:
    sources, out = batch.expanded([str(folder / "in?.h5")]), folder / "out"
    rules = Rules(Auto(absolute=0.01), choose=True)
    assert len(list(itertools.islice(compress_files(sources, out, rules), 2))) == 2  # ended after two
    with (out / batch.JOURNAL).open("a", encoding="utf-8") as journal:
        journal.write('{"target": "in2.h5"')  # a line that was not finished
    assert [item.skipped for item in compress_files(sources, out, rules, resume=True)] == [True, True, False]
    assert all(item.skipped for item in compress_files(sources, out, rules, resume=True))
    with h5py.File(sources[1], "r+") as file:
        file["new"] = 1
    (out / "in2.h5").unlink()
    skipped = [item.skipped for item in compress_files(sources, out, rules, resume=True)]
    assert skipped == [True, False, False]
    other = Rules(Auto(absolute=0.02), choose=True)
    assert not any(item.skipped for item in compress_files(sources, out, other, resume=True))


def test_places_that_do_not_do(folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "in0.h5").write_bytes((folder / "in0.h5").read_bytes())
    for arguments, text in (
        ([folder / "in0.h5"], "give an input and an output"),
        ([folder / "no*.h5", folder / "out"], "there is no file"),
        ([folder, folder / "out"], "is a folder: give"),
        ([folder / "in0.h5", folder / "in1.h5", folder / "bad.h5"], "is a file: the copies of 2 files need a folder"),
        ([folder / "in0.h5", folder / "sub" / "in0.h5", folder / "out"], "would both become"),
    ):
        with pytest.raises(InvalidArgument, match=text):
            run("compress", *arguments, "--absolute", "1")


def test_memory_is_kept(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="max_memory must be at least 134217728 bytes"):
        compress_file(tmp_path / "a", tmp_path / "b", Rules(Lossless()), max_memory=1)
