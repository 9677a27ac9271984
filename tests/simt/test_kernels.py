# SPDX-License-Identifier: BSD-3-Clause
"""Every kernel writes and reads the bytes that the CPU does, with threads in orders that are drawn."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from .batches import CODECS

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TIMEOUT = 900


def python(*arguments: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=TIMEOUT, check=False, env=environment, cwd=ROOT
    )


@pytest.mark.parametrize("codec", [*CODECS, "LosslessRatio", "Derived"])
def test_same_bytes(simt_environment: dict[str, str], codec: str) -> None:
    """Arrays of every kind, batches, ranges of values."""
    done = python(
        str(HERE / "same_bytes.py"), "--sanitize", "--every", "97", "--codec", codec, "--damaged", "without",
        environment={**simt_environment, "PYF_SIMT_SEED": "1"},
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    assert "groups identical on CPU and GPU" in done.stdout.splitlines()[-1]


@pytest.mark.parametrize("codec", CODECS)
def test_divided_batches(simt_environment: dict[str, str], codec: str) -> None:
    """Many chunks that differ, by groups, runs and launches."""
    done = python(str(HERE / "batches.py"), codec, environment={**simt_environment, "PYF_SIMT_SEED": "3"})
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    assert done.stdout.splitlines()[-1] == "1 of 1 groups identical on CPU and GPU"


def test_damaged_frames(simt_environment: dict[str, str]) -> None:
    """Refused where the CPU refuses them, and nothing is read or written outside of memory."""
    done = python(
        str(HERE / "same_bytes.py"), "--sanitize", "--damaged", "only",
        environment={**simt_environment, "PYF_SIMT_SEED": "2"},
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    assert done.stdout.splitlines()[-1] == "1 of 1 groups identical on CPU and GPU"


@pytest.mark.parametrize("seed", ["4", "5"])
def test_much_damage(simt_environment: dict[str, str], seed: str) -> None:
    """Threads that find a frame damaged beside each other leave together: those left alone read anywhere."""
    done = python(str(HERE / "damaged.py"), "20", environment={**simt_environment, "PYF_SIMT_SEED": seed})
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    assert [line.split()[-2:] for line in done.stdout.splitlines()] == [["0", "differ"]] * 10


def test_golden_files(simt_environment: dict[str, str]) -> None:
    """The frames that every version and every processor writes."""
    done = python(
        *("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "tests/golden"),
        *("-k", "not test_reference_decoder"),  # without kernels
        environment={**simt_environment, "PYFILTER_BACKEND": "cuda"},
    )
    assert done.returncode == 0, done.stdout[-3000:]


USES = """
import ctypes, os, numpy, pyfilter
count = ctypes.CDLL(os.environ["PYFILTER_CUDA_LIBRARY"]).pyf_simt_launches
count.restype = ctypes.c_uint64
values = numpy.cumsum(numpy.random.default_rng(1).normal(size=(50, 60, 3)), axis=0).astype("f4")
for codec in (
    pyfilter.Cuszp2, pyfilter.HierarchicalDelta, pyfilter.Lorenzo, pyfilter.Adaptive, pyfilter.Progressive,
    pyfilter.Particles,
):
    given = values.reshape(-1, 3) if codec is pyfilter.Particles else values
    before = count()
    frame = pyfilter.encode(given, codec(absolute=0.01))
    between = count()
    pyfilter.decode(frame)
    print(codec.__name__, between > before, count() > between)
lossless, by_ratio = pyfilter.Lossless(), pyfilter.Lossless(effort="ratio")
lorenzo = pyfilter.Lorenzo(relative=0.01)
for dtype, codec in (("f2", lorenzo), ("c8", lorenzo), ("?", lossless), ("f4", by_ratio)):
    before = count()
    frame = pyfilter.encode(values.astype(dtype), codec)
    between = count()
    pyfilter.decode(frame)
    print(dtype, between > before, count() > between)
"""


@pytest.mark.parametrize(("backend", "used"), [("cuda", "True"), ("cpu", "False")])
def test_kernels_are_what_runs(simt_environment: dict[str, str], backend: str, used: str) -> None:
    """A backend that cannot do something leaves it to the CPU: here it does not."""
    done = python("-c", USES, environment={**simt_environment, "PYFILTER_BACKEND": backend})
    assert done.returncode == 0, done.stderr
    assert [line.split()[1:] for line in done.stdout.splitlines()] == [[used, used]] * 10
