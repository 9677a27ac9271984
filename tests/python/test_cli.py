# SPDX-License-Identifier: BSD-3-Clause
"""The pyfilter command: what it prints, what it leaves, and its exit status."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
from click.testing import CliRunner

import pyfilter
from pyfilter import Cuszp2, HierarchicalDelta, Lorenzo, Lossless, verification
from pyfilter.cli import app, options

from .support import clean_environment, field

BOUND = Cuszp2(absolute=1e-3)


def run(*arguments: str | Path, status: int = 0) -> str:
    """Run the command in this process; errors that it turns into status 2 are raised."""
    result = CliRunner().invoke(app, [str(item) for item in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == status, result.output
    return result.output


def in_a_shell(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "pyfilter", *map(str, arguments)],
        env=clean_environment(COLUMNS="200", **environment), capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


@pytest.fixture
def source(tmp_path: Path) -> Path:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["t"] = field((60, 70)) + 280
        file["group/p"] = field((60, 70), "f8")
        file["count"] = np.arange(5000)
    return tmp_path / "a.h5"


@pytest.fixture
def target(source: Path) -> Path:
    out = source.with_name("b.h5")
    run("compress", source, out, "--absolute", "1e-3", "--codec", "cuszp2")
    return out


# -- compress


def test_compress_prints_a_table_and_the_ratio(source: Path) -> None:
    result = in_a_shell("compress", source, source.with_name("b.h5"), "--relative", "1e-3")
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    assert re.search("^/count +int64 +5000 +Lossless +0 ", result.stdout, re.MULTILINE)
    assert "integers and other types, kept bit for bit (--var NAME=absolute:X gives integers a bound): /count\n" in (
        result.stdout
    )
    result = in_a_shell("compress", source, source.with_name("b.h5"), "--relative", "1e-3", "--codec", "cuszp2")
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["variable", "type", "shape", "codec", "bound", "ratio", "max", "error", "ok"]
    assert re.match(r"/group/p +float64 +60 x 70 +Cuszp2 +[\d.e-]+ +[\d.]+ +[\d.e-]+ +yes", lines[1])
    assert re.match(r"/t +float32 +60 x 70 +Cuszp2 +[\d.e-]+ +[\d.]+ +[\d.e-]+ +yes", lines[2])
    assert re.match(r"total: .* -> .*, ratio [\d.]+; 2 variables compressed, 1 copied as they are", lines[3])


def test_compress_as_json(source: Path) -> None:
    report = json.loads(
        run("compress", source, source.with_name("b.h5"), "--absolute", "1e-3", "--codec", "cuszp2", "--json")
    )
    assert report["ok"] is True
    assert report["file_bytes_in"] == source.stat().st_size
    rows = {row["path"]: row for row in report["datasets"]}
    assert rows["/t"]["codec"] == repr(BOUND)
    assert rows["/t"]["bound"] == 1e-3
    assert 0 < rows["/t"]["max_error"] <= 1e-3
    assert rows["/count"]["codec"] is None


def test_progress_goes_to_a_terminal_and_not_into_json(source: Path) -> None:
    out = source.with_name("b.h5")
    commands: list[list[str | Path]] = [
        ["compress", source, out, "--absolute", "1e-3"], ["verify", source, out],
    ]  # fmt: skip
    for arguments in commands:
        shown = in_a_shell(*arguments, "--json", TTY_COMPATIBLE="1", TERM="xterm")
        assert shown.returncode == 0, shown.stderr
        assert json.loads(shown.stdout)
        assert "\x1b[" in shown.stderr
        assert arguments[0] != "compress" or "compress" in shown.stderr


LOSSLESS = dict.fromkeys(["/t", "/group/p", "/count"], Lossless())


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("--absolute 1e-3 --codec cuszp2", {"/t": BOUND, "/group/p": BOUND}),
        (
            "--absolute 1e-3 --codec cuszp2 --mode plain --block-dims 2",
            dict.fromkeys(["/t", "/group/p"], Cuszp2(absolute=1e-3, mode="plain", block_dims=2)),
        ),
        ("--codec lossless", LOSSLESS),
        (
            "--absolute 1e-3 --codec hierarchical_delta",
            dict.fromkeys(["/t", "/group/p"], HierarchicalDelta(absolute=1e-3)),
        ),
        (
            "--absolute 1e-3 --codec hierarchical_delta --predictor chain --outliers on --var t=lossless",
            {"/t": Lossless(), "/group/p": HierarchicalDelta(absolute=1e-3, predictor="chain", outliers="on")},
        ),
        (
            "--absolute 1e-3 --codec lorenzo --coder huffman --gap-array false",
            dict.fromkeys(["/t", "/group/p"], Lorenzo(absolute=1e-3, coder="huffman", gap_array=False)),
        ),
        ("--var t=cuszp2:absolute:0.5", {"/t": Cuszp2(absolute=0.5)}),
        ("--var t=none --absolute 1e-3 --codec cuszp2", {"/group/p": BOUND}),
        (
            "--pointwise-relative 1e-2 --codec hierarchical_delta",
            dict.fromkeys(["/t", "/group/p"], HierarchicalDelta(pointwise_relative=1e-2)),
        ),
        (
            "--absolute 1e-3 --codec cuszp2 --mode plain --var t=lorenzo:pointwise_relative:0.01",
            {"/t": Lorenzo(pointwise_relative=0.01), "/group/p": Cuszp2(absolute=1e-3, mode="plain")},
        ),
        ("--var count=hierarchical_delta:absolute:2", {"/count": HierarchicalDelta(absolute=2)}),
        ("--var count=hierarchical_delta:relative:0.01", {"/count": HierarchicalDelta(absolute=49)}),
        ("--codec hierarchical_delta --var count=absolute:0", {"/count": HierarchicalDelta(absolute=0)}),
        (
            "--codec cuszp2 --var group/p=lossless --absolute 1e-3 --var count=lossless",
            {"/t": BOUND, "/group/p": Lossless(), "/count": Lossless()},
        ),
    ],
)
def test_bounds_and_variables(source: Path, arguments: str, expected: dict[str, pyfilter.Codec]) -> None:
    run("compress", source, source.with_name("b.h5"), *arguments.split())
    with h5py.File(source.with_name("b.h5")) as file:
        found = {path: pyfilter.codec_of(file[path]) for path in ("/t", "/group/p", "/count")}
    assert {path: codec for path, codec in found.items() if codec is not None} == expected


def test_integers_are_verified_by_their_own_bound(source: Path) -> None:
    run(
        "compress",
        source,
        source.with_name("b.h5"),
        "--absolute",
        "1e-3",
        "--var",
        "count=hierarchical_delta:absolute:2",
    )
    for arguments in ((), ("--absolute", "1e-3"), ("--relative", "0.9")):
        found = json.loads(run("verify", source, source.with_name("b.h5"), "--json", *arguments))
        assert (found["/count"]["ok"], found["/count"]["bound"], found["/count"]["max_error"]) == (True, 2, 2)


def test_a_relative_bound_is_of_each_variable(source: Path) -> None:
    run(
        "compress",
        source,
        source.with_name("b.h5"),
        "--relative",
        "1e-2",
        "--var",
        "p=relative:1e-3",
        "--codec",
        "cuszp2",
    )
    with h5py.File(source) as before, h5py.File(source.with_name("b.h5")) as after:
        for path, relative in (("t", 1e-2), ("group/p", 1e-3)):
            found = pyfilter.codec_of(after[path])
            assert isinstance(found, Cuszp2)
            assert found.absolute == pytest.approx(float(np.ptp(before[path][()].astype("f8"))) * relative, rel=1e-12)


def test_the_history_can_be_left_alone(source: Path) -> None:
    with h5py.File(source, "r+") as file:
        file.attrs["Conventions"] = "CF-1.12"
    for option, expected in (("--history", True), ("--no-history", False)):
        run("compress", source, source.with_name("b.h5"), "--absolute", "1e-3", option)
        with h5py.File(source.with_name("b.h5")) as file:
            assert ("history" in file.attrs) is expected


def test_a_file_with_nothing_to_compress_is_copied_and_said(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["text"] = "nothing"
    out = run("compress", tmp_path / "a.h5", tmp_path / "b.h5", "--absolute", "1", "--codec", "cuszp2")
    assert out.startswith("nothing to compress: each variable is copied as it is\n")
    assert "copied as they are, no codec takes their type: /text (text of variable length)\n" in out
    with h5py.File(tmp_path / "b.h5") as file:
        assert file["text"][()] == b"nothing"


def test_each_variable_that_is_copied_is_named_with_the_reason(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["counts"] = np.arange(5000, dtype="i2")
        file["few"] = [1.0, 2.0]
        file["long"] = field((64, 64)).astype("g")
        file["zipped"] = file["counts"][()]
        file.create_dataset("packed", data=file["counts"][()], compression="gzip")
    paths = tmp_path / "a.h5", tmp_path / "b.h5"
    out = run("compress", *paths, "--relative", "1e-3", "--codec", "cuszp2")
    assert out.startswith("nothing to compress: each variable is copied as it is\n")
    assert "type and size" not in out
    integers = "integers: --lossless, or for single ones --var NAME=absolute:X or NAME=lossless, compresses them"
    assert f"copied as they are, {integers}: /counts, /packed, /zipped\n" in out
    assert "copied as they are, under 4096 bytes: --var NAME=SPEC compresses single ones: /few\n" in out
    assert "copied as they are, no codec takes their type: /long (float128)\n" in out
    out = run("compress", *paths, "--codec", "lossless", "--var", "zipped=none")
    assert "integers that are compressed already: --var NAME=lossless compresses them anew: /packed\n" in out
    assert "copied as they are, by --var NAME=none: /zipped\n" in out
    out = run("compress", *paths, "--var", "counts=hierarchical_delta:absolute:2")
    assert "not named by a --var, and no bound is given for all: /few, /long, /packed, /zipped\n" in out
    assert "1 variables compressed, 4 copied as they are" in out
    with h5py.File(tmp_path / "empty.h5", "w"):
        pass
    out = run("compress", tmp_path / "empty.h5", tmp_path / "b.h5", "--absolute", "1")
    assert out.startswith("nothing to compress: the file has no variable\n")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "give a bound"),
        (["--absolute", "1", "--relative", "1"], "--absolute and --relative"),
        (["--absolute", "1", "--lossless"], "--absolute and --lossless"),
        (["--absolute", "0"], "absolute must be a finite number > 0"),
        (["--absolute", "nan"], "absolute must be a finite number > 0"),
        (["--psnr", "7000"], "psnr must be a number > 0 and at most 6000"),
        (["--absolute", "1", "--psnr", "60"], "--absolute and --psnr"),
        (["--absolute", "1", "--pointwise-relative", "0.1"], "not --absolute and --pointwise-relative"),
        (
            ["--pointwise-relative", "0.1", "--codec", "cuszp2"],
            "--pointwise-relative is not an option of the codec cuszp2, but of --codec hierarchical_delta or lorenzo",
        ),
        (["--pointwise-relative", "1", "--codec", "hierarchical_delta"], "must be a number > 0 and < 1"),
        (["--relative", "-1e-3"], "relative must be a finite number > 0"),
        (
            ["--absolute", "1", "--codec", "zip"],
            "--codec must be one of cuszp2, hierarchical_delta, lorenzo, lossless, particles, progressive",
        ),
        (["--absolute", "1", "--codec", "cuszp2", "--mode", "best"], "mode must be one of 'outlier', 'plain', 'fixed'"),
        (["--absolute", "1", "--codec", "cuszp2", "--block-dims", "4"], "block_dims must be one of 1, 2, 3"),
        (["--lossless", "--mode", "plain"], "--mode"),
        (["--codec", "lossless", "--predictor", "chain"], "--predictor is not an option of the codec lossless"),
        (
            ["--absolute", "1", "--outliers", "on"],
            "--outliers belongs to a codec: give --codec hierarchical_delta with it",
        ),
        (
            ["--absolute", "1", "--codec", "cuszp2", "--outliers", "on"],
            "--outliers is not an option of the codec cuszp2",
        ),
        (
            ["--absolute", "1", "--codec", "cuszp2", "--fast"],
            "give --fast or --codec cuszp2, not both: --fast chooses among codecs",
        ),
        (["--absolute", "1", "--resume"], "--resume needs several files and a folder"),
        (["--var", "t=zip:absolute:1"], "with a codec in front if need be"),
        (["--var", "t=cuszp2:pointwise_relative:0.1"], "cuszp2 takes no bound pointwise_relative"),
        (["--absolute", "1", "--codec", "hierarchical_delta", "--block-dims", "2"], "--block-dims is not an option"),
        (["--absolute", "1", "--codec", "hierarchical_delta", "--predictor", "best"], "predictor must be one of"),
        (["--var", "t"], "--var must be NAME=SPEC with a SPEC of absolute:X"),
        (["--var", "t=0.1"], "absolute:X, relative:X, pointwise_relative:X, psnr:X, lossless or none"),
        (["--var", "t=absolute:"], "absolute:X, relative:X, pointwise_relative:X, psnr:X, lossless or none"),
        (["--var", "t=absolute:nan"], "absolute:X, relative:X, pointwise_relative:X, psnr:X, lossless or none"),
        (["--var", "=absolute:1"], "--var must be NAME=SPEC with a SPEC of absolute:X"),
        (["--var", "nothing=lossless"], "no dataset 'nothing'"),
        (["--codec", "cuszp2", "--var", "count=absolute:1"], "count is of type int64"),
        (
            ["--codec", "hierarchical_delta", "--var", "count=pointwise_relative:0.1"],
            "a pointwise relative bound needs floating-point values",
        ),
    ],
)
def test_bad_options_are_refused(source: Path, arguments: list[str], text: str) -> None:
    with pytest.raises(pyfilter.PyfilterError, match=text):
        run("compress", source, source.with_name("b.h5"), *arguments)
    assert not source.with_name("b.h5").exists()


def test_errors_are_one_line_and_status_2(source: Path) -> None:
    for arguments in (
        ["compress", source, source.with_name("b.h5"), "--absolute", "-1"],
        ["compress", source, source, "--absolute", "1"],
        ["compress", source, source.parent / "nowhere" / "b.h5", "--absolute", "1"],
        ["inspect", Path(__file__)],
        ["args", "--decode", "1,2,3,4"],
    ):
        result = in_a_shell(*arguments)
        assert result.returncode == 2
        assert result.stderr.startswith("pyfilter: ")
        assert len(result.stderr.splitlines()) == 1
        assert "Traceback" not in result.stderr
    assert in_a_shell("compress", source.with_name("nothing.h5"), "b.h5", "--absolute", "1").returncode == 2


def test_a_broken_bound_is_status_1(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification.Comparison, "_within", lambda self, x, y, both: np.zeros(x.shape, bool))
    out = run("compress", source, source.with_name("b.h5"), "--absolute", "1e-3", status=1)
    assert "NO" in out
    assert "was not written" in out
    assert not source.with_name("b.h5").exists()


# -- inspect, check


def test_inspect(target: Path) -> None:
    found = json.loads(run("inspect", target, "--json"))
    rows = {row["path"]: row for row in found["datasets"]}
    assert rows["/t"]["codec"] == repr(BOUND)
    assert (rows["/t"]["bound"], rows["/t"]["raw_chunks"], rows["/t"]["chunk_count"]) == (1e-3, 0, 1)
    assert rows["/t"]["ratio"] > 2
    assert rows["/count"]["codec"] is None
    assert found["findings"] == []
    assert "0 of 1" in in_a_shell("inspect", target).stdout


def test_inspect_says_which_predictors_were_chosen(source: Path) -> None:
    out = source.with_name("b.h5")
    run("compress", source, out, "--absolute", "1e-3", "--codec", "hierarchical_delta", "--predictor", "lorenzo2d")
    with h5py.File(out, "r+") as file:
        many = file.create_dataset(
            "many", (50, 40, 64), "f4", chunks=(1, 40, 64), **HierarchicalDelta(absolute=1e-300, predictor="chain")
        )
        many[...] = field((50, 40, 64))
        file["cuszp2"] = np.zeros(3)
    rows = {row["path"]: row for row in json.loads(run("inspect", out, "--json"))["datasets"]}
    ((name, count),) = rows["/t"]["predictors"].items()
    assert re.fullmatch(r"lorenzo2d, order [12]", name)
    assert count == 1
    assert rows["/many"]["predictors"] == {"chain, order 1": 25}  # every second one is looked at
    assert rows["/count"]["predictors"] is None
    assert f"chunks {name}: 1" in " ".join(in_a_shell("inspect", out).stdout.split())


def test_inspect_of_each_chunk(source: Path) -> None:
    out = source.with_name("b.h5")
    with h5py.File(out, "w") as file:
        values = field((40, 50))
        values[20:] = np.random.default_rng(0).integers(0, 1 << 32, (20, 50), "u4").view("f4")  # nothing to gain
        file.create_dataset("t", data=values, chunks=(20, 50), **HierarchicalDelta(absolute=1e-3, predictor="chain"))
        raw = np.zeros((20, 50), "f4")
        file.create_dataset("sums", data=field((40, 50)), chunks=(20, 50), fletcher32=True, **BOUND)
        file.create_dataset("u", (40, 50), "f4", chunks=(20, 50), **BOUND).id.write_direct_chunk((20, 0), raw, 1)
    datasets = json.loads(run("inspect", out, "-v", "--json", status=1))["datasets"]
    rows = {row["path"]: row["chunk_list"] for row in datasets}
    first, second = rows["/t"]
    assert (first["offset"], first["codec"], first["bound"]) == ([0, 0], "hierarchical_delta", pytest.approx(1e-3))
    assert first["parameters"] == {"predictor": "chain", "outliers": "off", "order": 1}
    assert first["ratio"] > 2
    assert second["codec"] in ("raw", "lossless")
    assert [item["codec"] for item in rows["/u"]] == ["unfiltered"]
    assert [item["codec"] for item in rows["/sums"]] == ["inside fletcher32"] * 2
    shown = run("inspect", out, "--verbose", status=1)
    assert re.search(r"^0, 0 +hierarchical_delta +predictor chain, ", shown, re.MULTILINE)
    assert "chunk_list" not in run("inspect", out, "--json", status=1)


def test_inspect_says_what_is_wrong(target: Path) -> None:
    with h5py.File(target, "r+") as file:
        file["t"].id.write_direct_chunk((0, 0), file["t"][()].tobytes(), 1)
    out = run("inspect", target, status=1)
    assert "stored raw" in out
    assert json.loads(run("inspect", target, "--json", status=1))["findings"][0]["chunks"] == 1


def test_check(target: Path, tmp_path: Path) -> None:
    (tmp_path / "3.nc").write_bytes(b"CDF\1" + bytes(28))
    assert run("check", target, tmp_path / "3.nc").split("\n")[0] == f"{target}: nothing wrong"
    with h5py.File(target, "r+") as file:
        file["t"].id.write_direct_chunk((0, 0), file["t"][()].tobytes(), 1)
    assert f"{target}: /t: stored raw (1 chunks)" in run("check", tmp_path / "3.nc", target, status=1)
    found = json.loads(run("check", target, "--json", status=1))
    assert found[str(target)][0]["problem"] == "stored raw"


def test_inspect_of_netcdf3_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.nc").write_bytes(b"CDF\1" + bytes(28))
    with pytest.raises(ValueError, match="netCDF-3"):
        run("inspect", tmp_path / "a.nc")


# -- doctor and the rest


def test_doctor_is_healthy() -> None:
    result = in_a_shell("doctor")
    assert result.returncode == 0, result.stdout
    for text in ("library", "cpu level", "cuda", "h5py write and read", "works", "registered with"):
        assert text in result.stdout
    assert json.loads(run("doctor", "--json"))["ok"] is True


def test_doctor_says_that_the_library_is_missing(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "pyfilter", "doctor"], env=clean_environment(PYFILTER_LIBRARY=str(tmp_path / "no.so")),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 1
    assert "missing" in result.stdout


def test_help_names_every_command() -> None:
    assert run("--version") == f"pyfilter {pyfilter.__version__}\n"
    text = run("--help")
    for name in ("compress", "inspect", "verify", "check", "compare", "args", "doctor"):
        assert name in text
        assert "Usage" in run(name, "--help")


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 << 30, "5.0 GiB"), (1 << 45, "32.0 TiB")]
)
def test_sizes(count: int, text: str) -> None:
    assert options.size(count) == text


def test_numbers() -> None:
    assert [options.number(value) for value in (None, 0.0, 1.23456e-9)] == ["-", "0", "1.235e-09"]
    assert [options.shape(value) for value in ((), (3,), (3, 4))] == ["scalar", "3", "3 x 4"]
