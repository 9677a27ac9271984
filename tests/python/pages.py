# SPDX-License-Identifier: BSD-3-Clause
"""Runs the examples of a page: ``python pages.py PAGE [--model]``, in the current folder.

Blocks of Python share their names, in the order of the page; blocks of sh are run by bash. A comment before a block
changes that: ``<!-- not run: REASON -->``, or ``<!-- needs: PACKAGE -->`` for one that runs where the package is
installed. With --model, "cupy" is the model of two devices that tests/gpu has. test_examples.py starts it, as a process
of its own.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any, NamedTuple

BLOCK = re.compile(
    r"^(?:<!-- (?P<note>[^\n]*) -->\n)?(?P<indent> *)```(?P<language>\w+)\n(?P<text>.*?)^(?P=indent)```$", re.M | re.S
)
NOT_RUN = "not run: "
NEEDS = "needs: "
#: commands of this interpreter, whether or not its folder is in PATH
COMMANDS = f'''pyfilter() {{ "{sys.executable}" -m pyfilter "$@"; }}
python() {{ "{sys.executable}" "$@"; }}
'''


class Block(NamedTuple):
    """An example: its language, its text, the line where it begins, why it is not run, if so, and what it needs."""

    language: str
    text: str
    line: int
    not_run: str
    needs: str


def blocks(page: Path) -> list[Block]:
    """Return the examples of a page in Python and sh."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in BLOCK.finditer(text):
        note = match["note"] or ""
        reason = note.removeprefix(NOT_RUN) if note.startswith(NOT_RUN) else ""
        package = note.removeprefix(NEEDS) if note.startswith(NEEDS) else ""
        if package and importlib.util.find_spec(package) is None:
            reason = f"{package} is not installed"
        lines = [line.removeprefix(match["indent"]) for line in match["text"].splitlines()]
        where = text.count("\n", 0, match.start("text")) + 1
        found.append(Block(match["language"], "\n".join(lines) + "\n", where, reason, package))
    return [block for block in found if block.language in ("python", "sh")]


def run(page: Path) -> int:
    """Run the examples; return how many ran."""
    names: dict[str, Any] = {"__name__": "__main__"}
    ran = 0
    for block in blocks(page):
        if block.not_run:
            continue
        if block.language == "python":
            # as many empty lines before it as in the page: a traceback then has the page's lines
            exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec"), names)
        else:
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", COMMANDS + block.text], check=False)
            if done.returncode:
                message = f"{page.name}, line {block.line}: status {done.returncode}"
                raise RuntimeError(message)
        ran += 1
    return ran


def main() -> None:
    """Run the page that the command line names."""
    page = Path(sys.argv[1])
    if "--model" in sys.argv:
        sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
        importlib.import_module("gpu.model").install()
    # those of zarr-python, kerchunk and matplotlib are no business of the page's
    warnings.simplefilter("error")
    for module in ("zarr", "kerchunk", "fsspec", "matplotlib", "numcodecs"):
        warnings.filterwarnings("ignore", module=module)
    try:
        count = run(page)
    except BaseException:  # what the libraries' threads do at the end would hide it
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    print(f"ran {count}")
    sys.stdout.flush()
    if "--model" in sys.argv:
        os._exit(0)


if __name__ == "__main__":
    main()
