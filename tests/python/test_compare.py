# SPDX-License-Identifier: BSD-3-Clause
"""``pyfilter compare``: figures that are true, peers that may die, pictures and a page that stands alone."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from click.testing import CliRunner

import pyfilter
from pyfilter import Cuszp2
from pyfilter.cli import app
from pyfilter.compare import Candidate, Sample, candidates, compare, figures, sample
from pyfilter.compare.run import Bench, Outcome
from pyfilter.registry import registry

from .support import clean_environment, field

FILL = np.float32(1e20)


def run(*arguments: str | Path, status: int = 0) -> str:
    result = CliRunner().invoke(app, ["compare", *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == status, result.output
    return result.output


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    values = field((20, 24, 32))
    values[3, 5:9] = FILL
    values[7, 7, 7] = np.nan
    path = tmp_path_factory.mktemp("compare") / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("group/p", data=values, chunks=(10, 24, 32), fillvalue=FILL)
        file["small"] = field((10, 10))
        file["count"] = np.arange(100_000)
    return path


@pytest.fixture
def path(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(made, tmp_path))


def everything(path: Path) -> Sample:
    with h5py.File(path) as file:
        return sample.take(file["group/p"], "p", 1 << 30)


# -- the sample


def test_a_small_dataset_is_the_sample(path: Path) -> None:
    taken = everything(path)
    assert taken.share == 1
    assert taken.values.shape == (20, 24, 32)
    assert taken.fill == FILL


def test_a_sample_is_of_whole_chunks_spread_evenly(tmp_path: Path) -> None:
    values = np.arange(100 * 64 * 1024, dtype="f4").reshape(100, 64, 1024)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = file.create_dataset("x", data=values, chunks=(1, 64, 1024))
        taken = sample.take(dataset, "x", 5 * (256 << 10))
    assert taken.chunk == (1, 64, 1024)
    assert taken.values.shape == (5, 64, 1024)
    assert taken.share == pytest.approx(0.05)
    assert [int(part[0, 0]) // (64 * 1024) for part in taken.values] == [10, 30, 50, 70, 90]


@pytest.mark.parametrize("values", [np.float32(1), np.zeros((0, 3)), np.array(["text"]), np.zeros(3, "c8")])
def test_what_is_no_array_of_numbers_is_refused(values: Any) -> None:
    with pytest.raises(TypeError, match="cannot be compressed"):
        sample.take(np.asarray(values), "x", 1 << 20)


# -- the candidates


def test_every_codec_of_the_registry_that_takes_the_data_is_tried() -> None:
    for bound in (("absolute", 1e-3), ("pointwise_relative", 1e-3)):
        found = {item.name.partition(",")[0] for item in candidates.ours(np.dtype("f4"), 3, bound)}
        expected = {
            spec.class_name
            for spec in registry().codecs.values()
            if "f32" in spec.dtypes and (bound[0] in spec.bounds or tuple(spec.bounds) == ("none",))
        }
        assert found == expected


def test_parameters_for_more_dimensions_are_left_out_and_all_is_the_product() -> None:
    def names(ndim: int, all_: bool = False) -> set[str]:
        found = list(candidates.ours(np.dtype("f4"), ndim, ("absolute", 1e-3), everything=all_))
        assert len({item.name for item in found}) == len(found)
        assert all(item.default is ("," not in item.name) for item in found)
        return {item.name for item in found}

    assert "Cuszp2, block_dims 3" in names(3)
    assert not [name for name in names(1) if re.search("block_dims [23]|lorenzo[23]d", name)]
    assert "Cuszp2, mode plain, block_dims 2" in names(2, True) - names(2)


# -- figures


def test_figures_are_those_of_the_file(path: Path) -> None:
    found = json.loads(run(path, "--absolute", "1e-3", "--no-peers", "--json", "--only", "cuszp2"))
    assert found["data"] == "a.h5:/group/p, float32, 20 x 24 x 32"  # the largest of floats
    (plain,) = [item for item in found["codecs"] if item["name"] == "Cuszp2"]
    values = everything(path).values
    with h5py.File(path, "r+") as file:
        dataset = file.create_dataset(
            "again", data=values, chunks=(20, 24, 32), fillvalue=FILL, **Cuszp2(absolute=1e-3)
        )
        file.flush()
        stored = dataset.id.get_storage_size()
    with h5py.File(path) as file:
        truth = pyfilter.verify(values, file["again"])
    assert plain["ratio"] == pytest.approx(values.nbytes / stored)
    assert plain["max_error"] == truth.max_error
    assert plain["psnr"] == pytest.approx(truth.psnr)
    assert (plain["ok"], plain["bound"], plain["raw_chunks"]) == (True, 1e-3, 0)
    assert min(plain["write_speed"], plain["read_speed"]) > 0


def test_ours_keep_bound_and_missing_values_and_peers_are_beside_them(path: Path) -> None:
    pytest.importorskip("hdf5plugin")
    found = json.loads(run(f"{path}:/group/p", "--relative", "1e-3", "--json", "--timeout", "3"))
    ours = [item for item in found["codecs"] if item["source"] == "pyfilter"]
    others = {item["name"]: item for item in found["codecs"] if item["source"] != "pyfilter"}
    assert ours
    assert all(item["ok"] and item["problem"] is None for item in ours)
    assert {"SZ", "SZ3", "Zfp", "Sperr", "Blosc2, zstd", "gzip, shuffle"} <= set(others)
    assert not others["Zfp"]["ok"]  # the fill value and NaN are not kept by it
    assert others["gzip, shuffle"]["max_error"] == 0
    assert found["notes"] == []


def test_the_table(path: Path) -> None:
    text = run(path, "--pointwise-relative", "1e-2", "--no-peers", "--only", "delta", "--only", "lossless")
    assert "error bound: 0.01 |x|" in text
    assert "Cuszp2" not in text
    assert re.search(r"^HierarchicalDelta +\d+\.\d\d +[\d.]+ +[\d.]+ +\S+ +[\d.]+ dB +kept +kept$", text, re.MULTILINE)
    assert re.search(r"^Lossless.* exact +kept$", text, re.MULTILINE)


def test_integers_and_npy_files(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(5000, dtype="i4"))
    found = json.loads(run(tmp_path / "a.npy", "--absolute", "1", "--no-peers", "--json"))
    assert all(item["ok"] or item["problem"] for item in found["codecs"])
    assert "Lossless" in {item["name"] for item in found["codecs"]}


def test_a_broken_bound_of_ours_is_status_1(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Bench, candidate: Candidate, **kwargs: Any) -> Outcome:
        return Outcome(candidate, ratio=2, max_error=9, psnr=3, write_speed=1, read_speed=1, specials_kept=True)

    monkeypatch.setattr(Bench, "run", broken)
    assert "BROKEN" in run(path, "--absolute", "1", "--no-peers", status=1)
    run(path, "--absolute", "1", "--only", "zfp")  # of others it is a finding, not a failure


# -- others may die


FAKE = """
import os, signal, time
def Segfault(): os.kill(os.getpid(), signal.SIGSEGV)
def Exits(): print("a filter that prints"); os._exit(0)
def Hangs(): time.sleep(60)
def Raises(): raise ValueError("not like this")
"""


def test_filters_that_crash_exit_hang_or_refuse(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hdf5plugin.py").write_text(FAKE, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    tried = [
        Candidate(name, "fake", {"plugin": name, "arguments": {}}, 1e-3)
        for name in ("Segfault", "Exits", "Hangs", "Raises")
    ]
    tried.append(next(candidates.ours(np.dtype("f4"), 3, ("absolute", 1e-3))))
    done: list[str] = []
    found = compare(everything(path), tried, timeout=6, progress=done.append)
    assert [item.problem for item in found] == [
        "crashed: SIGSEGV",
        "crashed: its process ended with status 0",
        "took more than 6 s",
        "refused: not like this",
        "",
    ]
    assert found[-1].ok
    assert done == [item.name for item in tried]


def test_a_signal_ends_the_worker_too(path: Path, tmp_path: Path) -> None:
    (tmp_path / "hdf5plugin.py").write_text(f"{FAKE}\nSZ = SZ3 = Zfp = Sperr = lambda **_: Hangs()", encoding="utf-8")
    folder = tmp_path / "temporary"
    folder.mkdir()
    command = [sys.executable, "-m", "pyfilter", "compare", str(path), "--absolute", "1", "--only", "sz"]
    environment = clean_environment(TMPDIR=str(folder))
    environment["PYTHONPATH"] = f"{tmp_path}{os.pathsep}{environment['PYTHONPATH']}"  # before an installed hdf5plugin
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, start_new_session=True)
    deadline = time.monotonic() + 60
    while not list(folder.glob("*/sample.json")) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(2)  # into the filter
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == -signal.SIGTERM
    assert list(folder.iterdir()) == []
    with pytest.raises(ProcessLookupError):  # nobody is left of its session
        os.killpg(process.pid, 0)


# -- pictures and pages


@pytest.fixture(scope="module")
def report(made: Path) -> Path:
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    out = made.with_name("report.html")
    wanted: list[str | Path] = ["--only", "delta", "--only", "zfp", "--html", out, "--plot", out.with_suffix(".png")]
    run(made, "--absolute", "1e-3", *wanted)
    return out


def test_the_picture_and_the_page(report: Path) -> None:
    assert report.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    text = report.read_text(encoding="utf-8")
    assert re.findall(r'(?:src|href)="(?!data:image/png;base64,)', text) == []
    assert text.count("data:image/png") == 2
    assert re.search("<td>HierarchicalDelta", text)
    assert "take HierarchicalDelta" in text
    if importlib.util.find_spec("hdf5plugin") is not None:
        assert '<tr class="theirs bad">' in text
    assert "http" not in re.sub(r"base64,[\w+/=]+", "", text)


def test_the_page_in_a_browser(report: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium")
    script = (
        "<script>onload = () => { const images = [...document.images];"
        "document.title = 'widths ' + images.map(i => i.naturalWidth > 500).join()"
        " + ' overflow ' + (document.documentElement.scrollWidth > innerWidth); }</script>"
    )
    copy = report.with_name("copy.html")
    copy.write_text(report.read_text(encoding="utf-8").replace("</body>", f"{script}</body>"), encoding="utf-8")
    command_line = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", "--window-size=1000,900"]
    done = subprocess.run(
        [*command_line, f"--user-data-dir={report.parent / 'profile'}", copy.as_uri()],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert "<title>widths true,true overflow false</title>" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("shape", "chunk", "of_shape", "index"),
    [
        ((5000,), (5000,), (5000,), (slice(1988, 3012, 1),)),
        ((40, 50), (40, 50), (40, 50), (slice(0, 40, 1), slice(0, 50, 1))),
        ((9, 40, 50), (9, 40, 50), (9, 40, 50), (4, slice(0, 40, 1), slice(0, 50, 1))),
        ((5000, 3), (5000, 3), (5000, 3), (slice(1988, 3012, 1), 1)),
        ((80, 50), (20, 50), (800, 50), (slice(0, 20, 1), slice(0, 50, 1))),  # joined chunks: the first of them
    ],
)
def test_the_part_that_is_shown(shape: Any, chunk: Any, of_shape: Any, index: Any) -> None:
    assert figures.slice_of(Sample("x", np.zeros(shape, "f4"), chunk, None, (), of_shape)) == index


# -- what is missing or wrong


@pytest.mark.parametrize(("module", "option"), [("matplotlib.figure", "--plot"), ("jinja2", "--html")])
def test_pictures_without_their_packages(path: Path, monkeypatch: pytest.MonkeyPatch, module: str, option: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(pyfilter.errors.MissingExtra, match=r"pip install 'h5pyfilter\[compare\]'"):
        run(path, "--absolute", "1", option, "out")


def test_without_hdf5plugin_ours_alone_are_compared(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "has_hdf5plugin", lambda: False)
    assert "hdf5plugin is not installed" in run(path, "--absolute", "1", "--only", "lossless")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["a.h5"], "give a bound"),
        (["a.h5", "--absolute", "1", "--relative", "1"], "not --absolute and --relative"),
        (["nothing.h5", "--absolute", "1"], "there is no file"),
        (
            ["a.h5:/nothing", "--absolute", "1"],
            "no dataset '/nothing' in .*; its datasets of numbers are /count, /group/p",
        ),
        (["a.h5", "--absolute", "1", "--only", "nothing"], "has nothing in its name"),
        (["const.npy", "--relative", "1"], "give --absolute"),
    ],
)
def test_bad_arguments_are_refused(path: Path, arguments: list[str], text: str) -> None:
    np.save(path.with_name("const.npy"), np.ones(100))
    with pytest.raises(ValueError, match=text):
        run(f"{path.parent}/{arguments[0]}", *arguments[1:])
