# SPDX-License-Identifier: BSD-3-Clause
"""What MkDocs needs to know of the repository around docs/: pages from its root, and links to its source files."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
#: pages of the site that lie outside docs/
BROUGHT = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}


def on_files(files: Files, config: Any, **_: Any) -> Files:
    """Add the pages from the root of the repository, and leave this file out."""
    for source, page in BROUGHT.items():
        text = re.sub(r"\]\(docs/", "](", (ROOT / source).read_text(encoding="utf-8"))
        files.append(File.generated(config, page, content=text))
    own = files.get_file_from_path("site_hooks.py")
    if own is not None:
        files.remove(own)
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turn links to source files, which the site does not have, into the files' names.

    tests/python/test_docs.py checks in the repository that they lead somewhere.
    """
    folder = Path("docs") / Path(page.file.src_uri).parent
    if page.file.src_uri in BROUGHT.values():
        folder = Path("docs")

    def outside(link: re.Match[str]) -> str:
        text, target = link[1], link[2].partition("#")[0]
        if not target or ":" in target:
            return link[0]
        place = os.path.normpath(folder / target)
        if page.file.src_uri in BROUGHT.values() and not (ROOT / place).exists():
            place = os.path.normpath(target)
        if place in BROUGHT:
            return f"[{text}]({os.path.relpath(BROUGHT[place], Path(page.file.src_uri).parent)})"
        if place.startswith("docs" + os.sep) and not place.endswith(".json"):
            return link[0]
        name = text.strip("`")
        return f"`{name}`" if place.endswith(name) else f"{text} (`{place}`)"

    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.MULTILINE | re.DOTALL)
    parts[::2] = [re.sub(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)", outside, part) for part in parts[::2]]
    return "".join(parts)
