# SPDX-License-Identifier: BSD-3-Clause
"""Finds a wheel of pyfilter that has been built already and fits this Python; needs nothing but pip.

    python scripts/built_wheel.py find             in dist/ or build/wheel; no wheel of other sources
    python scripts/built_wheel.py find --same      only if it is known to be of these sources and $CMAKE_ARGS
    python scripts/built_wheel.py note WHEEL...    writes WHEEL.sources: what it was built from

`find` prints the wheel's path, or nothing.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from pip._vendor.packaging.tags import sys_tags
from pip._vendor.packaging.utils import InvalidWheelFilename, parse_wheel_filename

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("dist", "build/wheel")
#: files that go into a wheel
SOURCES = (
    "CMakeLists.txt", "cmake", "filter", "kernels", "packaging/linux", "pyfilter", "pyproject.toml", "registry.json",
)  # fmt: skip


def version(root: Path) -> str:
    """Return the release that pyproject.toml names."""
    found = re.search(r'^version = "(.+)"$', (root / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        message = f"{root / 'pyproject.toml'} names no version"
        raise SystemExit(message)
    return found[1]


def files(root: Path) -> Iterator[Path]:
    """Yield the sources of a wheel."""
    for name in SOURCES:
        path = root / name
        found = [path] if path.is_file() else sorted(path.rglob("*"))
        yield from (item for item in found if item.is_file() and "__pycache__" not in item.parts)


def digest(root: Path) -> str:
    """Return a checksum of the sources of a wheel."""
    found = hashlib.sha256()
    for path in files(root):
        found.update(f"{path.relative_to(root).as_posix()} {path.stat().st_size}\n".encode())
        found.update(path.read_bytes())
    return found.hexdigest()


def note_of(wheel: Path) -> Path:
    """Return the file with the checksum of a wheel's sources."""
    return wheel.with_name(f"{wheel.name}.sources")


def write_note(root: Path, wheel: Path) -> None:
    """Write the checksum of a wheel's sources, and CMake's arguments."""
    note_of(wheel).write_text(f"{digest(root)}\n{os.environ.get('CMAKE_ARGS', '')}\n", encoding="utf-8")


def find(root: Path, same: bool = False) -> Path | None:
    """Return a wheel to install; ``same``: one that is known to be of these sources and arguments."""
    tags = set(sys_tags())
    sources = digest(root)
    for folder in FOLDERS:
        for wheel in sorted((root / folder).glob("h5pyfilter-*.whl")):
            try:
                _, release, _, fits = parse_wheel_filename(wheel.name)
            except InvalidWheelFilename:
                continue
            if str(release) != version(root) or not tags & fits:
                continue
            note = note_of(wheel)
            known, arguments = note.read_text(encoding="utf-8").split("\n")[:2] if note.is_file() else ("", "")
            if known not in ("", sources):  # of other sources
                continue
            released = folder == "dist"
            if not same or (known == sources and (released or arguments == os.environ.get("CMAKE_ARGS", ""))):
                return wheel
    return None


def main(words: list[str]) -> None:
    """Run the command."""
    if words[:1] == ["find"] and words[1:] in ([], ["--same"]):
        found = find(ROOT, same=len(words) > 1)
        if found is not None:
            print(found)
    elif words[:1] == ["note"] and len(words) > 1:
        for wheel in words[1:]:
            write_note(ROOT, Path(wheel))
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
