# SPDX-License-Identifier: BSD-3-Clause
"""pyfilter.config: as a call, as a context, with wrong values, and from the environment."""

from __future__ import annotations

from typing import Any

import pytest

import pyfilter

from .support import clean_environment, run_script


def test_a_context_brings_back_what_was_set() -> None:
    before = repr(pyfilter.config())
    with pyfilter.config(threads=3) as settings:
        assert settings.threads == 3
        with pyfilter.config(threads=5, cpu_level="baseline", backend="cpu"):
            assert (settings.threads, settings.cpu_level, settings.backend) == (5, "baseline", "cpu")
        assert settings.threads == 3
    assert repr(pyfilter.config()) == before


def test_an_error_in_the_context_brings_it_back_too() -> None:
    before = pyfilter.config().threads
    with pytest.raises(KeyError), pyfilter.config(threads=before + 1):
        raise KeyError
    assert pyfilter.config().threads == before


def test_a_call_holds_until_the_next_one() -> None:
    before = pyfilter.config().threads
    pyfilter.config(threads=7)
    assert pyfilter.config().threads == 7
    pyfilter.config(threads=before)


def test_zero_threads_are_one_for_each_core() -> None:
    with pyfilter.config(threads=0) as settings:
        assert settings.threads >= 1


@pytest.mark.parametrize("threads", [-1, 1025, 1.0, "2", True, 10**30, None.__class__])
def test_bad_thread_counts_are_refused(threads: Any) -> None:
    before = pyfilter.config().threads
    with pytest.raises(ValueError, match=r"threads must be an integer from 0 .* to 1024, got"):
        pyfilter.config(threads=threads)
    assert pyfilter.config().threads == before


@pytest.mark.parametrize("name", ["backend", "cpu_level"])
@pytest.mark.parametrize("value", ["", "gpu", "AUTO", 1, b"cpu"])
def test_bad_names_are_refused(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{name} must be one of 'auto', "):
        pyfilter.config(**{name: value})


def test_nothing_is_changed_where_one_of_several_is_wrong() -> None:
    before = pyfilter.config().threads
    with pytest.raises(ValueError, match="cpu_level"):
        pyfilter.config(threads=before + 1, cpu_level="mmx")
    assert pyfilter.config().threads == before


def test_cuda_is_refused_where_it_cannot_be_used() -> None:
    before = pyfilter.config()
    if before.cuda_devices:
        with pyfilter.config(backend="cuda") as settings:
            assert settings.backend == "cuda"
        return
    with pytest.raises(pyfilter.errors.DeviceError, match="no CUDA device" if before.cuda else "CUDA library"):
        pyfilter.config(backend="cuda", threads=before.threads + 1)
    assert (pyfilter.config().backend, pyfilter.config().threads) == ("auto", before.threads)


def test_the_environment_is_read_by_the_library() -> None:
    env = clean_environment(PYFILTER_NUM_THREADS="3", PYFILTER_CPU="baseline")
    script = "import pyfilter; s = pyfilter.config(); print(s.threads, s.cpu_level)"
    assert run_script(script, env=env).stdout.split() == ["3", "baseline"]
