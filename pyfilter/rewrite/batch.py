# SPDX-License-Identifier: BSD-3-Clause
"""Many files compressed into one folder, one after the other, and taken up again where a run was ended.

Each result appears whole (job.py). A journal in the folder has a line for each finished file. A later run with
``resume`` skips an input if it is unchanged, the rules are the same, and the result still has its size.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyfilter.errors import InvalidArgument
from pyfilter.registry import registry
from pyfilter.rewrite.job import MAX_MEMORY, Report, compress_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyfilter.rewrite.rules import Rules

JOURNAL = ".pyfilter-compress.jsonl"


@dataclass(frozen=True)
class Result:
    """What became of one of the files.

    Attributes
    ----------
    source, target : Path
        The file and its copy.
    report : Report or None
        None: an earlier run has done it, or ``problem`` says why it was not done.
    problem : str
        Why there is no copy; empty where there is.
    """

    source: Path
    target: Path
    report: Report | None
    problem: str = ""

    @property
    def skipped(self) -> bool:
        """Whether an earlier run has done it."""
        return self.report is None and not self.problem


def expanded(words: Sequence[str]) -> list[Path]:
    """Return the files that words name: paths, and patterns with ``*``, ``?``, ``[...]`` or ``**`` for folders.

    Raises
    ------
    InvalidArgument
        If a word names no file.
    """
    found: list[Path] = []
    for word in words:
        path = Path(word)
        if path.is_file():
            found.append(path)
            continue
        hits = [Path(item) for item in sorted(glob.glob(word, recursive=True)) if Path(item).is_file()]  # noqa: PTH207
        if not hits:
            message = f"there is no file {word!r}" if not path.is_dir() else f"{word} is a folder: give {word}/*.nc"
            raise InvalidArgument(message)
        found += hits
    return list(dict.fromkeys(found))


def targets(sources: Sequence[Path], folder: Path) -> list[Path]:
    """Return where the copies go: a folder, each under the name of its source.

    Raises
    ------
    InvalidArgument
        If two have the same name.
    """
    made: dict[Path, Path] = {}
    for source in sources:
        target = folder / source.name
        if target in made:
            message = f"{made[target]} and {source} would both become {target}: compress them into two folders"
            raise InvalidArgument(message)
        made[target] = source
    return list(made)


def compress_files(
    sources: Sequence[Path],
    folder: Path,
    rules: Rules,
    progress: Callable[[str, int, int], None] | None = None,
    *,
    resume: bool = False,
    history: bool = False,
    attributes: bool = False,
    max_memory: int = MAX_MEMORY,
) -> Iterator[Result]:
    """Compress files into a folder, which is made where there is none; yield what became of each.

    Parameters
    ----------
    sources, folder
        From where to where.
    rules, progress, history, attributes, max_memory
        As for `compress_file`. If a file lacks a named variable, only that file fails.
    resume : bool
        Skip what an earlier run has done.
    """
    folder.mkdir(parents=True, exist_ok=True)
    journal = folder / JOURNAL
    pairs = list(zip(sources, targets(sources, folder), strict=True))
    done = _read(journal) if resume else {}
    with contextlib.suppress(FileNotFoundError):
        if not resume:
            journal.unlink()
    for source, target in pairs:
        if target.exists() and done.get(target.name) == _state(source, target, rules):
            yield Result(source, target, None)
            continue
        try:
            report = compress_file(
                source, target, rules, progress, history=history, attributes=attributes, max_memory=max_memory
            )
        except (ValueError, TypeError, OSError) as error:  # of this file; the others may be well
            yield Result(source, target, None, str(error))
            continue
        if report.ok:
            _append(journal, target.name, _state(source, target, rules))
        yield Result(source, target, report)


def _state(source: Path, target: Path, rules: Rules) -> str:
    """Return what tells whether a result is still the one for this input and these rules."""
    before = source.stat()
    asked = hashlib.sha256(f"{registry().version} {rules!r}".encode()).hexdigest()[:16]
    return f"{source.resolve()} {before.st_size} {before.st_mtime_ns} {target.stat().st_size} {asked}"


def _read(journal: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    with contextlib.suppress(FileNotFoundError):
        for line in journal.read_text(encoding="utf-8").splitlines():
            with contextlib.suppress(ValueError, KeyError, TypeError):  # the last line of a run that was killed
                entry = json.loads(line)
                found[entry["target"]] = entry["state"]
    return found


def _append(journal: Path, name: str, state: str) -> None:
    with journal.open("a", encoding="utf-8") as file:
        # the previous line may be of a run that was killed
        file.write("\n" + json.dumps({"target": name, "state": state}) + "\n")
        file.flush()
        os.fsync(file.fileno())
