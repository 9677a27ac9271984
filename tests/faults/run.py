# SPDX-License-Identifier: BSD-3-Clause
"""Run every scenario many times and print the table of docs/reliability.md.

In the folder `tests`: `python -m faults.run [RUNS] [PART OF A NAME]`.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

from .scenarios import SCENARIOS


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    wanted = sys.argv[2] if len(sys.argv) > 2 else ""
    print("| fault | runs | outcome |\n|---|---|---|")
    for title, scenario in SCENARIOS.items():
        if wanted not in title:
            continue
        outcomes: Counter[str] = Counter()
        for seed in range(runs):
            with tempfile.TemporaryDirectory() as folder:
                outcomes[scenario(Path(folder), seed)] += 1
        said = "; ".join(f"{what}: {count}" for what, count in outcomes.most_common())
        print(f"| {title} | {runs} | {said} |", flush=True)


if __name__ == "__main__":
    main()
