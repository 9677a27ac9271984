# SPDX-License-Identifier: BSD-3-Clause
"""What the documents say is so: the README's examples run, links lead somewhere, codecs have their page."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from pyfilter.registry import registry

from .support import REPOSITORY, clean_environment, run_script

README = REPOSITORY / "README.md"
DOCS = sorted([README, REPOSITORY / "CONTRIBUTING.md", *REPOSITORY.glob("docs/**/*.md")])


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_the_readmes_python_runs(tmp_path: Path) -> None:
    pytest.importorskip("netCDF4")
    pytest.importorskip("xarray")
    examples = blocks(README, "python")
    assert len(examples) == 2
    for text in examples:
        run_script(f"import os\nos.chdir({str(tmp_path)!r})\n{text}")
    script = """
import sys, h5py, pyfilter
for path, name in (("run.h5", "pressure"), ("run.h5", "pressure_rel"), ("t.nc", "t")):
    with h5py.File(f"{sys.argv[1]}/{path}") as file:
        print(pyfilter.codec_of(file[name]))
"""
    first, second, third = run_script(script, tmp_path).stdout.splitlines()
    assert first == "HierarchicalDelta(absolute=0.001)"
    assert second.startswith("Lorenzo(absolute=0.00")
    assert third == "Lorenzo(absolute=0.01)"


def test_the_readme_is_a_screen_and_a_half_with_the_two_commands() -> None:
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 90
    assert "    bash scripts/demo\n" in text
    assert "    bash scripts/test\n" in text


def test_the_changelog_is_what_a_user_of_a_release_reads() -> None:
    assert len((REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()) <= 60


@pytest.mark.parametrize("page", [README, REPOSITORY / "docs" / "commands.md"], ids=lambda path: str(path.stem))
def test_the_commands_of_a_page_run(page: Path, tmp_path: Path) -> None:
    pytest.importorskip("netCDF4")
    subprocess.run([sys.executable, REPOSITORY / "scripts" / "example_file.py", tmp_path / "in.nc"], check=True)
    (text,) = blocks(page, "sh")
    names = set()
    for line in text.splitlines():
        words = shlex.split(line, comments=True)
        assert words[0] == "pyfilter"
        names.add(words[1])
        if words[1] == "compare":  # all the others take a while
            words += ["--only", "cuszp2", "--sample-mib", "1"]
        command = [sys.executable, "-m", *words]
        done = subprocess.run(
            command, cwd=tmp_path, env=clean_environment(), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
    if page != README:
        table = page.read_text(encoding="utf-8").partition("## Exit status")[0]
        assert names == set(re.findall(r"^\| `(\w+)", table, re.MULTILINE))


@pytest.mark.parametrize("path", DOCS, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_links_lead_somewhere(path: Path) -> None:
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in link:
            continue
        target, _, anchor = link.partition("#")
        place = (path.parent / target).resolve() if target else path
        assert place.exists(), f"{path.name}: {link}"
        if anchor:
            there = place.read_text(encoding="utf-8")
            headings = re.findall(r"^#+ (.*)$", there, re.MULTILINE)
            known = {re.sub(r"[^\w\- ]", "", item).strip().lower().replace(" ", "-") for item in headings}
            assert anchor in known | set(re.findall(r"^::: (\S+)$", there, re.MULTILINE))


@pytest.mark.parametrize("name", registry().codecs)
def test_every_codec_has_a_page_with_all_its_parameters(name: str) -> None:
    spec = registry().codecs[name]
    text = (REPOSITORY / "docs" / "codecs" / f"{name}.md").read_text(encoding="utf-8")
    said = set(re.findall(r"`([\w.]+)`", text))
    assert text.startswith(f"# {spec.class_name}\n")
    assert {bound for bound in spec.bounds if bound != "none"} <= said
    for parameter in spec.parameters:
        assert {parameter.name, *parameter.values} <= said, parameter.name
        assert f"`{parameter.default}` (default)" in text
    assert f"pyfilter.{spec.class_name}(" in text
    assert "When to use it" in text
    overview = REPOSITORY / "docs" / "codecs" / "README.md"
    assert f"{name}.md)" in overview.read_text(encoding="utf-8")
