# SPDX-License-Identifier: BSD-3-Clause
"""The list of mutants fits the sources: CI does not build mutants (README.md)."""

from __future__ import annotations

from pathlib import Path

import pytest

from .mutants import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.check)
def test_the_weakened_text_is_there_once(mutant: Mutant) -> None:
    assert (ROOT / mutant.file).read_text("utf-8").count(mutant.old) == 1
    assert mutant.new != mutant.old


@pytest.mark.parametrize("test", sorted({test for mutant in MUTANTS for test in mutant.tests if "/" in test}))
def test_the_tests_are_there(test: str) -> None:
    file, _, name = test.partition("::")
    assert f"def {name}" in (ROOT / "tests" / file).read_text("utf-8")


def test_there_are_enough() -> None:
    assert len(MUTANTS) >= 25
    assert len({mutant.check for mutant in MUTANTS}) == len(MUTANTS)
