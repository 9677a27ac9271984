# SPDX-License-Identifier: BSD-3-Clause
"""The fuzz targets as plain programs on the installed library, and their seeds."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import pyfilter
from pyfilter.registry import registry_path

from . import seeds

HERE = Path(__file__).resolve().parent
FLAGS = ("-std=c++20", "-O1", f"-I{HERE.parents[1]}", f"-I{HERE}", "-DPYF_FUZZ_CODEC=0")
SHARED = ("support", "meter", "decode_check", "progressive_check", "mutate_frame", "mutate_progressive", "replay")
PROGRAMS = ("decode", "filter", "round_trip")
#: The words before a program of another machine, whose compiler CXX is then: as scripts/aarch64 gives them.
EMULATOR = os.environ.get("PYFILTER_EMULATOR", "").split()
TIMEOUT = 1200 if EMULATOR else 120


@pytest.fixture(scope="session")
def compiler() -> str:
    found = shutil.which(os.environ.get("CXX", "c++") if EMULATOR else "c++")
    if found is None:
        pytest.fail("no C++ compiler: scripts/test installs g++")
    return found


@pytest.fixture(scope="session")
def library() -> Path:
    named = os.environ.get("PYFILTER_LIBRARY")
    return Path(named).resolve() if named else Path(pyfilter.PLUGIN_PATH) / "libh5pyfilter.so"


def registry_table() -> str:
    """What the targets need of the header that CMake makes (cmake/registry_table.hpp.in)."""
    codecs = json.loads(registry_path().read_text("utf-8"))["codecs"]
    ids = "".join(f"constexpr std::uint8_t kCodec{codec['class']} = {codec['id']};\n" for codec in codecs)
    rows = ", ".join(f"{{{codec['id']}, {codec['min_format_version']}}}" for codec in codecs)
    return (
        "#pragma once\n#include <cstdint>\nnamespace pyfilter::registry {\n"
        f"{ids}struct CodecRow {{ std::uint8_t id, format_version; }};\n"
        f"constexpr CodecRow kCodecs[] = {{{rows}}};\n}}\n"
    )


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory, compiler: str, library: Path) -> Path:
    """Folder of the targets, each with the main() of replay.cpp."""
    folder = tmp_path_factory.mktemp("fuzz")
    (folder / "registry_table.hpp").write_text(registry_table())

    def compile_one(name: str) -> None:
        source, target = HERE / f"{name}.cpp", folder / f"{name}.o"
        subprocess.run([compiler, *FLAGS, f"-I{folder}", "-c", source, "-o", target], check=True, timeout=TIMEOUT)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(compile_one, (*SHARED, *PROGRAMS)))
    shared = [folder / f"{name}.o" for name in SHARED]
    for name in PROGRAMS:
        parts = [str(path) for path in (folder / f"{name}.o", *shared, library)]
        command = [compiler, *parts, f"-Wl,-rpath,{library.parent}", "-o", str(folder / name)]
        subprocess.run(command, check=True, timeout=TIMEOUT)
    return folder


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("seeds")
    assert seeds.write(folder) > 1000
    return folder


@pytest.fixture
def replay(programs: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a target over files, folders and --mutations."""

    def run(program: str, *arguments: str | Path, preload: Path | None = None) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, **({"LD_PRELOAD": str(preload)} if preload else {})}
        command = [*EMULATOR, str(programs / program), *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False, env=env)

    return run
