# SPDX-License-Identifier: BSD-3-Clause
"""No leak, no growth, peak memory as promised, and nothing opened or started by the plugin itself (client.c).

docs/reliability.md has the long runs: valgrind, a million chunks.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import pyfilter

HERE = Path(__file__).resolve().parent
GOLDEN = sorted((HERE.parent / "golden").glob("v*.pyf"))
NO_SECCOMP = 77
PROGRESSIVE = 6
MARGIN = 0.1
Client = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def library() -> str:
    named = os.environ.get("PYFILTER_LIBRARY")
    return str(Path(named).resolve() if named else Path(pyfilter.PLUGIN_PATH) / "libh5pyfilter.so")


def build(folder: Path, library: str, *flags: str) -> Client:
    compiler = shutil.which("cc")
    assert compiler is not None
    program = str(folder / "client")
    sources = ["-std=c11", "-O1", "-fno-strict-aliasing", f"-I{HERE.parents[1]}", str(HERE / "client.c")]
    command = [compiler, *flags, *sources, "-o", program, "-lm", "-ldl"]
    made = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if made.returncode != 0:
        pytest.skip(f"the compiler has no {flags}") if flags else pytest.fail(made.stderr)

    def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
        full = [program, library, *map(str, words)]
        return subprocess.run(full, capture_output=True, text=True, timeout=120, check=False)

    return run


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory, library: str) -> Client:
    return build(tmp_path_factory.mktemp("client"), library)


def test_golden_frames_from_c(client: Client) -> None:
    done = client("golden", *GOLDEN)
    assert done.returncode == 0, done.stderr


def test_no_leak(tmp_path: Path, library: str) -> None:
    """LeakSanitizer, where the machine lets it look."""
    watched = build(tmp_path, library, "-fsanitize=leak")
    if "ERROR: LeakSanitizer: detected memory leaks" not in watched("leak").stderr:
        pytest.skip("LeakSanitizer does not work here")
    done = watched("golden", *GOLDEN)
    assert done.returncode == 0, done.stderr


def test_small_chunks_take_constant_memory(client: Client) -> None:
    done = client("chunks", "20000")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("codec", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("order", ["little", "big"])
def test_peak_memory(client: Client, codec: int, order: str) -> None:
    """Resident memory at most: the chunk and its frame; of progressive also an integer for each value."""
    own = 1 if codec == PROGRESSIVE else 0
    done = client("peak", str(codec), "1", "16", order)
    assert done.returncode == 0, done.stderr
    encoding, decoding, frame = map(float, done.stdout.split())
    assert encoding <= 1 + frame + own + MARGIN
    assert decoding <= 1 + frame + MARGIN


@pytest.mark.parametrize("order", ["little", "big"])
@pytest.mark.parametrize("coordinates", [2, 3])
def test_peak_memory_of_a_chunk_of_particles_that_is_sorted(client: Client, order: str, coordinates: int) -> None:
    """A key and an index for each particle come to it: 8 bytes."""
    done = client("peak", "5", "1", "64", order, "sorted", str(coordinates))
    assert done.returncode == 0, done.stderr
    encoding, decoding, frame = map(float, done.stdout.split())
    assert encoding <= 1 + 8 / (4 * coordinates) + frame + MARGIN
    assert decoding <= 1 + frame + MARGIN


def test_the_plugin_does_nothing_by_itself(client: Client) -> None:
    """Loading opens no file and starts no thread; after its first chunk it makes no call that opens, runs or sends."""
    done = client("alone")
    if done.returncode == NO_SECCOMP:
        pytest.skip("no seccomp here")
    assert done.returncode == 0, (done.returncode, done.stderr)
    assert client("alone", "and open a file").returncode < 0, "a forbidden call was not seen"


def test_hardened(library: str) -> None:
    """Tables read-only once loaded, all symbols bound at once, no executable stack, stack protector, checked calls."""
    read = shutil.which("readelf")
    assert read is not None
    said = subprocess.run([read, "-lWd", "--dyn-syms", library], capture_output=True, text=True, check=True).stdout
    if "__asan_" in said:
        pytest.skip("a build with sanitizers")
    stack = next(line for line in said.splitlines() if "GNU_STACK" in line)
    assert "GNU_RELRO" in said
    assert "NOW" in said
    assert " RW " in stack
    assert "RWE" not in said
    assert "__stack_chk_fail" in said
    assert "_chk@" in said
    if platform.machine() == "x86_64":  # every function that can be called through a pointer says so
        assert code_at(library, "pyf_decode").startswith(b"\xf3\x0f\x1e\xfa")  # endbr64


def code_at(library: str, name: str) -> bytes:
    """The first bytes of a function."""
    at = ctypes.cast(getattr(ctypes.CDLL(library), name), ctypes.c_void_p).value
    assert at is not None
    return ctypes.string_at(at, 4)


def test_flags_of_the_build() -> None:
    """docs/security.md and the build say the same."""
    build, document = ((HERE.parents[1] / name).read_text() for name in ("CMakeLists.txt", "docs/security.md"))
    flags = [
        *("-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-fstack-protector-strong", "-fstack-clash-protection"),
        *("_FORTIFY_SOURCE=2", "-fcf-protection=full", "-mbranch-protection=standard"),
    ]
    assert [flag for flag in flags if flag not in build or flag not in document] == []


def test_what_a_build_needs_is_pinned() -> None:
    """Every requirement of pyproject.toml's build, and what those need, with a version and checksums."""
    root = HERE.parents[1]
    pinned = re.findall(r"^(\S+?)==\S+((?:[^\n]*\\\n)(?:\s+--hash=sha256:[0-9a-f]{64}.*\n)+)", text(root), re.MULTILINE)
    names = {name for name, _ in pinned}
    asked = re.search(r"^requires = \[(.*)\]", (root / "pyproject.toml").read_text(), re.MULTILINE)
    assert asked is not None
    wanted = {re.split(r"[<>=~! \[]", word.strip().strip('"'))[0] for word in asked.group(1).split(",")}
    assert wanted | {"cmake", "ninja"} <= names
    lines = [line for line in text(root).splitlines() if line and line[0] not in " #"]
    assert len(lines) == len(pinned), "a line without a checksum"


def text(root: Path) -> str:
    return (root / "requirements-build.txt").read_text() + "\n"
