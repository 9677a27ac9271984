# SPDX-License-Identifier: BSD-3-Clause
"""Build each mutant, run the tests that must fail, and print which mutants were found.

In the folder `tests`: `python -m mutants.run [PART OF A CHECK'S NAME OR OF A FILE...]`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from .mutants import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parents[2]
ROOM = ROOT / "build" / "mutants"
SOURCE, BUILD = ROOM / "source", ROOM / "library"
SOURCES = ("CMakeLists.txt", "registry.json", "cmake", "kernels", "filter")
JOBS = os.environ.get("MUTANTS_JOBS", "2")
TIMEOUT = int(os.environ.get("MUTANTS_SECONDS", "1800"))  # of the tests of a mutant
FAILED = (1, 2)  # pytest's exit status, and that of pytest-xdist where -x ends it


def copy_sources() -> None:
    """Bring the copy up to date. Unchanged files keep their times, so that they are not compiled again."""
    wanted = [path for name in SOURCES for path in (ROOT / name, *(ROOT / name).rglob("*")) if path.is_file()]
    for path in wanted:
        to = SOURCE / path.relative_to(ROOT)
        to.parent.mkdir(parents=True, exist_ok=True)
        if not to.exists() or to.read_bytes() != path.read_bytes():
            shutil.copyfile(path, to)
    for path in SOURCE.rglob("*"):
        if path.is_file() and not (ROOT / path.relative_to(SOURCE)).exists():
            path.unlink()


def configure() -> None:
    """The portable level alone, with little optimisation: mutants are built fast."""
    launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    options = ["-DPYF_LEVELS=baseline", "-DPYF_CUDA=OFF", "-DCMAKE_BUILD_TYPE=Mutants", "-DCMAKE_CXX_FLAGS_MUTANTS=-O1"]
    command = ["cmake", "-S", str(SOURCE), "-B", str(BUILD), "-G", "Ninja", *options, *launcher]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def build() -> None:
    done = subprocess.run(["ninja", "-j", JOBS, "-C", str(BUILD)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"does not build:\n{done.stdout[-3000:]}")


def outcome(tests: tuple[str, ...]) -> str:
    """Run tests with the built library: passed, failed, or what ended them."""
    env = {**os.environ, "PYFILTER_LIBRARY": str(BUILD / "libh5pyfilter.so"), "PYTHONPATH": str(ROOT)}
    workers = ["-n", JOBS] if JOBS != "1" else []
    command = [sys.executable, "-m", "pytest", "-x", "-q", *workers, "-p", "no:cacheprovider", *tests]
    try:
        done = subprocess.run(
            command, cwd=ROOT / "tests", env=env, capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        return "did not end"
    if done.returncode == 0:
        return "passed"
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    if done.returncode in FAILED and failed:
        return failed[0].split(" ", 1)[1].split(" - ")[0]
    sys.exit(f"pytest ended with {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")


def write(mutant: Mutant, changed: bool) -> None:
    text = (ROOT / mutant.file).read_text("utf-8")
    assert text.count(mutant.old) == 1, mutant
    (SOURCE / mutant.file).write_text(text.replace(mutant.old, mutant.new) if changed else text, "utf-8")


def main() -> None:
    parts = sys.argv[1:]
    chosen = [m for m in MUTANTS if not parts or any(part in m.check or part in m.file for part in parts)]
    copy_sources()
    configure()
    build()
    print("| weakened check | file | outcome | seconds |\n|---|---|---|---|", flush=True)
    survived, checked = [], set()
    for mutant in sorted(chosen, key=lambda m: m.tests):
        if mutant.tests not in checked:
            build()
            if (said := outcome(mutant.tests)) != "passed":
                sys.exit(f"without a mutant, of {' '.join(mutant.tests)}: {said}")
            checked.add(mutant.tests)
            print(f"| none: {' '.join(mutant.tests)} | | passed | |", flush=True)
        begin = time.monotonic()
        write(mutant, changed=True)
        build()
        said = outcome(mutant.tests)
        write(mutant, changed=False)
        if said == "passed":
            survived += [mutant] if mutant.equivalent is None else []
            said = f"equivalent: {mutant.equivalent}" if mutant.equivalent else "SURVIVED"
        else:
            said = f"found: {said}"
        print(f"| {mutant.check} | {mutant.file} | {said} | {time.monotonic() - begin:.0f} |", flush=True)
    print(f"{len(chosen)} mutants, {len(survived)} survived")
    sys.exit(1 if survived else 0)


if __name__ == "__main__":
    main()
