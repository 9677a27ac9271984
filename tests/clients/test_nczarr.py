# SPDX-License-Identifier: BSD-3-Clause
"""NCZarr, netCDF-C's Zarr, by netCDF4's libnetcdf."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import pyfilter
from pyfilter._lib import hdf5

from .conftest import FILL, field, write

CODECS = [pyfilter.HierarchicalDelta(absolute=0.01), pyfilter.Cuszp2(relative=1e-3, block_dims=2), pyfilter.Lossless()]
WRITE = """
import sys, numpy as np
import pyfilter, netCDF4
values = np.load(sys.argv[1])
with netCDF4.Dataset(sys.argv[2], "w") as file:
    for name, extent in zip("tyx", values.shape):
        file.createDimension(name, extent)
    v = file.createVariable("v", sys.argv[4], ("t", "y", "x"), fill_value=1e20, chunksizes=(2, 20, 50))
    codec = pyfilter.Codec.from_cd_values(map(int, sys.argv[3].split(",")))
    pyfilter.netcdf.compress(v, codec)
    assert pyfilter.netcdf.codec_of(v) == codec
    v[:] = values
"""
READ = """
import sys, numpy as np
import netCDF4
with netCDF4.Dataset(sys.argv[1]) as file:
    file.set_auto_mask(False)
    np.save(sys.argv[2], file["v"][:].astype("=" + file["v"].dtype.str[1:]))
"""


def url(folder: Path) -> str:
    return f"{folder.as_uri()}#mode=nczarr,file"


@pytest.fixture
def with_plugins(env: dict[str, str]) -> None:
    """netCDF-C reads the path when it is first used; its own plugins are of no need here."""
    pytest.importorskip("netCDF4")


@pytest.mark.usefixtures("with_plugins")
@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: type(codec).__name__)
def test_written_and_read(tmp_path: Path, script: Callable[..., str], codec: pyfilter.Codec) -> None:
    np.save(tmp_path / "values.npy", field())
    words = ",".join(map(str, codec.filter_options))
    script(WRITE, tmp_path / "values.npy", url(tmp_path / "a"), words, "f4")
    about = json.loads((tmp_path / "a" / "v" / ".zarray").read_text())
    assert about["compressor"] == {"id": "pyfilter", "cd_values": list(codec.filter_options)}
    frame = pyfilter.frame_info((tmp_path / "a" / "v" / "0.0.0").read_bytes())
    assert frame.shape == (2, 20, 50)
    assert not frame.stored_raw
    script(READ, url(tmp_path / "a"), tmp_path / "b.npy")
    assert pyfilter.verify(field(), np.load(tmp_path / "b.npy"), codec, fill_value=np.float32(FILL)).ok


@pytest.mark.usefixtures("with_plugins")
def test_big_endian(tmp_path: Path, script: Callable[..., str]) -> None:
    np.save(tmp_path / "values.npy", field())
    words = ",".join(map(str, CODECS[0].filter_options))
    script(WRITE, tmp_path / "values.npy", url(tmp_path / "a"), words, ">f4")
    script(READ, url(tmp_path / "a"), tmp_path / "b.npy")
    assert pyfilter.verify(field(), np.load(tmp_path / "b.npy"), CODECS[0], fill_value=np.float32(FILL)).ok


@pytest.mark.usefixtures("with_plugins")
def test_stored_words_are_taken_and_written_as_the_users(tmp_path: Path, script: Callable[..., str]) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = pyfilter.create_dataset(file, "x", field(), CODECS[0])
        properties = dataset.id.get_create_plist()
        ((_, stored),) = hdf5.filters_of(properties.id)
    assert len(stored) > 6
    np.save(tmp_path / "values.npy", field())
    text = WRITE.replace("pyfilter.netcdf.compress(v, codec)", "netcdf_c.library().def_var_filter(*place, words)")
    text = text.replace("codec =", "words = tuple(map(int, sys.argv[3].split(',')))\n    codec =")
    text = text.replace(
        "words =", "from pyfilter._lib import netcdf_c\n    place = v._grpid, v._varid, 52907\n    words ="
    )
    script(text, tmp_path / "values.npy", url(tmp_path / "a"), ",".join(map(str, stored)), "f4")
    about = json.loads((tmp_path / "a" / "v" / ".zarray").read_text())
    assert about["compressor"] == {"id": "pyfilter", "cd_values": list(CODECS[0].filter_options)}
    script(READ, url(tmp_path / "a"), tmp_path / "b.npy")
    assert pyfilter.verify(field(), np.load(tmp_path / "b.npy"), CODECS[0], fill_value=np.float32(FILL)).ok


BAD_CODECS = [
    '{"id": "pyfilter"}',
    '{"id": "pyfilter", "cd_values": "1,1,1"}',
    '{"id": "pyfilter", "cd_values": []}',
    '{"id": "pyfilter", "cd_values": [1, 3, 1, -5, 0, 0]}',
    '{"id": "pyfilter", "cd_values": [1, 3, 1, 99999999999, 0, 0]}',
    '{"id": "pyfilter", "cd_values": [1, 99, 1, 0, 1062232653, 0]}',
    '{"id": "pyfilter", "cd_values": [1, 3, 1, 0, 0, 0]}',
    f'{{"id": "pyfilter", "cd_values": {list(range(60))}}}',
]


@pytest.mark.usefixtures("with_plugins")
def test_stores_that_are_damaged_are_errors(tmp_path: Path, env: dict[str, str], script: Callable[..., str]) -> None:
    np.save(tmp_path / "values.npy", field())
    words = ",".join(map(str, CODECS[0].filter_options))
    script(WRITE, tmp_path / "values.npy", url(tmp_path / "good"), words, "f4")
    about = json.loads((tmp_path / "good" / "v" / ".zarray").read_text())
    stores = []
    for number, codec in enumerate(BAD_CODECS):
        stores.append(Path(shutil.copytree(tmp_path / "good", tmp_path / f"codec{number}")))
        (stores[-1] / "v" / ".zarray").write_text(json.dumps({**about, "compressor": json.loads(codec)}))
    damages: dict[str, Callable[[bytes], bytes]] = {
        "cut": lambda frame: frame[:-9],
        "flipped": lambda frame: b"?" + frame[1:],
    }
    for name, change in damages.items():
        stores.append(Path(shutil.copytree(tmp_path / "good", tmp_path / name)))
        chunk = stores[-1] / "v" / "1.1.1"
        chunk.write_bytes(change(chunk.read_bytes()))
    text = """
