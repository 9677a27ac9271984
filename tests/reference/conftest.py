# SPDX-License-Identifier: BSD-3-Clause
"""The library for the tests of this folder. Tests that set its CPU level need not reset it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .library import Library
from .located import PATH


@pytest.fixture(scope="module")
def library() -> Iterator[Library]:
    assert PATH is not None
    made = Library(PATH)
    yield made
    made.configure("cpu_level", "auto")
