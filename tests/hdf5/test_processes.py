# SPDX-License-Identifier: BSD-3-Clause
"""The filter as a guest: several libhdf5 in a process, other plugins, new processes, fork, unloading, odd FPU modes."""

from __future__ import annotations

import importlib.util
import platform
from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import h5py
import numpy as np
import pytest

from .support import compressed, field, frames, largest_error, run_python

Script = Callable[..., str]

TWO_LIBRARIES = """
for name in sys.argv[2].split():
    __import__(name)
import h5py, netCDF4
assert loaded("h5py.libs/libhdf5-") != loaded("netcdf4.libs/libhdf5-")
folder, values = Path(sys.argv[1]), field((40, 30))

def write_h5py(name):
    with h5py.File(folder / name, "w") as file:
        file.create_dataset("v", data=values, chunks=(16, 16), fillvalue=-999, **compressed())
        assert cd_values(file["v"]) == stored(words(), "f4", (16, 16), fill=0xC479C000)
    with h5py.File(folder / name) as file:
        assert len(frames(file["v"])) == 6

def write_netcdf(name):
    with netCDF4.Dataset(folder / name, "w") as file:
        file.createDimension("y", 40)
        file.createDimension("x", 30)
        variable = file.createVariable("v", "f4", ("y", "x"), fill_value=-999, chunksizes=(16, 16))
        assert nc_compress(variable, words()) == 0
        variable[:] = values
    with h5py.File(folder / name) as file:
        assert cd_values(file["v"]) == stored(words(), "f4", (16, 16), fill=0xC479C000)
        assert len(frames(file["v"])) == 6

def check(name):
    with h5py.File(folder / name) as file:
        assert largest_error(file["v"][...], values) <= 1e-3
    with netCDF4.Dataset(folder / name) as file:
        assert largest_error(file["v"][...], values) <= 1e-3

for turn in range(2):
    write_h5py("a.h5")
    write_netcdf("a.nc")
    check("a.h5")
    check("a.nc")
with h5py.File(folder / "b.h5", "w") as file:
    try:
        file.create_dataset("v", data=values, chunks=(16, 16), **compressed(words(-1)))
    except ValueError as error:
        print(error)
"""


@pytest.mark.parametrize("order", ["h5py netCDF4", "netCDF4 h5py"])
def test_two_libhdf5_in_one_process(tmp_path: Path, script: Script, order: str) -> None:
    """Each gets its own functions and ids, whoever came first; so does the refusal's text."""
    pytest.importorskip("netCDF4")
    assert "is -1, must be finite and > 0" in script(TWO_LIBRARIES, tmp_path, order)


OTHER_PLUGINS = """
for name in sys.argv[2].split():
    __import__(name)
import h5py, hdf5plugin, netCDF4
path = Path(sys.argv[1]) / "a.h5"
with h5py.File(path, "w") as file:
    others = {"zfp": hdf5plugin.Zfp(accuracy=1e-3), "sz": hdf5plugin.SZ3(absolute=1e-3)}
    for name, keywords in {"ours": compressed(), **others}.items():
        file.create_dataset(name, data=field((40, 30)), chunks=(16, 16), **keywords)
with h5py.File(path) as file:
    for name in file:
        assert largest_error(file[name][...], field((40, 30))) <= 1e-3, name
    assert len(frames(file["ours"])) == 6
"""


@pytest.mark.parametrize("order", [" ".join(order) for order in permutations(("h5py", "hdf5plugin", "netCDF4"))])
def test_beside_hdf5plugin(tmp_path: Path, script: Script, order: str) -> None:
    pytest.importorskip("hdf5plugin")
    pytest.importorskip("netCDF4")
    script(OTHER_PLUGINS, tmp_path, order)


APPEND = """
import h5py
if sys.argv[2] == "pyfilter":
    import pyfilter
if sys.argv[2] == "pyf_register":
    library = ctypes.CDLL(sys.argv[3])
    assert library.pyf_register(loaded("h5py.libs/libhdf5-").encode()) == 0
with h5py.File(sys.argv[1], "r+") as file:
    if sys.argv[2] == "read first":
        file["x"][0]
    file["x"].resize((90, 30))
    file["x"][30:] = field((90, 30))[30:]
"""


