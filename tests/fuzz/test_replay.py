# SPDX-License-Identifier: BSD-3-Clause
"""The fuzz targets without libFuzzer: seeds, what fuzzing has found, and some thousand inputs made of them.

README.md says how to fuzz in earnest.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from . import seeds
from .conftest import EMULATOR

Replay = Callable[..., subprocess.CompletedProcess[str]]
FINDINGS = Path(__file__).resolve().parent / "findings"
PROGRAM_OF = {target: "decode" if target.startswith("decode_") else target for target in seeds.TARGETS}
FOUND = sorted(path for path in FINDINGS.glob("*/*") if path.parent.name in PROGRAM_OF)


@pytest.mark.parametrize(
    ("target", "mutations"),
    [("decode_any", 30_000), ("decode_progressive", 10_000), ("filter", 20_000), ("round_trip", 3_000)],
)
def test_seeds_and_what_is_made_of_them(replay: Replay, corpus: Path, target: str, mutations: int) -> None:
    done = replay(PROGRAM_OF[target], corpus / target, f"--mutations={mutations}")
    assert done.returncode == 0, done.stderr[-500:]
    assert done.stdout.endswith(f", {mutations} mutations: nothing broken\n")


def test_kept_corpora(replay: Replay, corpus: Path) -> None:
    """What long runs kept, each decoder's inputs that take branches of their own."""
    for target in seeds.DECODERS:
        inputs = list((corpus / target).glob("kept_*"))
        assert len(inputs) > 300
        done = replay("decode", *inputs)
        assert done.returncode == 0, (target, done.stderr[-500:])


@pytest.mark.parametrize("path", FOUND, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_findings_stay_found(replay: Replay, path: Path) -> None:
    done = replay(PROGRAM_OF[path.parent.name], path)
    assert done.returncode == 0, done.stderr[-500:]


def test_every_finding_has_a_target() -> None:
    assert {path.parent for path in FINDINGS.glob("*/*")} == {path.parent for path in FOUND}


def test_counts_of_residuals_of_32_bits(compiler: str, tmp_path: Path) -> None:
    """They were counted outside of the counts: the corpus entry shows it under sanitizers only, this everywhere."""
    here, program = FINDINGS.parent, tmp_path / "count_round"
    flags = ["-std=c++20", "-O1", "-DPYF_LEVEL=baseline", "-DPYF_LEVEL_BASELINE=1", f"-I{here.parents[1] / 'kernels'}"]
    checks = ["-fsanitize=undefined", "-fno-sanitize-recover=all", *(["-static-libubsan"] if EMULATOR else [])]
    command = [compiler, *flags, *checks, str(here / "count_round.cpp")]
    subprocess.run([*command, "-o", str(program)], check=True, timeout=120)
    done = subprocess.run([*EMULATOR, str(program)], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "the same counts\n"), done.stderr


# A library that breaks one promise each, put before ours.
BROKEN = {
    "a byte too many": ("decode", "((char*)values)[value_bytes] = 1; return 0;", ""),
    "a byte of the frame too many": ("decode", "return ((volatile char*)frame)[frame_bytes];", ""),
    "values left out": ("decode", "return 0;", "levels give other values"),
    "memory": ("decode", "void* m = malloc(1 << 25); memset(m, 1, 1 << 25); free(m); return 30;", "took memory"),
    "no error, other values": ("round_trip", "memset(values, 0, value_bytes); return 0;", "BROKEN"),
    "an error of its own": ("decode", "return 10;", "another code"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_seen(replay: Replay, corpus: Path, compiler: str, tmp_path: Path, name: str) -> None:
    program, body, said = BROKEN[name]
    source = tmp_path / "broken.cpp"
    source.write_text(
        "#include <stdlib.h>\n#include <string.h>\n"
        'extern "C" int pyf_decode(const void* frame, size_t frame_bytes, void* values, size_t value_bytes) {'
        f" (void)frame; (void)frame_bytes; (void)values; (void)value_bytes; {body} }}"
    )
    library = tmp_path / "broken.so"
    subprocess.run([compiler, "-shared", "-fPIC", source, "-o", library], check=True, timeout=60)
    folder = corpus / ("decode_any" if program == "decode" else program)
    done = replay(program, folder, preload=library)
    assert done.returncode < 0, "ended by a signal"
    assert said in done.stderr
