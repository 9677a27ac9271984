# SPDX-License-Identifier: BSD-3-Clause
"""Each scenario a few times; run.py runs them by the hundred."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import wide  # noqa: F401 - its scenarios are noted in SCENARIOS
from .scenarios import SCENARIOS

SEEDS = {"bits": 16, "file cut": 4, "kill -9 while h5py": 4}  # of names that start so; else 2


@pytest.mark.parametrize("title", SCENARIOS)
def test_fault(tmp_path: Path, title: str) -> None:
    runs = next((count for start, count in SEEDS.items() if title.startswith(start)), 2)
    for seed in range(runs):
        folder = tmp_path / str(seed)
        folder.mkdir()
        said = SCENARIOS[title](folder, seed)
        if said.startswith("not run"):
            pytest.skip(said)
