# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of rewritten files share."""

from __future__ import annotations

from pathlib import Path

from pyfilter import Cuszp2
from pyfilter.rewrite import Report, Row, Rules, compress_file

BOUND = Cuszp2(absolute=1e-3)


def compress(source: Path, rules: Rules | None = None) -> tuple[Path, Report]:
    target = source.with_name(f"out_{source.name}")
    report = compress_file(source, target, rules or Rules(BOUND))
    assert report.ok
    assert [item.name for item in source.parent.glob(".*")] == []
    return target, report


def rows(report: Report) -> dict[str, Row]:
    return {row.path: row for row in report.rows}
