# SPDX-License-Identifier: BSD-3-Clause
"""`pytest tests/golden --write-golden` writes the golden files that are missing (README.md)."""

from __future__ import annotations

import pytest

OPTION = "--write-golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(OPTION, action="store_true", help="write golden files that are missing; never overwrites one")


def pytest_sessionstart(session: pytest.Session) -> None:
    if session.config.getoption(OPTION, default=False):
        from . import writer  # before the tests are collected, which list the files

        for path in writer.write_missing():
            print(f"wrote {path}")
