# SPDX-License-Identifier: BSD-3-Clause
"""Machines that the library does not support are refused when it is configured (cmake/SupportedMachine.cmake)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

CHECK = Path(__file__).resolve().parents[1] / "cmake" / "SupportedMachine.cmake"


def check(byte_order: str, pointer_bytes: int) -> subprocess.CompletedProcess[str]:
    names = {"CMAKE_CXX_BYTE_ORDER": byte_order, "CMAKE_SIZEOF_VOID_P": pointer_bytes, "CMAKE_SYSTEM_PROCESSOR": "some"}
    options = [f"-D{name}={value}" for name, value in names.items()]
    return subprocess.run(["cmake", *options, "-P", CHECK], capture_output=True, text=True, timeout=60, check=False)


def test_little_endian_of_64_bit_is_supported() -> None:
    assert check("LITTLE_ENDIAN", 8).returncode == 0


@pytest.mark.parametrize(
    ("byte_order", "pointer_bytes", "reason"),
    [
        ("BIG_ENDIAN", 8, "big-endian processors (some): frames are little-endian"),
        (
            "LITTLE_ENDIAN",
            4,
            "32-bit processors or ABIs (some): bounds of 64-bit values are computed with 128-bit integers",
        ),
    ],
)
def test_others_are_refused_with_the_reason(byte_order: str, pointer_bytes: int, reason: str) -> None:
    done = check(byte_order, pointer_bytes)
    assert done.returncode != 0
    assert reason in " ".join(done.stderr.split())
