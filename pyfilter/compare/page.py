# SPDX-License-Identifier: BSD-3-Clause
"""A comparison as one page of HTML that needs nothing beside itself (report.html.j2, by jinja2)."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyfilter.errors import missing_extra

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_TEMPLATE = Path(__file__).with_name("report.html.j2")


def require() -> Any:
    """Return jinja2, or say which extra installs it."""
    try:
        import jinja2
    except ImportError as error:
        raise missing_extra("jinja2", "compare") from error
    return jinja2


def render(
    title: str,
    facts: Mapping[str, str],
    headings: Sequence[str],
    rows: Sequence[tuple[str, Sequence[str]]],
    notes: Sequence[str],
    pictures: Mapping[str, bytes],
) -> str:
    """Return the page.

    Parameters
    ----------
    title
        Its title.
    facts
        The sample, the settings and the machine, by name.
    headings
        Of the table's columns.
    rows
        A class ("ours", "theirs", with " bad" behind) and the cells of each row.
    notes
        Sentences below the table.
    pictures
        PNG files by their descriptions.

    Raises
    ------
    MissingExtra
        If jinja2 is not installed.
    """
    environment = require().Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(_TEMPLATE.read_text(encoding="utf-8"))
    encoded = {text: base64.b64encode(png).decode("ascii") for text, png in pictures.items()}
    page: str = template.render(title=title, facts=facts, headings=headings, rows=rows, notes=notes, pictures=encoded)
    return page