@pytest.fixture(params=[None, 1e20])
def begun(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A file that another process is to go on with."""
    keywords = {"chunks": (30, 30), "maxshape": (None, 30), "fillvalue": request.param, **compressed()}
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=field((90, 30))[:30], **keywords)
    return tmp_path / "a.h5"


@pytest.mark.parametrize("how", ["pyfilter", "pyf_register", "read first"])
def test_append_in_a_new_process(begun: Path, script: Script, library_path: Path, how: str) -> None:
    if how == "pyfilter" and importlib.util.find_spec("pyfilter.h5") is None:
        pytest.skip("pyfilter is not installed")
    script(APPEND, begun, how, library_path)
    with h5py.File(begun) as file:
        assert len(frames(file["x"])) == 3
        assert largest_error(file["x"][...], field((90, 30))) <= 1e-3


def test_append_where_nothing_made_hdf5_load_the_plugin(begun: Path, script: Script) -> None:
    """HDF5 loads no plugin to write to an existing dataset. It says so, and what was there stays readable."""
    refused = """
try:
    APPEND
except Exception as error:
    assert "required filter" in str(error) and "is not registered" in str(error), str(error)
else:
    raise AssertionError("stored without the filter")
"""
    body = APPEND.strip().replace("\n", "\n    ")
    script(refused.replace("APPEND", body), begun, "nothing")
    with h5py.File(begun) as file:
        assert all(file["x"].id.get_chunk_info(i).filter_mask == 0 for i in range(file["x"].id.get_num_chunks()))
        assert largest_error(file["x"][:30], field((90, 30))[:30]) <= 1e-3


NO_MEMORY = """
import resource
import h5py
with h5py.File(sys.argv[1], "w") as file:
    dataset = file.create_dataset("x", (16, 1 << 20), "f4", chunks=(8, 1 << 20), **compressed())
    values = np.sin(np.arange(8 << 20, dtype="f4") / 1000).reshape(8, -1)
    dataset[:8] = values
    file.flush()
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + (40 << 20)  # enough for HDF5's copy of the chunk, not for the frame too
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    try:
        dataset[8:] = values
    except (OSError, MemoryError) as error:
        print(error)
    else:
        raise AssertionError("written without memory")
"""


def test_a_write_without_memory_fails_and_loses_nothing(tmp_path: Path, script: Script) -> None:
    script("import numpy as np\n" + NO_MEMORY, tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5") as file:
        chunks = [file["x"].id.get_chunk_info(i) for i in range(file["x"].id.get_num_chunks())]
        assert [chunk.filter_mask for chunk in chunks] == [0]
        assert largest_error(file["x"][:8].ravel(), np.sin(np.arange(8 << 20, dtype="f4") / 1000)) <= 1e-3


@pytest.mark.parametrize("fill", ["None", "1e20", "False"])
def test_append_through_netcdf(tmp_path: Path, script: Script, fill: str) -> None:
    """It looks for the plugin when it opens a variable. (None: netCDF's own default fill value.)"""
    pytest.importorskip("netCDF4")
    head = "import netCDF4\npath, values = sys.argv[1], field((90, 30))\n"
    create = f"""
with netCDF4.Dataset(path, "w") as file:
    file.createDimension("t", None)
    file.createDimension("x", 30)
    variable = file.createVariable("v", "f4", ("t", "x"), chunksizes=(30, 30), fill_value={fill})
    assert nc_compress(variable, words()) == 0
    variable[:30] = values[:30]
"""
    append = """
with netCDF4.Dataset(path, "a") as file:
    file["v"][30:90] = values[30:]
"""
    script(head + create, tmp_path / "a.nc")
    script(head + append, tmp_path / "a.nc")
    with h5py.File(tmp_path / "a.nc") as file:
        assert len(frames(file["v"])) == 3
        assert largest_error(file["v"][...], field((90, 30))) <= 1e-3


# A process that uses libhdf5 by ctypes alone, since H5close leaves h5py with dead ids.
CLOSE_AND_REOPEN = """
from ctypes import c_char_p, c_int, c_int64, c_size_t, c_uint, c_uint64, c_void_p
library = ctypes.CDLL(sys.argv[2])
values = field((300, 400))
dims, chunk, back = (c_uint64 * 2)(300, 400), (c_uint64 * 2)(256, 256), np.zeros_like(values)
user = (c_uint * 6)(*words())
for name, result, *parameters in [
    ("H5open", c_int),
    ("H5close", c_int),
    ("H5Fcreate", c_int64, c_char_p, c_uint, c_int64, c_int64),
    ("H5Fopen", c_int64, c_char_p, c_uint, c_int64),
    ("H5Fclose", c_int, c_int64),
    ("H5Screate_simple", c_int64, c_int, c_void_p, c_void_p),
    ("H5Pcreate", c_int64, c_int64),
    ("H5Pset_chunk", c_int, c_int64, c_int, c_void_p),
    ("H5Pset_filter", c_int, c_int64, c_int, c_uint, c_size_t, c_void_p),
    ("H5Dcreate2", c_int64, c_int64, c_char_p, *[c_int64] * 5),
    ("H5Dopen2", c_int64, c_int64, c_char_p, c_int64),
    ("H5Dwrite", c_int, *[c_int64] * 5, c_void_p),
    ("H5Dread", c_int, *[c_int64] * 5, c_void_p),
    ("H5Dclose", c_int, c_int64),
]:
    getattr(library, name).restype = result
    getattr(library, name).argtypes = parameters

def good(code):
    assert code >= 0
    return code

def write():
    f32 = c_int64.in_dll(library, "H5T_IEEE_F32LE_g").value
    plist = good(library.H5Pcreate(c_int64.in_dll(library, "H5P_CLS_DATASET_CREATE_ID_g").value))
    good(library.H5Pset_chunk(plist, 2, chunk))
    good(library.H5Pset_filter(plist, FILTER_ID, 0, 6, user))
    file = good(library.H5Fcreate(sys.argv[1].encode(), 2, 0, 0))
    dataset = good(library.H5Dcreate2(file, b"x", f32, good(library.H5Screate_simple(2, dims, None)), 0, plist, 0))
    good(library.H5Dwrite(dataset, f32, 0, 0, 0, values.ctypes.data))
    good(library.H5Dclose(dataset))
    good(library.H5Fclose(file))

def read():
    f32 = c_int64.in_dll(library, "H5T_IEEE_F32LE_g").value
    file = good(library.H5Fopen(sys.argv[1].encode(), 0, 0))
    dataset = good(library.H5Dopen2(file, b"x", 0))
    good(library.H5Dread(dataset, f32, 0, 0, 0, back.ctypes.data))
    good(library.H5Dclose(dataset))
    good(library.H5Fclose(file))
    assert 0 < largest_error(back, values) <= 1e-3

for turn in range(4):
    good(library.H5open())
    write()
    read()
    good(library.H5close())
    assert loaded("libh5pyfilter")  # still there: its threads are
    good(library.H5open())
    read()
    good(library.H5close())
"""


@pytest.mark.parametrize("package", ["h5py", "netcdf4"])
def test_unloading_at_h5close(tmp_path: Path, env: dict[str, str], package: str) -> None:
    """HDF5 unloads plugins at H5close, and its ids are others after the next H5open; our threads run on."""
    spec = importlib.util.find_spec("h5py")
    assert spec is not None
    assert spec.origin is not None
    found = sorted((Path(spec.origin).parent.parent / f"{package}.libs").glob("libhdf5-*.so*"))
    if not found:
        pytest.skip(f"{package} brings no libhdf5")
    run_python(CLOSE_AND_REOPEN, tmp_path / "a.h5", found[0], env={**env, "PYFILTER_NUM_THREADS": "4"})


FORK = """
import h5py, multiprocessing, signal, threading

def round_trip(name):
    signal.alarm(30)
    with h5py.File(Path(sys.argv[1]) / name, "w") as file:
        file.create_dataset("x", data=field((500, 600)), chunks=(500, 600), **compressed())
    with h5py.File(Path(sys.argv[1]) / name) as file:
        assert len(frames(file["x"])) == 1
        assert largest_error(file["x"][...], field((500, 600))) <= 1e-3

round_trip("parent.h5")  # starts the threads
context = multiprocessing.get_context("fork")
for turn in range(3):
    children = [context.Process(target=round_trip, args=(f"child{i}.h5",)) for i in range(3)]
    for child in children:
        child.start()
    round_trip("parent.h5")
    for child in children:
        child.join(30)
        assert child.exitcode == 0, child.exitcode
"""


def test_fork_after_threads_were_used(tmp_path: Path, env: dict[str, str]) -> None:
    """A child has none of the parent's threads and has to make its own."""
    run_python(FORK, tmp_path, env={**env, "PYFILTER_NUM_THREADS": "4", "PYTHONWARNINGS": "ignore"})


# Flush-to-zero, denormals-are-zero and rounding towards +infinity, as programs built with -ffast-math leave them.
FLOATING_POINT = """
import h5py, platform
libm = ctypes.CDLL("libm.so.6")
state = (ctypes.c_uint32 * 16)()
assert libm.fegetenv(state) == 0
word, bits = {"x86_64": (7, 0x8040 | 0x4000), "aarch64": (0, 1 << 24 | 1 << 22)}[platform.machine()]
odd = (ctypes.c_uint32 * 16)(*state)
odd[word] |= bits

rng = np.random.default_rng(3)
cases = {
    "small": ((rng.normal(size=(64, 64)) * 1e-39).astype("f4"), words(1e-41)),
    "smaller": (rng.normal(size=(64, 64)) * 1e-310, words(1e-312)),
    "mixed": (field((64, 64)) * (rng.random((64, 64)) > 0.5) + np.float32(1e-40), words(1e-3)),
    "relative": (field((64, 64), "f8"), words(1e-6, RELATIVE)),
    "exact": ((rng.normal(size=(64, 64)) * 1e-39).astype("f4"), lossless()),
}

def write(name):
    with h5py.File(Path(sys.argv[1]) / name, "w") as file:
        for case, (values, user) in cases.items():
            file.create_dataset(case, data=values, chunks=(64, 64), **compressed(user))
        return {case: frames(file[case]) for case in cases if not file.flush()}

def read(name):
    with h5py.File(Path(sys.argv[1]) / name) as file:
        return {case: file[case][...].tobytes() for case in cases}

expected = write("plain.h5"), read("plain.h5")
assert libm.fesetenv(odd) == 0
written = write("odd.h5"), read("odd.h5")
after = (ctypes.c_uint32 * 16)()
libm.fegetenv(after)
assert libm.fesetenv(state) == 0
assert written == expected
assert after[word] & bits == bits, "the caller's state was not put back"
for case, (values, user) in cases.items():
    back = np.frombuffer(expected[1][case], values.dtype).reshape(values.shape)
    bound = Header(expected[0][case][0]).bound
    assert largest_error(back, values) <= bound, case
"""


@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="unknown bits")
@pytest.mark.parametrize("threads", ["1", "3"])
def test_floating_point_environment_of_the_caller(tmp_path: Path, env: dict[str, str], threads: str) -> None:
    run_python(FLOATING_POINT, tmp_path, env={**env, "PYFILTER_NUM_THREADS": threads})


def test_two_copies_of_the_library_in_one_process(tmp_path: Path, env: dict[str, str], library_path: Path) -> None:
    """Another one, in the global scope: nothing of it is taken for ours."""
    other = tmp_path / "elsewhere" / "libh5pyfilter.so"
    other.parent.mkdir()
    other.write_bytes(library_path.read_bytes())
    script = """
stranger = ctypes.CDLL(sys.argv[2], mode=ctypes.RTLD_GLOBAL)
assert stranger.pyf_configure(b"threads", b"3") == 0
import h5py
with h5py.File(sys.argv[1], "w") as file:
    file.create_dataset("x", data=field((40, 30)), chunks=(16, 16), **compressed())
with h5py.File(sys.argv[1]) as file:
    assert largest_error(file["x"][...], field((40, 30))) <= 1e-3
assert len({line.split()[-1] for line in open("/proc/self/maps") if "libh5pyfilter" in line}) == 2
"""
    run_python(script, tmp_path / "a.h5", other, env=env)
