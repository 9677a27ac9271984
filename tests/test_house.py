# SPDX-License-Identifier: BSD-3-Clause
"""The rules of kernels/: what may include what, codec names only in their rooms, short files that say what they are.

Rooms are the folders that registry.json names. core/ knows neither rooms nor stages, stages/ knows core/, a room knows
both and no other room. bridge/ joins the two libraries and may name what any of them exports.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CODECS = json.loads((ROOT / "registry.json").read_text(encoding="utf-8"))["codecs"]
SUFFIXES = {".hpp", ".cpp", ".cu", ".cuh", ".h"}
MOST_LINES = 400
#: core/cuda/ reads headers of stages/cuda/ nowhere; this is the whole list of folders that each may include
LAYERS = {"core": {"core"}, "stages": {"core", "stages"}}
GENERATED = {"registry_table.hpp"}


def sources(root: Path) -> Iterator[tuple[str, str]]:
    """Yield the name, from kernels/ on, and the text of each source."""
    for path in sorted((root / "kernels").rglob("*")):
        if path.suffix in SUFFIXES:
            yield path.relative_to(root / "kernels").as_posix(), path.read_text(encoding="utf-8")


def includes(text: str) -> list[str]:
    """Return what a source includes of this project."""
    return re.findall(r'^#include "([^"]+)"', text, re.MULTILINE)


def problems(root: Path, codecs: list[dict[str, str]]) -> Iterator[str]:
    """Yield what breaks a rule."""
    rooms = {codec["name"] for codec in codecs}
    words = "|".join(sorted({*rooms, *(codec["class"] for codec in codecs), "particle", "kCodec[A-Z]\\w*"}))
    names = re.compile(rf"\b({words})\b", re.IGNORECASE)
    harmless = re.compile(r"\bkCodecs\b|\bkCodecIds\b")
    graph: dict[str, list[str]] = {}
    for name, text in sources(root):
        folder = name.split("/")[0]
        graph[name] = [included for included in includes(text) if included not in GENERATED]
        if folder != "bridge":
            allowed = LAYERS.get(folder, {"core", "stages", folder})
            for included in graph[name]:
                if included.split("/")[0] not in allowed:
                    yield f"{name} includes {included}"
        if folder in LAYERS:
            for number, line in enumerate(text.splitlines(), 1):
                if found := names.search(harmless.sub("", line)):
                    yield f"{name}:{number} names {found[1]}"
        if text.count("\n") > MOST_LINES:
            yield f"{name} has {text.count(chr(10))} lines, at most {MOST_LINES}"
        if not re.match(r"// SPDX-License-Identifier: BSD-3-Clause\n// \S", text):
            yield f"{name} does not begin with its licence and what it is"
    yield from (f"{' -> '.join(circle)} include each other" for circle in circles(graph))


def circles(graph: dict[str, list[str]]) -> Iterator[list[str]]:
    """Yield files that include each other, each circle once."""
    done: set[str] = set()
    for start in graph:
        path: list[str] = []

        def visit(name: str, path: list[str] = path) -> Iterator[list[str]]:
            if name in path:
                yield [*path[path.index(name) :], name]
            elif name not in done and name in graph:
                path.append(name)
                for included in graph[name]:
                    yield from visit(included)
                path.pop()
                done.add(name)

        yield from visit(start)


def test_the_house_keeps_its_rules() -> None:
    assert list(problems(ROOT, CODECS)) == []


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("core/a.hpp", '#include "lorenzo/plan.hpp"', "core/a.hpp includes lorenzo/plan.hpp"),
        ("core/a.hpp", '#include "stages/b.hpp"', "core/a.hpp includes stages/b.hpp"),
        ("stages/a.cuh", '#include "cuszp2/b.hpp"', "stages/a.cuh includes cuszp2/b.hpp"),
        ("cuszp2/a.cpp", '#include "lorenzo/plan.hpp"', "cuszp2/a.cpp includes lorenzo/plan.hpp"),
        ("core/a.hpp", "int codec = kCodecLorenzo;", "core/a.hpp:3 names kCodecLorenzo"),
        ("stages/a.hpp", "// as Lorenzo has it", "stages/a.hpp:3 names Lorenzo"),
        ("stages/a.hpp", "// of hierarchical_delta", "stages/a.hpp:3 names hierarchical_delta"),
        ("cuszp2/a.hpp", "\n" * 400, "cuszp2/a.hpp has 403 lines, at most 400"),
        ("cuszp2/a.hpp", '#include "cuszp2/a.hpp"', "cuszp2/a.hpp -> cuszp2/a.hpp include each other"),
    ],
)
def test_a_broken_rule_is_found(tmp_path: Path, name: str, text: str, problem: str) -> None:
    path = tmp_path / "kernels" / name
    path.parent.mkdir(parents=True)
    path.write_text(f"// SPDX-License-Identifier: BSD-3-Clause\n// A file.\n{text}\n", encoding="utf-8")
    assert next(problems(tmp_path, CODECS)) == problem
