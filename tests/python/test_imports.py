# SPDX-License-Identifier: BSD-3-Clause
"""The package's modules by what they import when they are imported: no cycles; none is too long."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from .support import REPOSITORY

PACKAGE = REPOSITORY / "pyfilter"
MOST_LINES = 400


def modules() -> dict[str, Path]:
    """Return the files by the names of their modules."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(REPOSITORY).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(body: list[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield what runs when the module is imported: not in functions, not for type checkers."""
    for node in body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from imports(node.orelse)
        elif isinstance(node, (ast.If, ast.Try, ast.With, ast.ClassDef, ast.For)):
            for name in ("body", "orelse", "finalbody"):
                yield from imports(getattr(node, name, []))
            for handler in getattr(node, "handlers", []):
                yield from imports(handler.body)


def imported(text: str, known: dict[str, Path]) -> set[str]:
    """Return the modules of the package that a module's text imports."""
    found: set[str] = set()
    for node in imports(ast.parse(text).body):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        else:
            assert node.level == 0, "an import from where the module itself is: give the whole name"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in known else str(node.module))
    return found & set(known)


def cycle(graph: dict[str, set[str]]) -> list[str]:
    """Return the modules of a cycle, none where there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_module_imports_itself_through_others() -> None:
    known = modules()
    graph = {name: imported(path.read_text(encoding="utf-8"), known) for name, path in known.items()}
    assert len(graph) > 60
    assert graph["pyfilter._lib.library"] >= {"pyfilter.errors", "pyfilter._lib.abi"}
    assert graph["pyfilter._lib.abi"] == set()  # tests/reference/library.py loads it by itself
    assert cycle(graph) == []


@pytest.mark.parametrize(
    ("text", "closed"),
    [
        ("from pyfilter import stored", True),
        ("import pyfilter.stored as s", True),
        ("try:\n    from pyfilter.stored import x\nexcept ImportError:\n    pass", True),
        ("if TYPE_CHECKING:\n    from pyfilter import stored", False),
        ("def f():\n    from pyfilter import stored", False),
        ("from pyfilter import errors", False),
    ],
)
def test_a_cycle_is_found(text: str, closed: bool) -> None:
    known = {name: Path() for name in ("pyfilter", "pyfilter.stored", "pyfilter.layout", "pyfilter.errors")}
    graph = {"pyfilter.stored": {"pyfilter.layout"}, "pyfilter.layout": imported(text, known)}
    assert bool(cycle(graph)) == closed


def test_modules_are_not_too_long() -> None:
    lengths = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in modules().items()}
    assert {name: length for name, length in lengths.items() if length > MOST_LINES} == {}
