# SPDX-License-Identifier: BSD-3-Clause
"""What releases are made with: recipes agree with pyproject.toml, a built wheel is found, old glibcs are linked for."""

from __future__ import annotations

import ctypes
import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
PYPROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
VERSION = json.loads((ROOT / "registry.json").read_text(encoding="utf-8"))["version"]


def module(path: str) -> ModuleType:
    """Return a script of the repository as a module."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = found  # dataclasses look there
    spec.loader.exec_module(found)
    return found


def requirements() -> dict[str, str]:
    """Return what the distribution needs, whatever the Python: the oldest release of each."""
    listed = re.search(r"^dependencies = \[(.*)\]$", PYPROJECT, re.MULTILINE)
    assert listed is not None
    items = [item.strip('"') for item in listed[1].split(", ")]
    return dict(item.split(">=") for item in items if ";" not in item)


# -- the recipes and pyproject.toml


def test_the_distribution_of_kernels_is_of_this_release() -> None:
    text = (ROOT / "packaging" / "cuda" / "pyproject.toml").read_text(encoding="utf-8")
    assert f'version = "{VERSION}"' in text
    assert f'dependencies = ["h5pyfilter=={VERSION}"]' in text
    assert f"h5pyfilter-cuda13=={VERSION};" in PYPROJECT
    assert f'version = "{VERSION}"' in PYPROJECT


def test_the_conda_recipe_needs_what_the_distribution_needs() -> None:
    text = (ROOT / "packaging" / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    assert f'version: "{VERSION}"' in text
    run = text.partition("  run:\n")[2].partition("\n\n")[0]
    found = dict(line.strip("- ").split(" >=") for line in run.splitlines())
    assert found == {"python": "3.10", "tomli": "1.1", **requirements()}
    assert "tomli>=1.1; python_version < '3.11'" in PYPROJECT


def test_the_spack_package_needs_what_the_distribution_needs() -> None:
    text = (ROOT / "packaging" / "spack" / "package.py").read_text(encoding="utf-8")
    compile(text, "package.py", "exec")
    assert f'version("{VERSION}"' in text
    assert 'depends_on("py-tomli@1.1:", type=("build", "run"), when="^python@:3.10")' in text
    found = dict(re.findall(r'depends_on\("(?:py-)?([a-z0-9-]+)@([\d.]+):", type=\("build", "run"\)\)\n', text))
    assert found == {"python": "3.10", **requirements()}


# -- scripts/built_wheel.py


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with few sources."""
    for name in ("pyfilter/a.py", "kernels/a.cpp", "CMakeLists.txt", "registry.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name, encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text('version = "1.2.3"\n', encoding="utf-8")
    (tmp_path / "dist").mkdir()
    (tmp_path / "build" / "wheel").mkdir(parents=True)
    return tmp_path


def test_a_wheel_that_fits_is_found(checkout: Path) -> None:
    built_wheel = module("scripts/built_wheel.py")
    assert built_wheel.find(checkout) is None
    for name in ("1.2.3-py3-none-win_amd64", "1.2.3-py3-none-linux_sparc64", "1.2.2-py3-none-any", "1.2.3-x"):
        (checkout / "dist" / f"h5pyfilter-{name}.whl").touch()
    assert built_wheel.find(checkout) is None
    wheel = checkout / "dist" / "h5pyfilter-1.2.3-py3-none-any.whl"
    wheel.touch()
    assert built_wheel.find(checkout) == wheel
    assert built_wheel.find(checkout, same=True) is None  # nobody knows what it was built from


def test_a_wheel_of_other_sources_is_not_found(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built_wheel = module("scripts/built_wheel.py")
    monkeypatch.delenv("CMAKE_ARGS", raising=False)
    wheel = checkout / "dist" / "h5pyfilter-1.2.3-py3-none-any.whl"
    wheel.touch()
    built_wheel.write_note(checkout, wheel)
    assert built_wheel.find(checkout, same=True) == wheel
    (checkout / "pyfilter" / "__pycache__").mkdir()
    (checkout / "pyfilter" / "__pycache__" / "a.pyc").touch()
    assert built_wheel.find(checkout, same=True) == wheel
    (checkout / "kernels" / "a.cpp").write_text("changed", encoding="utf-8")
    assert built_wheel.find(checkout) is None
    built_wheel.write_note(checkout, wheel)
    (checkout / "pyfilter" / "b.py").touch()
    assert built_wheel.find(checkout) is None


def test_an_earlier_build_with_other_arguments_is_not_the_same(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built_wheel = module("scripts/built_wheel.py")
    wheel = checkout / "build" / "wheel" / "h5pyfilter-1.2.3-py3-none-any.whl"
    wheel.touch()
    monkeypatch.setenv("CMAKE_ARGS", "-DPYF_LEVELS=native")
    built_wheel.write_note(checkout, wheel)
    assert built_wheel.find(checkout, same=True) == wheel
    monkeypatch.delenv("CMAKE_ARGS")
    assert built_wheel.find(checkout, same=True) is None
    assert built_wheel.find(checkout) == wheel


# -- packaging/linux: libraries for old glibcs

SOURCE = """
#include <cmath>
#include <cstdlib>
#include <dlfcn.h>
#include <new>
#include <stdexcept>
#include <thread>

extern "C" int tried(double x) {
  int caught = 0;
  std::thread other([&] {
    try {
      if (x > 0) throw std::runtime_error("thrown");
    } catch (const std::exception&) {
      caught = 1;
    }
  });
  other.join();
  try {
    void* volatile memory = ::operator new(static_cast<std::size_t>(-1) / 4);
    ::operator delete(memory);
  } catch (const std::bad_alloc&) {
    caught += 2;
  }
  return caught + (dlsym(dlopen(nullptr, RTLD_LAZY), "malloc") != nullptr ? 4 : 0) + (std::exp(x) > 1 ? 8 : 0);
}
"""


@pytest.mark.skipif(not sys.platform.startswith("linux") or shutil.which("g++") is None, reason="needs g++ on Linux")
def test_a_library_for_an_old_glibc(tmp_path: Path) -> None:
    """Threads, exceptions, dlopen and libm in a library that names no symbol newer than glibc 2.28."""
    subprocess.run([sys.executable, ROOT / "packaging" / "linux" / "glibc_stubs.py", tmp_path / "stubs"], check=True)
    (tmp_path / "a.cpp").write_text(SOURCE, encoding="utf-8")
    library = tmp_path / "a.so"
    (tmp_path / "exports").write_text("{ global: tried; local: *; };", encoding="utf-8")
    options = ["-O2", "-fPIC", "-shared", "-static-libstdc++", "-static-libgcc", "-Wl,--no-undefined,--gc-sections"]
    options.append(f"-Wl,--version-script={tmp_path / 'exports'}")
    sources = [tmp_path / "a.cpp", ROOT / "packaging" / "linux" / "glibc_compat.cpp"]
    subprocess.run(["g++", *options, f"-L{tmp_path / 'stubs'}", *map(str, sources), "-o", str(library)], check=True)
    symbols = subprocess.run(["objdump", "-T", library], check=True, capture_output=True, text=True).stdout
    versions = {tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_([\d.]+)", symbols)}
    assert versions
    assert max(versions) <= (2, 28)
    headers = subprocess.run(["readelf", "-d", library], check=True, capture_output=True, text=True).stdout
    assert {"libdl.so.2", "libpthread.so.0"} <= set(re.findall(r"NEEDED.*\[(.*)\]", headers))
    loaded = ctypes.CDLL(str(library))
    loaded.tried.argtypes = [ctypes.c_double]
    assert loaded.tried(1.0) == 1 + 2 + 4 + 8


def test_the_newest_version_up_to_an_old_glibc_is_chosen() -> None:
    stubs = module("packaging/linux/glibc_stubs.py")
    symbol = stubs.Symbol
    found = [
        symbol("memcpy", 1, "FUNC", (2, 2, 5), False),
        symbol("memcpy", 1, "FUNC", (2, 14), True),
        symbol("dlopen", 1, "FUNC", (2, 2, 5), False),
        symbol("dlopen", 1, "FUNC", (2, 34), True),
        symbol("shm_open", 1, "FUNC", (2, 2, 5), False),
        symbol("shm_open", 1, "FUNC", (2, 34), True),
        symbol("pthread_create", 1, "FUNC", (2, 2, 5), False),
        symbol("pthread_create", 1, "FUNC", (2, 34), True),
        symbol("arc4random", 1, "FUNC", (2, 36), True),
    ]
    chosen = {place: [(item.name, item.version) for item in items] for place, items in stubs.chosen(found).items()}
    assert chosen == {
        "": [("memcpy", (2, 14))],
        "libdl.so.2": [("dlopen", (2, 2, 5))],
        "librt.so.1": [("shm_open", (2, 2, 5))],
        "libpthread.so.0": [("pthread_create", (2, 2, 5))],
    }


# -- PYF_LEVELS=native


@pytest.mark.skipif(shutil.which("cmake") is None or shutil.which("g++") is None, reason="needs CMake and g++")
def test_a_build_for_this_machine_has_its_best_level(tmp_path: Path) -> None:
    import pyfilter

    command = ["cmake", "-S", str(ROOT), "-B", str(tmp_path), "-DPYF_CUDA=OFF", "-DPYF_LEVELS=native"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    levels = re.search(r"CPU levels (\S+);", said)
    assert levels is not None
    with pyfilter.config(cpu_level="auto"):
        best = pyfilter.config().cpu_level
    assert levels[1].split(";") == (["baseline"] if best in ("baseline", "neon") else ["baseline", best])