import sys, netCDF4
for store in sys.argv[1:]:
    try:
        with netCDF4.Dataset(store) as file:
            file["v"][:]
        print("read", store)
    except (RuntimeError, OSError, IndexError) as error:
        pass
"""
    for store in stores:
        done = subprocess.run(
            [sys.executable, "-c", text, url(store)], env=env, capture_output=True, text=True, check=False, timeout=60
        )
        assert (done.returncode, done.stdout) == (0, ""), f"{store}: {done.stdout} {done.stderr}"


@pytest.mark.usefixtures("with_plugins")
def test_filters_before_ours_are_refused(tmp_path: Path, env: dict[str, str]) -> None:
    text = """
import sys, pyfilter, netCDF4
from pyfilter._lib import library, netcdf_c
file = netCDF4.Dataset(sys.argv[1], "w")
file.createDimension("x", 100)
v = file.createVariable("v", "f4", ("x",), shuffle=True, zlib=True)
codec = pyfilter.Cuszp2(absolute=1e-3)
try:
    pyfilter.netcdf.compress(v, codec)
except ValueError as error:
    print(error)
netcdf_c.library().def_var_filter(v._grpid, v._varid, pyfilter.FILTER_ID, codec.filter_options)  # past our own check
try:
    v[:] = 1.0
    file.close()
except RuntimeError as error:
    print(error, library.load().pyf_last_error().decode(), flush=True)
import os
os._exit(0)
"""
    netCDF4 = pytest.importorskip("netCDF4")
    plugins = Path(netCDF4.__file__).parent / "plugins"
    env = {**env, "HDF5_PLUGIN_PATH": f"{env['HDF5_PLUGIN_PATH']}:{plugins}"}
    done = subprocess.run(
        [sys.executable, "-c", text, url(tmp_path / "a")], env=env, capture_output=True, text=True, check=False
    )
    if "undefined filter" in done.stderr:
        pytest.skip("this netCDF4 comes without plugins for shuffle and gzip in NCZarr")
    assert "gzip, shuffle set, which netCDF would put before" in done.stdout, done.stderr
    assert "stands before pyfilter: pyfilter must be the first filter" in done.stdout, done.stderr


@pytest.mark.usefixtures("with_plugins")
@pytest.mark.parametrize("bound", [{"relative": 1e-3}, {"psnr": 60.0}], ids=["relative", "psnr"])
def test_nccopy_to_zarr(
    tmp_path: Path, tool: Callable[..., str], script: Callable[..., str], bound: dict[str, Any]
) -> None:
    """Copies in mode "no fill": the fill value is in the attribute alone."""
    codec = pyfilter.Lorenzo(**bound)
    write(tmp_path / "a.nc", field(), codec)
    with h5py.File(tmp_path / "a.nc") as file:
        values = file["tas"][...]
    tool("nccopy", "-u", tmp_path / "a.nc", url(tmp_path / "b"))
    script(READ.replace('"v"', '"tas"'), url(tmp_path / "b"), tmp_path / "b.npy")
    assert pyfilter.verify(values, np.load(tmp_path / "b.npy"), codec, fill_value=np.float32(FILL)).ok
