# SPDX-License-Identifier: BSD-3-Clause
"""Complex numbers, bool and floats of 16 bits on devices: frames, datasets, host arrays through devices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import pyfilter

BOUNDS: list[dict[str, float]] = [{"absolute": 0.05}, {"relative": 0.01}, {"pointwise_relative": 0.02}, {"psnr": 60}]


def values_of(dtype: str, shape: tuple[int, ...] = (60, 50)) -> Any:
    rng = np.random.default_rng(0)
    walk = rng.standard_normal(shape).cumsum(axis=-1)
    if dtype[-2:] in ("c8", "16"):
        walk = walk + 1j * rng.standard_normal(shape).cumsum(axis=0)
    return walk > 0 if dtype == "?" else walk.astype(dtype)


def codecs_of(dtype: str) -> list[pyfilter.Codec]:
    if dtype == "?":
        return [pyfilter.Lossless()]
    kinds: Any = (pyfilter.HierarchicalDelta, pyfilter.Lorenzo)
    found = [kind(**bound) for bound in BOUNDS for kind in kinds]
    return [pyfilter.Lossless(), pyfilter.Cuszp2(absolute=0.1), pyfilter.Cuszp2(relative=1e-3), *found]


@pytest.mark.parametrize("dtype", ["f2", "c8", "c16", "?"])
def test_frames_and_values_are_those_of_the_host(cp: Any, dtype: str) -> None:
    for shape in ((60, 50), (), (0, 3), (33,)):
        values = values_of(dtype, shape) if shape else values_of(dtype, (1,)).reshape(())
        for codec in codecs_of(dtype):
            frame = pyfilter.encode(cp.asarray(values), codec)
            assert frame.get().tobytes() == pyfilter.encode(values, codec)
            back = pyfilter.decode(frame)
            assert (back.dtype, back.shape) == (values.dtype, values.shape)
            assert back.get().tobytes() == pyfilter.decode(frame.get().tobytes()).tobytes()
            if values.size > 9:
                part = pyfilter.decode(frame, 3, values.size - 4)
                assert part.get().tobytes() == back.get().reshape(-1)[3:-4].tobytes()


@pytest.mark.parametrize("dtype", ["f2", "c8", "c16", "?"])
def test_datasets_from_arrays_on_a_device(cp: Any, file: h5py.File, dtype: str) -> None:
    values = values_of(dtype)
    for number, codec in enumerate(codecs_of(dtype)):
        fill = None if dtype == "?" else values.reshape(-1)[7]
        dataset = pyfilter.create_dataset(file, str(number), cp.asarray(values), codec, chunks=(16, 20), fillvalue=fill)
        on_host = pyfilter.create_dataset(file, f"{number} host", values, codec, chunks=(16, 20), fillvalue=fill)
        chunks = [each.id.read_direct_chunk((48, 40)) for each in (dataset, on_host)]  # an edge chunk, padded
        assert chunks[0] == chunks[1]
        assert pyfilter.read(dataset, device="cuda").get().tobytes() == dataset[...].tobytes()
        assert pyfilter.read(dataset, np.s_[5:40, 3:44], device="cuda").get().tobytes() == dataset[5:40, 3:44].tobytes()
        assert pyfilter.verify(values, dataset[...], 0 if codec.is_lossless else codec).ok


@pytest.mark.parametrize("dtype", ["f2", ">f2", "c8", ">c16", "?"])
def test_host_arrays_through_devices(cp: Any, tmp_path: Path, dtype: str) -> None:
    values = values_of(dtype, (70, 64, 50))
    for number, codec in enumerate((codecs_of(dtype.lstrip(">")))[:3]):
        path = tmp_path / f"{number}.h5"
        with h5py.File(path, "w") as file:
            by_device = pyfilter.create_dataset(file, "a", values, codec, chunks=(16, 20, 50), devices="all")
            by_host = pyfilter.create_dataset(file, "b", values, codec, chunks=(16, 20, 50))
            for at in ((0, 0, 0), (64, 60, 0)):
                assert by_device.id.read_direct_chunk(at) == by_host.id.read_direct_chunk(at)
            expected = by_host[...]
            assert pyfilter.read(by_device, devices="all").tobytes() == expected.tobytes()
            assert (
                pyfilter.read(by_device, device="cuda").get().tobytes()
                == expected.astype(values.dtype.newbyteorder("=")).tobytes()
            )


def test_integers_of_a_codec_without_kernels_for_them_are_refused(cp: Any) -> None:
    with pytest.raises(pyfilter.errors.Unsupported, match="encode values in host memory"):
        pyfilter.encode(cp.arange(1000, dtype="i4"), pyfilter.Adaptive(absolute=2))


def test_unfiltered_chunks_of_big_endian_complex_numbers(cp: Any, file: h5py.File) -> None:
    values = values_of(">c16")
    dataset = pyfilter.create_dataset(file, "a", values, pyfilter.Lossless(), chunks=(30, 50))
    dataset.id.write_direct_chunk((30, 0), values[30:].tobytes(), filter_mask=1)
    assert pyfilter.read(dataset, device="cuda").get().tobytes() == values.astype("c16").tobytes()
