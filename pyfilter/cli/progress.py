# SPDX-License-Identifier: BSD-3-Clause
"""Progress bars on stderr, where that is a terminal; nothing elsewhere."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_COLUMNS = "{task.description:>8}"


@contextmanager
def bar(total: int) -> Iterator[Callable[[str], None]]:
    """Show how many of ``total`` things are done; the function to call after each, with its name."""
    terminal = Console(stderr=True)
    if not terminal.is_terminal:
        yield lambda name: None
        return
    with Progress(TextColumn(_COLUMNS), BarColumn(), TimeRemainingColumn(), console=terminal, transient=True) as bars:
        task = bars.add_task("", total=total)
        yield lambda name: bars.update(task, advance=1, description=escape(name))


@contextmanager
def stages() -> Iterator[Callable[[str, int, int], None] | None]:
    """Show a bar for each stage; yields a function of a stage, its progress since the last call, and its total."""
    terminal = Console(stderr=True)
    if not terminal.is_terminal:
        yield None
        return
    tasks: dict[str, TaskID] = {}
    with Progress(TextColumn(_COLUMNS), BarColumn(), TimeRemainingColumn(), console=terminal, transient=True) as bars:

        def advance(stage: str, count: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total)
            bars.advance(tasks[stage], count)

        yield advance


def show_cursor() -> None:
    """Show the terminal's cursor again, which a bar hides."""
    terminal = Console(stderr=True)
    if terminal.is_terminal:
        terminal.show_cursor()
