# SPDX-License-Identifier: BSD-3-Clause
"""Skips the folder where no device can be used, and says why. Warnings of other packages are no errors here."""

from __future__ import annotations

import fcntl
import os
import threading
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import h5py
import pytest

from pyfilter import errors
from pyfilter._lib import cuda
from pyfilter.gpu import host_memory, staging, writing

from . import model

MODEL = os.environ.get("PYFILTER_TEST_GPU") == "model"
if MODEL:
    model.install()


@cache
def why_not() -> str | None:
    """Return why nothing here can run, None where it can."""
    try:
        cuda.require()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import cupy  # noqa: F401
    except (errors.PyfilterError, ImportError) as error:
        return f"no CUDA device can be used: {error}"
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here not in Path(item.path).parents:
            continue
        item.add_marker(pytest.mark.filterwarnings("default"))
        reason = why_not()
        if reason is not None:
            item.add_marker(pytest.mark.skip(reason=reason))
        elif MODEL and item.get_closest_marker("device_only") is not None:
            item.add_marker(pytest.mark.skip(reason="needs a device, not a model of one"))


@pytest.fixture(autouse=True)
def share_of_device(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A test marked whole_device runs while no other process of pytest-xdist runs one: it leaves them no memory."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        yield
        return
    whole = request.node.get_closest_marker("whole_device") is not None
    folder = tmp_path_factory.getbasetemp().parent  # that of all workers
    with (folder / "turn.lock").open("w") as turn, (folder / "device.lock").open("w") as device:
        fcntl.flock(turn, fcntl.LOCK_EX)  # held while waiting, so that later tests let this one in
        fcntl.flock(device, fcntl.LOCK_EX if whole else fcntl.LOCK_SH)
        fcntl.flock(turn, fcntl.LOCK_UN)
        yield


@pytest.fixture
def cp() -> Any:
    import cupy

    return cupy


@pytest.fixture
def file(tmp_path: Path) -> Iterator[h5py.File]:
    with h5py.File(tmp_path / "a.h5", "w") as opened:
        yield opened


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of a few chunks, some packed and some not, and copies by several threads."""
    monkeypatch.setattr(staging, "BATCH_BYTES", 20_000)
    monkeypatch.setattr(writing, "FEW", 2)
    monkeypatch.setattr(host_memory, "PART_BYTES", 1000)


@pytest.fixture
def threads_end() -> Iterator[None]:
    """No thread is left behind."""
    yield
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("pyfilter-")] == []
