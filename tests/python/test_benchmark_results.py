# SPDX-License-Identifier: BSD-3-Clause
"""Saved results of benchmarks, the charts that are drawn from them, and the page that shows the charts."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from .support import REPOSITORY

RESULTS = sorted((REPOSITORY / "benchmarks" / "results").glob("*.json"))
PAGE = REPOSITORY / "docs" / "benchmarks.md"
HEAD = ["command: python -m benchmarks.none", "commit: 1234567; 2026-01-02 03:04 UTC", "CPU: some", "raw: 2 GB/s"]


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Import a module of the folder benchmarks."""
    monkeypatch.syspath_prepend(str(REPOSITORY))
    return lambda name: importlib.import_module(f"benchmarks.{name}")


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: str(path.stem))
def test_a_result_says_where_it_comes_from_and_its_rows_fit(path: Path, module: Any) -> None:
    result = module("result").Result.load(path.stem)
    assert result.command.startswith("python -m benchmarks.")
    assert re.match(r"[0-9a-f]{7}", result.commit)
    assert re.match(r"20\d\d-\d\d-\d\d", result.date)
    assert result.machine.keys() & {"CPU", "GPU"}
    assert result.legend
    for table in result.tables:
        assert table.rows
        assert {len(row) for row in table.rows} == {len(table.columns)}
        assert all(len(record) == len(table.columns) for record in table.records())


def test_a_benchmark_keeps_what_it_printed(tmp_path: Path, module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    report, results = module("report"), module("result")
    monkeypatch.setattr(results, "FOLDER", tmp_path / "results")
    rows = report.Rows("speeds", ["field", "C", "C"])
    rows.add("sea", "1.50", "µ")
    written = report.keep(
        HEAD, "GB/s", ["held"], [rows], marker="none", markdown=tmp_path / "none.md", save=True
    )  # fmt: skip
    assert written == [str(tmp_path / "none.md"), str(tmp_path / "results" / "none.json")]
    json.loads((tmp_path / "results" / "none.json").read_text(encoding="utf-8"))
    back = results.Result.load("none")
    assert (back.commit, back.date, back.machine) == (
        "1234567",
        "2026-01-02 03:04 UTC",
        {"CPU": "some", "raw": "2 GB/s"},
    )
    assert back.tables[0].records() == [{"field": "sea", "C": "1.50", "C 2": "µ"}]
    assert "| sea | 1.50 | µ |" in (tmp_path / "none.md").read_text(encoding="utf-8")
    with pytest.raises(FileNotFoundError, match=r"no result 'other'.*there are none"):
        results.Result.load("other")
    with pytest.raises(ValueError, match="needs the lines 'command"):
        results.Result.of(HEAD[1:], "", [], [])


def test_the_page_shows_each_chart_and_names_each_result(module: Any) -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 150
    charts = module("charts")
    assert re.findall(r"\(charts/([\w-]+)\.svg\)", text) == list(charts.CHARTS)
    named = {
        name for line in re.findall(r"^Tables: (.*)\.$", text, re.MULTILINE) for name in re.findall(r"`(\w+)`", line)
    }
    saved = {path.stem for path in RESULTS}
    assert saved - {"turns"} == named


def test_charts_are_drawn_with_machine_and_date(tmp_path: Path, module: Any) -> None:
    pytest.importorskip("matplotlib")
    charts, results = module("charts"), module("result")
    for path in charts.draw(folder=tmp_path):
        drawn, kept = path.read_text(encoding="utf-8"), charts.FOLDER / path.name
        said = set(re.findall(r"(\w+) (20\d\d-\d\d-\d\d)", drawn))
        assert said
        for name, date in said:
            assert results.Result.load(name).date.startswith(date)
        # the chart in the repository is of the same results
        assert set(re.findall(r"(\w+) (20\d\d-\d\d-\d\d)", kept.read_text(encoding="utf-8"))) == said
