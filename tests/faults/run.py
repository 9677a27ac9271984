# SPDX-License-Identifier: BSD-3-Clause
"""Run every scenario many times and print the table of docs/reliability.md.

In the folder `tests`: `python -m faults.run [RUNS] [PART OF A NAME] [--codec NAME]`; without a codec they take turns.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from pathlib import Path

from . import scenarios, wide
from .children import CODECS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=int, nargs="?", default=100)
    parser.add_argument("part", nargs="?", default="")
    parser.add_argument("--codec", choices=CODECS)
    parser.add_argument("--only-wide", action="store_true", help="those of wide.py")
    words = parser.parse_args()
    if words.codec:
        scenarios.CHOICE[:] = [words.codec]
    print("| fault | runs | outcome |\n|---|---|---|")
    for title, scenario in scenarios.SCENARIOS.items():
        if words.part not in title or (words.only_wide and scenario.__module__ != wide.__name__):
            continue
        outcomes: Counter[str] = Counter()
        for seed in range(words.runs):
            with tempfile.TemporaryDirectory() as folder:
                outcomes[scenario(Path(folder), seed)] += 1
        said = "; ".join(f"{what}: {count}" for what, count in outcomes.most_common())
        print(f"| {title} | {words.runs} | {said} |", flush=True)


if __name__ == "__main__":
    main()
