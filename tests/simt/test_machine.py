# SPDX-License-Identifier: BSD-3-Clause
"""The machine that kernels run on: what it sees, and what translate.py refuses."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from . import translate

HERE = Path(__file__).resolve().parent
Run = Callable[..., subprocess.CompletedProcess[str]]


def compiled(folder: Path, *, races: bool) -> Path:
    """mistakes.cu, translated and compiled; `races`: with ThreadSanitizer."""
    source = folder / "mistakes.cpp"
    source.write_text(translate.translate((HERE / "mistakes.cu").read_text()))
    compiler = shutil.which("c++")
    assert compiler is not None
    flags = ["-std=c++20", "-O1", "-w", f"-I{HERE}", f"-I{HERE / 'include'}"]
    watched = ["-fsanitize=thread", "--param=tsan-distinguish-volatile=1"] if races else []
    defined = ["-DPYF_SIMT_RACES=1"] if races else []
    parts = ["machine", "copies", *(["races"] if races else [])]
    for command in (
        [*flags, *watched, "-include", "cuda_runtime.h", "-c", str(source), "-o", str(folder / "mistakes.o")],
        *([*flags, *defined, "-c", str(HERE / f"{name}.cpp"), "-o", str(folder / f"{name}.o")] for name in parts),
        [*watched, *(str(folder / f"{name}.o") for name in ("mistakes", *parts)), "-lboost_context", "-o",
         str(folder / "mistakes")],
    ):  # fmt: skip
        subprocess.run([compiler, *command], check=True, timeout=120)
    return folder / "mistakes"


def runner(program: Path) -> Run:
    def start(name: str, which: str, seed: int = 0) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYF_SIMT_SEED": str(seed)}
        return subprocess.run(
            [program, name, which], capture_output=True, text=True, timeout=60, check=False, env=environment
        )

    return start


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory, shared_folder: Path) -> Run:
    return runner(compiled(tmp_path_factory.mktemp("mistakes"), races=False))


@pytest.fixture(scope="session")
def watch(tmp_path_factory: pytest.TempPathFactory, shared_folder: Path) -> Run:
    """The same with ThreadSanitizer."""
    watched = runner(compiled(tmp_path_factory.mktemp("races"), races=True))
    if "unexpected memory mapping" in watched("reverse_block", "right").stderr:
        pytest.skip("ThreadSanitizer does not work here")
    return watched


def numbers(text: str) -> list[int]:
    return [int(word) for word in text.split()]


GIVEN = [3 * i for i in range(9 * 96)]
BACKWARDS = {
    "reverse_block": 96,
    "reverse_warps": 32,
    "reverse_copied": 96,
    "reverse_grouped": 96,
}


@pytest.mark.parametrize("name", BACKWARDS)
def test_threads_that_do_not_wait_go_wrong(run: Run, name: str) -> None:
    """With barriers the result is right in every order, without them in none of four."""
    size = BACKWARDS[name]
    expected = [number for at in range(0, len(GIVEN), size) for number in reversed(GIVEN[at : at + size])]
    for seed in range(4):
        assert numbers(run(name, "right", seed).stdout) == expected
        assert numbers(run(name, "wrong", seed).stdout) != expected


def test_an_order_comes_again(run: Run) -> None:
    assert run("reverse_block", "wrong", 3).stdout == run("reverse_block", "wrong", 3).stdout
    assert run("reverse_block", "wrong", 3).stdout != run("reverse_block", "wrong", 4).stdout


@pytest.mark.parametrize("name", [*BACKWARDS, "reverse_quietly", "count", "most"])
def test_races_are_seen(watch: Run, name: str) -> None:
    """By the rules that memory has, whatever came out."""
    right, wrong = watch(name, "right"), watch(name, "wrong")
    assert (right.returncode, right.stderr) == (0, "")
    assert wrong.returncode != 0
    assert "WARNING: ThreadSanitizer: data race" in wrong.stderr


def test_a_race_that_changes_nothing(run: Run) -> None:
    """Which is why ThreadSanitizer has to look."""
    assert run("reverse_quietly", "right").stdout == run("reverse_quietly", "wrong").stdout


SEEN = {
    "apart": "lanes of a warp meet in different operations",
    "stuck": "threads wait for ever",
    "not_aligned": "an access to shared memory that is not aligned",
    "untrue": "what a kernel takes for granted does not hold",
}


@pytest.mark.parametrize("name", SEEN)
def test_mistakes_are_named(run: Run, name: str) -> None:
    assert run(name, "right").returncode == 0
    done = run(name, "wrong")
    assert done.returncode < 0, "ended by a signal"
    assert f"simt: {SEEN[name]}" in done.stderr


@pytest.mark.parametrize("name", ["beyond_memory", "beyond_shared"])
def test_memory_ends(run: Run, name: str) -> None:
    assert run(name, "right").returncode == 0
    assert run(name, "wrong").returncode < 0, "ended by a signal"


def test_blocks_take_turns(run: Run) -> None:
    """A block may wait for those before it; one behind may not have been started."""
    right, wrong = run("following", "right"), run("following", "wrong")
    assert (right.returncode, wrong.returncode) == (0, 0)
    assert numbers(right.stdout)[::96] == [1] * 9
    assert numbers(wrong.stdout)[::96] != [1] * 9


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('asm volatile("bar.sync 0;");', "an instruction that include/instructions.h does not have: bar.sync 0;"),
        ("extern __shared__ T room[4];", "__shared__ in a form that is not known"),
        ("pick(kernels)<<<1, 2>>>(x);", "<<< in a form that is not known"),
        ('asm("mov.u32 %0, 0;" : "=r"(x);', "a parenthesis that is not closed"),
    ],
)
def test_what_is_not_known_is_refused(text: str, said: str) -> None:
    with pytest.raises(translate.UnknownError, match="^" + said.replace("(", r"\(")):
        translate.translate(text)


def test_translation() -> None:
    given = (
        "extern __shared__ __align__(16) std::uint8_t room[];\n"
        "kernel<T, 2><<<dim3(a, b), 32 * n, sizeof(Room), stream>>>(job, f(x));\n"
        'asm("" : "+r"(x));\n'
        'asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(p::at(i)), "r"(f(a, b)) : "memory");\n'
    )
    assert translate.translate(given).splitlines() == [
        "auto* const room = static_cast<std::uint8_t*>(::simt::dynamic_shared());",
        "::simt::Launch(dim3(a, b), 32 * n, sizeof(Room), stream)(kernel<T, 2>)(job, f(x));",
        'asm("" : "+r"(x));',
        "::simt::store_word(p::at(i), f(a, b));",
    ]
