# SPDX-License-Identifier: BSD-3-Clause
"""Batches of particles so large that they are encoded group after group, with parts that are kept from call to call."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import pyfilter
from pyfilter import frames

from . import particle_cases

Array = NDArray[Any]
ROWS = 550_001  # 135 tiles; groups have 1536 or more


def batch(chunks: int, first: int, seed: int) -> list[Array]:
    """Chunks of kinds that differ, so that some of them are encoded by lorenzo after all: which ones `first` says."""
    kinds = itertools.islice(itertools.cycle(particle_cases.KINDS), first, first + chunks)
    return particle_cases.chunks("f4", 2, ROWS, list(kinds), 1, np.random.default_rng(seed))


def encode(chunks: list[Array], codec: pyfilter.Codec) -> list[bytes]:
    from gpu import device  # needs CuPy

    return device.encode(frames.make_request(codec, chunks[0].dtype, chunks[0].shape), chunks)


@pytest.mark.device_only
def test_choices_are_those_of_the_call(cp: Any) -> None:
    codec = pyfilter.Particles(relative=1e-3, order="tile")
    batches = [batch(35, 0, 1), batch(24, 3, 2), batch(35, 5, 3)]  # three groups, two, three
    expected = [[pyfilter.encode(chunk, codec) for chunk in chunks] for chunks in batches]
    named = [[pyfilter.frame_info(frame).codec for frame in each] for each in expected]
    assert all({"particles", "lorenzo"} <= set(each) for each in named)
    assert named[0] != named[2]
    for number in (0, 1, 2, 0, 2):
        assert encode(batches[number], codec) == expected[number]
        if number == 1:
            pyfilter.gpu.release_memory()

    def work(number: int) -> bool:
        with cp.cuda.Stream(non_blocking=True):
            return all(encode(batches[number], codec) == expected[number] for _ in range(3))

    with ThreadPoolExecutor(3) as pool:
        assert all(pool.map(work, (0, 2, 1)))


@pytest.mark.device_only
def test_calls_that_follow_each_other_without_a_wait(cp: Any) -> None:
    """The last tiles of a batch are on their way when the call returns: the next one comes behind them."""
    from pyfilter._lib import cuda, host

    codec = pyfilter.Particles(absolute=0.01, order="tile")
    batches = [batch(24, 0, 4), batch(24, 2, 5)]
    expected = [[pyfilter.encode(chunk, codec) for chunk in chunks] for chunks in batches]
    request = frames.make_request(codec, np.dtype("f4"), (ROWS, 2))
    capacity = -(-host.max_frame_bytes(request) // 256) * 256
    with cp.cuda.Stream(non_blocking=True) as stream:
        given = [cp.asarray(np.stack(batches[i % 2])) for i in range(4)]
        rounds = [(cp.zeros(24 * capacity, cp.uint8), cp.zeros(24, cp.uint64)) for _ in given]
        for values, (place, sizes) in zip(given, rounds, strict=True):
            cuda.encode(
                request, 24, values.data.ptr, values.nbytes // 24, place.data.ptr, capacity, sizes.data.ptr, stream.ptr
            )
            values.fill(np.nan)  # what comes behind it on the stream may write to its input
        for i, (place, sizes) in enumerate(rounds):
            got = [place[k * capacity :][: int(size)].get().tobytes() for k, size in enumerate(sizes.get())]
            assert got == expected[i % 2]
