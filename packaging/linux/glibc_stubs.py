# SPDX-License-Identifier: BSD-3-Clause
"""Makes a folder to link with, so that a library needs no newer glibc than 2.28, whatever the machine has.

    python packaging/linux/glibc_stubs.py FOLDER [PREFIX]      PREFIX of a cross compiler: aarch64-linux-gnu-

A linker takes the newest version of each symbol that it finds in libc.so.6, so that a library needs the glibc that it
was linked with. The folder has libraries without code in the place of glibc's. They name each symbol with its newest
version up to 2.28, and have functions that glibc 2.34 moved to libc.so.6 (dlopen, pthread_create) where they were.
Symbols that came after 2.28 are missing: packaging/linux/glibc_compat.cpp has those that GCC's own libraries use, and
any other one is an error of the linker.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

NEWEST = (2, 28)
MOVED = (2, 34)  # the release that joined libdl, libpthread and others with libc
#: where functions were before, by the beginning of their names; all others were in libpthread
PLACES = (("dl", "libdl.so.2"), ("(aio|lio|mq|shm|timer)_", "librt.so.1"), ("(open|fork)pty|log", "libutil.so.1"))
_SYMBOL = re.compile(r"^\s*\d+:\s+[0-9a-f]+\s+(\S+)\s+(\S+)\s+\S+\s+\S+\s+\d+\s+([^@\s]+)(@@?)GLIBC_([\d.]+)$")


@dataclass(frozen=True)
class Symbol:
    """One symbol of a library of glibc, in one version."""

    name: str
    size: int
    kind: str  # FUNC, IFUNC, OBJECT or TLS
    version: tuple[int, ...]
    default: bool  # whether the linker would take this version


def symbols(library: str, readelf: str) -> list[Symbol]:
    """Return all versions of all symbols that a library defines."""
    text = subprocess.run([readelf, "--dyn-syms", "-W", library], capture_output=True, text=True, check=True).stdout
    found = []
    for line in text.splitlines():
        match = _SYMBOL.match(line)
        if match and " UND " not in line:
            size, kind, name, mark, version = match.groups()
            number = tuple(map(int, version.split(".")))
            found.append(Symbol(name, int(size, 0), kind, number, mark == "@@"))
    if not found:
        message = f"{library} has no symbols with versions of glibc"
        raise SystemExit(message)
    return found


def chosen(found: list[Symbol]) -> dict[str, list[Symbol]]:
    """Return the newest version of each symbol that glibc 2.28 has, by the library that it was in ("" for this one)."""
    newest: dict[str, Symbol] = {}
    moved = {item.name for item in found if item.default and item.version == MOVED}
    for item in found:
        known = newest.get(item.name)
        if item.version <= NEWEST and (known is None or known.version < item.version):
            newest[item.name] = item
    places: dict[str, list[Symbol]] = {}
    for item in newest.values():
        place = ""
        if item.name in moved:
            place = next((library for names, library in PLACES if re.match(names, item.name)), "libpthread.so.0")
        places.setdefault(place, []).append(item)
    return places


def write_stub(folder: Path, name: str, items: list[Symbol], compiler: str) -> None:
    """Write a library that defines the symbols and has no code."""
    lines = [".text"]
    nodes: dict[tuple[int, ...], list[str]] = {}
    for item in sorted(items, key=lambda symbol: symbol.name):
        kind = {"OBJECT": "object", "TLS": "tls_object"}.get(item.kind, "function")
        section = {"OBJECT": ".data", "TLS": '.section .tdata,"awT",%progbits'}.get(item.kind, ".text")
        lines += [section, f".globl {item.name}", f".type {item.name}, %{kind}", f"{item.name}:"]
        lines += [f".skip {max(item.size, 1)}", f".size {item.name}, {item.size}"]
        nodes.setdefault(item.version, []).append(item.name)
    script = []
    for number in sorted(nodes):
        script.append(f"GLIBC_{'.'.join(map(str, number))} {{ global: {'; '.join(nodes[number])}; }};")
    source, versions = folder / f"{name}.s", folder / f"{name}.map"
    source.write_text("\n".join(lines) + "\n", encoding="ascii")
    versions.write_text("\n".join(script) + "\n", encoding="ascii")
    words = ["-shared", "-nostdlib", f"-Wl,-soname,{name}", f"-Wl,--version-script={versions}", str(source)]
    subprocess.run([compiler, *words, "-o", str(folder / name)], check=True)
    source.unlink()
    versions.unlink()


def main(target: str, prefix: str = "") -> None:
    """Write the folder."""
    folder = Path(target).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    compiler = f"{prefix}gcc"

    def path_of(name: str) -> str:
        return subprocess.run(
            [compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True
        ).stdout.strip()

    machine = subprocess.run([compiler, "-dumpmachine"], capture_output=True, text=True, check=True).stdout
    loader = "ld-linux-aarch64.so.1" if machine.startswith("aarch64") else "ld-linux-x86-64.so.2"
    made = []
    for name in ("libc.so.6", "libm.so.6", loader):
        for place, items in chosen(symbols(path_of(name), f"{prefix}readelf")).items():
            write_stub(folder, place or name, items, compiler)
            made.append(place or name)
    others = " ".join(str(folder / name) for name in made if name not in ("libc.so.6", "libm.so.6"))
    # the libraries that -lc and -lm find; libc_nonshared.a is the part of glibc that is linked into every library
    (folder / "libc.so").write_text(
        f"GROUP ( {folder / 'libc.so.6'} {path_of('libc_nonshared.a')} AS_NEEDED ( {others} ) )\n", encoding="ascii"
    )
    (folder / "libm.so").write_text(f"GROUP ( {folder / 'libm.so.6'} )\n", encoding="ascii")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
