# SPDX-License-Identifier: BSD-3-Clause
"""Tables of the subcommands: one line a row, names whole, whatever the output's width.

Into a pipe or file a row is as long as it needs to be. In a terminal that is too narrow, a column of long texts is
shortened first. Then less important columns are left out, and a line below the table names them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Sequence

_ANY_WIDTH = 1 << 20
_END = re.compile(r"(?: |\x1b\[[0-9;]*m)+$")  # spaces, and what sets colours
SHORTEST = 12  # columns of a terminal that a shortened text keeps


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes
    ----------
    heading : str
        What stands above it.
    right : bool
        Whether its cells are numbers, to be put at the right.
    drop : int or None
        Columns with a number are left out where the terminal is too narrow, the lowest first. None: never.
    shorten : bool
        Whether its cells may be shortened before any column is left out.
    """

    heading: str
    right: bool = False
    drop: int | None = None
    shorten: bool = False


def show(
    columns: Sequence[Column],
    rows: Sequence[Sequence[str]],
    *,
    title: str = "",
    header: bool = True,
    styles: Sequence[str] = (),
    sections: Sequence[int] = (),
) -> None:
    """Print a table on stdout.

    Parameters
    ----------
    columns : sequence of Column
        Its columns.
    rows : sequence
        The cells of each row, as rich's markup.
    title : str, optional
        A line above it, as rich's markup.
    header : bool, optional
        Whether the headings are printed.
    styles : sequence of str, optional
        The style of each row; empty for none.
    sections : sequence of int, optional
        Rows that an empty line comes before.
    """
    console = Console()
    if title:
        console.print(title, soft_wrap=True, highlight=False)
    kept = list(range(len(columns)))
    short: dict[int, int] = {}
    dropped: list[str] = []

    def table() -> Table:
        made = Table(box=None, header_style="bold", pad_edge=False, show_header=header)
        for index in kept:
            justify: Literal["left", "right"] = "right" if columns[index].right else "left"
            width = short.get(index)
            made.add_column(columns[index].heading, justify=justify, no_wrap=True, overflow="ellipsis", max_width=width)
        for number, row in enumerate(rows):
            if number in sections:
                made.add_row()
            made.add_row(*(row[index] for index in kept), style=styles[number] if styles else None)
        return made

    def needed(made: Table) -> int:
        return Measurement.get(console, console.options.update(max_width=_ANY_WIDTH), made).maximum

    made = table()
    if console.is_terminal:
        order = sorted((index for index in kept if columns[index].drop is not None), key=lambda i: columns[i].drop or 0)
        while (excess := needed(made) - console.width) > 0:
            width = _shortened(columns, rows, kept, excess)
            if width is not None:
                short.update(width)
            elif order:
                kept.remove(order[0])
                dropped.append(columns[order.pop(0)].heading)
            else:
                break  # names stay whole: the terminal goes on in the next line by itself
            made = table()
            if width is not None:
                break
    with console.capture() as captured:
        console.width = max(needed(made), 1)
        console.print(made)
    # rich fills each line up to the longest, which would have a terminal break it
    for line in captured.get().splitlines():
        console.file.write(_END.sub(lambda end: end.group().replace(" ", ""), line) + "\n")
    if dropped:
        console.print(
            f"left out, the terminal is narrow: {', '.join(dropped)} (--json has all)", soft_wrap=True, highlight=False
        )


def _shortened(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], kept: Sequence[int], excess: int
) -> dict[int, int] | None:
    """Return the widths of the columns to shorten so that ``excess`` is saved, None where that is too much."""
    widths: dict[int, int] = {}
    for index in kept:
        if not columns[index].shorten:
            continue
        longest = max((Text.from_markup(row[index]).cell_len for row in rows), default=0)
        saved = min(excess, longest - SHORTEST)
        if saved > 0:
            widths[index] = longest - saved
            excess -= saved
    return widths if excess <= 0 else None
