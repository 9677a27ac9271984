# SPDX-License-Identifier: BSD-3-Clause
"""Types without kernels, complex numbers and floats of 16 bits: the host compresses and decompresses device arrays."""

from __future__ import annotations

from typing import Any

import h5py
import numpy as np
import pytest

import pyfilter


@pytest.mark.parametrize("dtype", ["f2", "c8", "c16"])
@pytest.mark.parametrize(
    "codec", [pyfilter.Lossless(), pyfilter.Cuszp2(absolute=0.1), pyfilter.Adaptive(relative=0.01)]
)
def test_frames_and_values_are_those_of_the_host(cp: Any, file: h5py.File, codec: pyfilter.Codec, dtype: str) -> None:
    values = np.random.default_rng(0).standard_normal((60, 50)).cumsum(axis=1).astype(dtype)
    frame = pyfilter.encode(cp.asarray(values), codec)
    assert frame.get().tobytes() == pyfilter.encode(values, codec)
    assert pyfilter.decode(frame).get().tobytes() == pyfilter.decode(frame.get().tobytes()).tobytes()
    dataset = pyfilter.create_dataset(file, "a", cp.asarray(values), codec, chunks=(16, 20))
    assert pyfilter.read(dataset, device="cuda").get().tobytes() == dataset[...].tobytes()
    assert pyfilter.verify(values, dataset[...], 0 if codec.is_lossless else codec).ok
