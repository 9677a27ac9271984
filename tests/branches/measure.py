# SPDX-License-Identifier: BSD-3-Clause
"""Branches that tests took, from what `gcov` says of a build with `--coverage`."""

from __future__ import annotations

import json
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
#: Lines without a condition: their branches are the compiler's (destructors, ends of loops over nothing).
PLAIN = re.compile(r"[\s{}();]*(else|default:|break;)?[\s{}();]*(//.*)?")

#: file, line, number among the line's branches
Branch = tuple[str, int, int]


@dataclass(frozen=True)
class Missed:
    """A line of which a branch was never taken."""

    file: str
    line: int
    text: str
    branches: int


def own_branches(branches: list[dict[str, Any]]) -> list[int]:
    """How often each was taken, without those of exceptions: a call that may throw has two, one is the return."""
    counts, at = [], 0
    while at < len(branches):
        pair = branches[at : at + 2]
        if any(branch["throw"] for branch in pair):
            at += 2
            continue
        counts.append(branches[at]["count"])
        at += 1
    return counts


def instances(functions: list[dict[str, Any]]) -> dict[int, set[str]]:
    """For each line the innermost functions there: more than one if they are instances of a template."""
    here: dict[int, tuple[tuple[int, int], set[str]]] = {}
    for one in sorted(functions, key=lambda one: (one["start_line"], one["start_column"])):
        start = (one["start_line"], one["start_column"])
        for line in range(one["start_line"], one["end_line"] + 1):
            if line not in here or here[line][0] != start:
                here[line] = (start, set())
            here[line][1].add(one["name"])
    return {line: names for line, (_, names) in here.items()}


def lines_of(data: Path) -> Iterator[tuple[str, int, list[int]]]:
    """File, line and counts for each line with branches, for each instance of a template anew.

    Of generic lambdas gcov lists all instances as one: such a line counts as one condition with two outcomes.
    """
    command = ["gcov", "--json-format", "--stdout", "--branch-probabilities", str(data)]
    said = subprocess.run(command, cwd=data.parent, capture_output=True, text=True, check=True).stdout
    for report in said.splitlines():
        for file in json.loads(report)["files"]:
            path = (data.parent / file["file"]).resolve()
            if not path.is_relative_to(ROOT):
                continue
            inner = instances(file["functions"])
            for line in file["lines"]:
                counts = own_branches(line["branches"])
                here = inner.get(line["line_number"], set())
                if len(here) > 1 and line.get("function_name") not in here:
                    counts = [sum(counts[0::2]), sum(counts[1::2])][: len(counts)]
                if counts:
                    yield str(path.relative_to(ROOT)), line["line_number"], counts


def measure(build: Path, is_counted: re.Pattern[str]) -> dict[Branch, bool]:
    """For each branch of the files that match whether it was taken: in a template, by any of its instances."""
    taken: dict[Branch, bool] = defaultdict(bool)
    with ThreadPoolExecutor(2) as pool:
        for lines in pool.map(lambda data: list(lines_of(data)), sorted(build.rglob("*.gcda"))):
            for file, line, counts in lines:
                if is_counted.fullmatch(file) is not None:
                    for number, count in enumerate(counts):
                        taken[file, line, number] |= count > 0
    texts = {file: (ROOT / file).read_text("utf-8").splitlines() for file in {branch[0] for branch in taken}}
    return {at: was for at, was in taken.items() if PLAIN.fullmatch(texts[at[0]][at[1] - 1]) is None}


def missed(taken: dict[Branch, bool]) -> list[Missed]:
    """The lines with branches that were not taken."""
    count: dict[tuple[str, int], int] = defaultdict(int)
    for (file, line, _), was in taken.items():
        count[file, line] += not was
    texts = {file: (ROOT / file).read_text("utf-8").splitlines() for file, _ in count}
    return [Missed(file, line, texts[file][line - 1].strip(), n) for (file, line), n in sorted(count.items()) if n]
