# SPDX-License-Identifier: BSD-3-Clause
"""The documentation site: MkDocs builds it without a warning, and its pages need nothing from other sites."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from .support import REPOSITORY

#: pages of docs/ that no reader of the site needs
LEFT_OUT: set[str] = set()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site."""
    for package in ("mkdocs", "material", "mkdocstrings"):
        pytest.importorskip(package)
    folder = tmp_path_factory.mktemp("site")
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=REPOSITORY, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stdout + done.stderr
    return folder


def test_every_page_is_in_the_navigation(site: Path) -> None:
    text = (REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8")
    named = set(re.findall(r"([\w/-]+\.md)$", text, re.MULTILINE))
    docs = REPOSITORY / "docs"
    pages = {str(page.relative_to(docs)) for page in docs.glob("**/*.md")}
    assert pages - LEFT_OUT == named - {"changelog.md", "contributing.md"}
    for page in named:
        place = page.removesuffix(".md").removesuffix("README").removesuffix("index").rstrip("/")
        assert (site / place / "index.html").is_file(), page


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    pages = list(site.glob("**/*.html"))
    assert len(pages) > 50
    for page in pages:
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r'<(?:script|img|source|iframe)[^>]+src="(https?:[^"]+)"', text)
        loaded += re.findall(r'<link[^>]+rel="(?:stylesheet|preconnect|icon)"[^>]+href="(https?:[^"]+)"', text)
        loaded += re.findall(r'<link[^>]+href="(https?:[^"]+)"[^>]+rel="(?:stylesheet|preconnect)"', text)
        assert not loaded, page


def test_the_reference_has_every_public_name(site: Path) -> None:
    import pyfilter

    text = "".join(page.read_text(encoding="utf-8") for page in (site / "api").glob("**/index.html"))
    headings = set(re.findall(r'<h2 id="(pyfilter\.[\w.]+)"', text))
    missing = {
        name
        for name in pyfilter.__all__
        if name not in ("FILTERS", "FILTER_ID", "PLUGIN_PATH", "PyfilterError", "__version__")
        and not any(heading.startswith(f"pyfilter.{name}") for heading in headings)
    }
    assert not missing
