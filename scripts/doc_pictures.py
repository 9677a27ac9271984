# SPDX-License-Identifier: BSD-3-Clause
"""Draws the pictures of the tutorial: runs its examples in a temporary folder and takes the figures that they save.

``python scripts/doc_pictures.py``, with pyfilter, xarray, netCDF4, hdf5plugin and matplotlib installed. The page
makes its fields itself. Neighbour: doc_drawings.py, for the drawings.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "tutorial.md"


def main() -> None:
    """Run the page and copy its pictures to docs/pictures."""
    wanted = re.findall(r"\]\(pictures/([\w-]+\.png)\)", PAGE.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as scratch:
        runner = ROOT / "tests" / "python" / "pages.py"
        subprocess.run([sys.executable, runner, PAGE], cwd=scratch, env={**os.environ, "MPLBACKEND": "agg"}, check=True)
        folder = ROOT / "docs" / "pictures"
        folder.mkdir(exist_ok=True)
        for name in wanted:
            shutil.copy(Path(scratch) / name, folder / name)
            print(folder / name)


if __name__ == "__main__":
    main()
