# SPDX-License-Identifier: BSD-3-Clause
"""A libhdf5 or libnetcdf whose functions fail, or report nonsense: an error with a text, and nothing changed.

The real ones do so when memory is out or a property list is broken. fake_libraries.c takes their place.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from ctypes import byref, c_char, c_char_p, c_int, c_int64, c_size_t, c_uint, c_void_p
from pathlib import Path
from typing import Any

import pytest

from .filter_calls import FilterClass
from .support import stored, words

F32, F64_BIG, I8_BIG, OTHER = 1, 4, 6, 100
COMPOUND, ENUMERATION, COMPLEX_CLASS, FLOAT = 6, 8, 11, 1
SIZES = (
    *("words", "size", "sign", "exponent", "exponent_bits", "mantissa", "mantissa_bits", "bias", "offset", "gap"),
    *("nc_filters", "att_length", "dim"),
)
BAD_ARGUMENT, FILTER_ERROR = -36, -132
Fakes = Callable[..., "Fake"]


class Fake:
    """One build of fake_libraries.c; `tell` says what its functions report."""

    def __init__(self, path: Path, filter_library: Any) -> None:
        self.path, self.c = path, ctypes.CDLL(str(path))
        self.filter_library = filter_library
        filter_library.H5PLget_plugin_info.restype = c_void_p
        self.of = FilterClass.from_address(filter_library.H5PLget_plugin_info())
        self.c.fake_filter.restype = c_size_t
        self.c.fake_check.argtypes = [c_void_p, c_int64, c_int64]

    def tell(self, **values: Any) -> None:
        for name, value in values.items():
            kind: Any = c_char_p if isinstance(value, bytes) else c_size_t if name in SIZES else c_int
            kind.in_dll(self.c, f"fake_{name}").value = value

    def words(self, values: tuple[int, ...]) -> None:
        (c_uint * 300).in_dll(self.c, "fake_values")[: len(values)] = list(values)
        self.tell(words=len(values))

    def check(self, callback: str = "set_local", type_id: int = F32, dcpl: int = 1) -> int:
        address = ctypes.cast(getattr(self.of, callback), c_void_p)
        return int(self.c.fake_check(address, dcpl, type_id))

    def pushed(self) -> str:
        """The error that the filter pushed, which is gone then."""
        text = (c_char * 512).in_dll(self.c, "fake_pushed")
        said = text.value.decode()
        text.value = b""
        return said

    def stored(self) -> tuple[int, ...]:
        count = c_size_t.in_dll(self.c, "fake_stored_count").value
        return tuple((c_uint * 64).in_dll(self.c, "fake_stored")[:count])


@pytest.fixture(scope="session")
def fakes(library_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Fakes:
    """Builds one; its functions then report a dataset that the filter takes."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.fail("no C compiler: scripts/test installs g++")
    folder = tmp_path_factory.mktemp("fakes")
    filter_library = ctypes.CDLL(str(library_path))

    def build(*flags: str, version: str = "2.0") -> Fake:
        major, minor = version.split(".")
        path = folder / f"fake{len(list(folder.iterdir()))}.so"
        source = Path(__file__).with_name("fake_libraries.c")
        release = [f"-DFAKE_MAJOR={major}", f"-DFAKE_MINOR={minor}"]
        command = [compiler, "-shared", "-fPIC", "-O0", *release, *flags, str(source), "-o", str(path)]
        subprocess.run(command, check=True, timeout=60)
        return Fake(path, filter_library)

    return build


@pytest.fixture(scope="session")
def shared(fakes: Fakes) -> Fake:
    return fakes("-DFAKE_ALL")


START: dict[str, Any] = {
    "failing": b"",
    **{"filters": 1, "first": 52907, "second": 1, "named": 1, "rank": 1, "fill": 0, "fill_time": 2, "class": FLOAT},
    **{"members": 2, "norm": 0, "order": 0, "base": F32, "size": 2, "sign": 15, "exponent": 10, "exponent_bits": 5},
    **{"mantissa": 0, "mantissa_bits": 10, "bias": 15, "offset": 0, "gap": 4, "attributes": 0, "nc_type": 5},
    **{"endian": 0, "storage": 0, "no_fill": 0, "att_type": 5, "nc_rank": 1, "nc_filters": 1, "att_length": 1},
    **{"nc_first": 52907, "nc_version": b"4.9.2", "dim": 8},
}


@pytest.fixture
def fake(shared: Fake) -> Fake:
    shared.tell(**START)
    shared.words(words())
    shared.pushed()
    return shared


def test_nothing_fails(fake: Fake) -> None:
    assert fake.check("can_apply") == 1
    assert fake.check() == 0
    assert fake.stored() == stored(words(), "f4", [8])
    assert fake.pushed() == ""


REPORT = "HDF5 did not report the "


@pytest.mark.parametrize(
    ("told", "text"),
    [
        ({"failing": b"H5open"}, "cannot see the functions of the HDF5 library"),
        ({"failing": b"H5Pget_nfilters"}, REPORT + "dataset's filters"),
        ({"filters": 0}, REPORT + "dataset's filters"),
        ({"failing": b"H5Pget_filter2"}, REPORT + "dataset's filters"),
        ({"first": 2}, "filter 'named' (id 2) stands before"),
        ({"first": 2, "named": 0}, "put it before 'that one'"),
        ({"filters": 2, "second": 52907}, "twice (positions 0 and 1)"),
        ({"words": 99}, "99 words given, at most 6 allowed"),
        ({"failing": b"H5Pget_chunk"}, REPORT + "chunk's shape"),
        ({"rank": 0}, REPORT + "chunk's shape"),
        ({"rank": 33}, REPORT + "chunk's shape"),
        ({"dim": 1 << 46}, "bytes in one frame, at most"),
        ({"failing": b"H5Tequal", "sign": 0}, "cannot compress the dataset's type (float, 2 bytes a value)"),
    ],
    ids=str,
)
@pytest.mark.parametrize("callback", ["can_apply", "set_local"])
def test_datasets_that_cannot_be_read(fake: Fake, callback: str, told: dict[str, Any], text: str) -> None:
    fake.tell(**told)
    assert fake.check(callback) < 0
    assert text in fake.pushed()


@pytest.mark.parametrize(
    ("told", "text"),
    [
        ({"failing": b"H5Pfill_value_defined"}, REPORT + "fill value"),
        ({"failing": b"H5Pget_fill_value", "fill": 2}, "HDF5 cannot convert the fill value"),
        ({"failing": b"H5Pget_fill_time"}, REPORT + "fill time"),
        ({"failing": b"H5Pmodify_filter"}, "HDF5 refused the stored cd_values (H5Pmodify_filter)"),
    ],
    ids=str,
)
def test_cd_values_that_cannot_be_stored(fake: Fake, told: dict[str, Any], text: str) -> None:
    fake.tell(**told)
    assert fake.check("can_apply") == 1
    assert fake.check() < 0
    assert text in fake.pushed()


def test_identifiers_that_are_none(fake: Fake) -> None:
    assert fake.check(dcpl=-1) < 0
    assert "groups cannot be compressed" in fake.pushed()
    assert fake.check(type_id=-1) < 0


def test_another_filter_that_cannot_be_read_is_not_ours(fake: Fake) -> None:
    fake.tell(filters=2, second=52907, failing=b"second")
    assert fake.check() == 0


@pytest.mark.parametrize("told", [{"attributes": 1}, {"attributes": 2}, {"failing": b"H5Pget_attr_creation_order"}])
def test_a_fill_value_that_may_be_hidden(fake: Fake, told: dict[str, Any]) -> None:
    """The netCDF library tracks the order of attributes: only then may the fill value be hidden."""
    fake.words(words(mode=2))
    fake.tell(fill_time=1, **told)
    assert fake.check() == (-1 if told == {"attributes": 1} else 0)
    assert ("a relative bound needs the fill value" in fake.pushed()) == (told == {"attributes": 1})


@pytest.mark.parametrize("callback", ["can_apply", "set_local"])
@pytest.mark.parametrize(
    ("told", "dtype"),
    [
        ({}, "f2"),
        ({"order": 1}, ">f2"),
        ({"exponent": 7, "mantissa_bits": 7, "exponent_bits": 8, "bias": 127}, "bf16"),
        ({"size": 3}, None),
        ({"failing": b"H5Tget_fields"}, None),
        *[({name: value}, None) for name, value in {"sign": 14, "mantissa": 1, "exponent": 9, "norm": 1}.items()],
        *[({name: value}, None) for name, value in {"order": 2, "exponent_bits": 6, "bias": 16}.items()],
        ({"exponent": 9, "mantissa_bits": 9}, None),
        ({"exponent": 7, "mantissa_bits": 7, "exponent_bits": 8}, None),
        ({"exponent": 6, "mantissa_bits": 6, "exponent_bits": 8}, None),
    ],
    ids=str,
)
def test_floats_of_16_bits(fake: Fake, callback: str, told: dict[str, Any], dtype: str | None) -> None:
    fake.tell(**told)
    assert (fake.check(callback, OTHER) >= 0) == (dtype is not None)
    if dtype is None:
        assert "cannot compress the dataset's type (float, " in fake.pushed()
    elif callback == "set_local":
        assert fake.stored()[6] == {"f2": 14, ">f2": 14 | 1 << 8, "bf16": 15}[dtype]


@pytest.mark.parametrize(
    ("told", "fits"),
    [
        ({}, True),
        ({"members": 3}, False),
        ({"offset": 1}, False),
        ({"gap": 5}, False),
        ({"size": 12}, False),
        ({"base": F64_BIG}, False),
        ({"base": 2}, False),
        ({"failing": b"H5Tget_member_type"}, False),
    ],
    ids=str,
)
def test_compounds(fake: Fake, told: dict[str, Any], fits: bool) -> None:
    fake.tell(**{"class": COMPOUND, "size": 8, **told})
    assert (fake.check("can_apply", OTHER) > 0) == fits
    if not fits:
        assert "cannot compress the dataset's type (compound, " in fake.pushed()


@pytest.mark.parametrize(
    ("base", "failing", "dtype"),
    [(F32, b"", 11), (F64_BIG, b"", 12 | 1 << 8), (I8_BIG, b"", 0), (1, b"H5Tget_super", 0)],
)
def test_complex_numbers_of_hdf5_2(fake: Fake, base: int, failing: bytes, dtype: int) -> None:
    fake.tell(**{"class": COMPLEX_CLASS, "base": base, "failing": failing})
    assert (fake.check(type_id=OTHER) == 0) == (dtype != 0)
    assert dtype == 0 or fake.stored()[6] == dtype


@pytest.mark.parametrize("number", [-1, 99])
def test_classes_without_a_name(fake: Fake, number: int) -> None:
    fake.tell(**{"class": number})
    assert fake.check("can_apply", OTHER) < 0
    assert "(unknown class, 2 bytes a value)" in fake.pushed()


@pytest.mark.parametrize(("version", "fits"), [("0.0", False), ("1.8", False), ("1.10", True), ("2.0", True)])
def test_releases(fakes: Fakes, version: str, fits: bool) -> None:
    """0.0: the release cannot be asked for. 1.8 has ids of 32 bits."""
    fake = fakes("-DFAKE_ALL", version=version)
    assert (fake.check("can_apply") > 0) == fits
    assert fake.pushed() == ""


@pytest.mark.parametrize("missing", ["H5open", "H5Pget_chunk"])
def test_a_libhdf5_without_a_function(fakes: Fakes, missing: str) -> None:
    fake = fakes("-DFAKE_ALL", f"-D{missing}={missing}_renamed")
    assert fake.check("can_apply") < 0
    assert fake.pushed() == ""


def test_a_libhdf5_without_what_we_can_do_without(fakes: Fakes) -> None:
    """Floats of 32 and 64 bits and integers are known, and memory comes from malloc."""
    fake = fakes()
    assert fake.check() == 0
    assert round_trip(fake)
    for number in (COMPOUND, ENUMERATION, COMPLEX_CLASS, FLOAT):
        fake.tell(**{"class": number})
        assert fake.check("can_apply", OTHER) < 0
        assert "cannot compress the dataset's type" in fake.pushed()


PEEPS = ("H5Tget_ebias", "H5Tget_norm", "H5Tget_order", "H5Tget_member_type", "H5Tget_member_offset", "H5Tclose")


@pytest.mark.parametrize("missing", PEEPS)
def test_a_libhdf5_without_a_look_into_types(fakes: Fakes, missing: str) -> None:
    """Types that need the function are refused, the others are not."""
    fake = fakes("-DFAKE_ALL", f"-D{missing}={missing}_renamed")
    assert fake.check("can_apply") == 1
    of_floats = missing in PEEPS[:3]
    assert (fake.check("can_apply", OTHER) > 0) == (not of_floats)
    fake.tell(**{"class": COMPOUND, "size": 8})
    assert (fake.check("can_apply", OTHER) > 0) == of_floats
    fake.tell(**{"class": COMPLEX_CLASS})
    assert (fake.check("can_apply", OTHER) > 0) == (missing != "H5Tclose")


@pytest.mark.parametrize("missing", ["H5free_memory", "H5resize_memory"])
def test_half_an_allocator_is_none(fakes: Fakes, missing: str) -> None:
    fake = fakes("-DFAKE_ALL", f"-D{missing}={missing}_renamed")
    fake.tell(failing=b"H5allocate_memory")
    assert fake.check() == 0
    assert round_trip(fake)


@pytest.mark.parametrize("missing", ["H5E_ERR_CLS_g", "H5E_PLINE_g", "H5E_BADVALUE_g"])
def test_an_error_that_cannot_be_pushed_is_one(fakes: Fakes, missing: str) -> None:
    fake = fakes("-DFAKE_ALL", f"-D{missing}={missing}_renamed")
    fake.tell(first=2)
    assert fake.check("can_apply") < 0
    assert fake.pushed() == ""


def run(fake: Fake, flags: int, content: bytes) -> tuple[int, bytes]:
    """The filter on a chunk in memory of malloc: the bytes in use, and what the buffer holds then."""
    libc = ctypes.CDLL(None)
    libc.malloc.restype = c_void_p
    pointer, capacity = c_void_p(libc.malloc(c_size_t(len(content)))), c_size_t(len(content))
    ctypes.memmove(pointer, content, len(content))
    used = fake.c.fake_filter(fake.of.filter, flags, c_size_t(len(content)), byref(capacity), byref(pointer))
    held = ctypes.string_at(pointer, used or len(content))
    libc.free(pointer)
    return used, held


def round_trip(fake: Fake) -> bool:
    values = bytes(32)
    used, frame = run(fake, 0, values)
    return used != 0 and run(fake, 0x100, frame) == (len(values), values)


def test_memory(fake: Fake) -> None:
    """None for a frame or values is an error, none to shrink a frame is not."""
    fake.check()
    _, frame = run(fake, 0, bytes(32))
    fake.tell(failing=b"H5resize_memory")
    assert round_trip(fake)
    fake.tell(failing=b"H5allocate_memory")
    for flags, content, text in (0, bytes(32), "no memory for a frame"), (0x100, frame, "no memory for 32 bytes"):
        assert run(fake, flags, content) == (0, content)
        assert text in fake.pushed()
        assert c_int64.in_dll(fake.c, "fake_minor").value == 35, "H5E_NOSPACE"


@pytest.mark.parametrize(("flags", "size", "minor"), [(0, 31, 32), (0x100, 31, 34), (0x100, 0, 34)])
def test_minor_errors(fake: Fake, flags: int, size: int, minor: int) -> None:
    """H5E_BADVALUE of a chunk of the wrong size, H5E_CANTDECODE of a damaged frame."""
    fake.check()
    assert run(fake, flags, bytes(size))[0] == 0
    assert fake.pushed()
    assert c_int64.in_dll(fake.c, "fake_minor").value == minor


class Codec(ctypes.Structure):
    """NCZ_codec_t."""

    _fields_ = (
        ("version", c_int),
        ("sort", c_int),
        ("id", c_char_p),
        ("hdf5_id", c_uint),
        ("initialize", c_void_p),
        ("finalize", c_void_p),
        ("codec_to_hdf5", ctypes.CFUNCTYPE(c_int, c_char_p, c_void_p, c_void_p)),
        ("hdf5_to_codec", ctypes.CFUNCTYPE(c_int, c_size_t, c_void_p, c_void_p)),
        ("modify_parameters", c_void_p),
    )


def codec_of(fake: Fake) -> Codec | None:
    fake.c.fake_codec.restype = c_void_p
    address = fake.c.fake_codec(ctypes.cast(fake.filter_library.NCZ_get_codec_info, c_void_p))
    return Codec.from_address(address) if address else None


@pytest.mark.parametrize(
    ("version", "known"), [(b"4.7.4", 0), (b"4.8.0", 1), (b"4.10", 1), (b"4.11.0", 0), (b"5.8", 0), (b"none", 0)]
)
def test_releases_of_netcdf(fake: Fake, version: bytes, known: int) -> None:
    fake.tell(nc_version=version)
    assert (codec_of(fake) is not None) == known


NO_REPORT = "netCDF did not report the "


@pytest.mark.parametrize(
    ("told", "status", "text"),
    [
        ({"failing": b"nc_inq_vartype"}, FILTER_ERROR, NO_REPORT + "variable's type"),
        ({"failing": b"nc_inq_var_endian"}, FILTER_ERROR, NO_REPORT + "variable's type"),
        ({"nc_type": 0}, BAD_ARGUMENT, "netCDF's number 0"),
        ({"nc_type": 2}, BAD_ARGUMENT, "netCDF's number 2"),
        ({"nc_type": 12}, BAD_ARGUMENT, "netCDF's number 12"),
        ({"failing": b"nc_inq_varndims"}, FILTER_ERROR, NO_REPORT + "chunk's shape"),
        ({"failing": b"nc_inq_var_chunking"}, FILTER_ERROR, NO_REPORT + "chunk's shape"),
        ({"storage": 1}, BAD_ARGUMENT, "a chunked variable of 1 to 32 dimensions is needed"),
        ({"nc_rank": 0}, BAD_ARGUMENT, "a chunked variable of 1 to 32 dimensions is needed"),
        ({"nc_rank": 33}, BAD_ARGUMENT, "a chunked variable of 1 to 32 dimensions is needed"),
        ({"failing": b"nc_inq_var_fill"}, FILTER_ERROR, NO_REPORT + "fill value"),
        ({"failing": b"nc_inq_var_filter_ids"}, FILTER_ERROR, NO_REPORT + "variable's filters"),
        ({"failing": b"second"}, FILTER_ERROR, NO_REPORT + "variable's filters"),
        ({"nc_filters": 65}, FILTER_ERROR, NO_REPORT + "variable's filters"),
        ({"nc_first": 1}, BAD_ARGUMENT, "filter 1 stands before"),
        ({"nc_type": 4}, BAD_ARGUMENT, "cuszp2 cannot compress dtype i32"),
        ({"words": 2}, BAD_ARGUMENT, "2 words given"),
        ({"dim": 1 << 46}, BAD_ARGUMENT, "bytes in one frame, at most"),
    ],
    ids=str,
)
def test_variables_that_cannot_be_read(fake: Fake, told: dict[str, Any], status: int, text: str) -> None:
    codec = codec_of(fake)
    assert codec is not None
    fake.tell(**told)
    assert fake.c.fake_modify(c_void_p(codec.modify_parameters)) == status
    fake.filter_library.pyf_last_error.restype = c_char_p
    assert text in fake.filter_library.pyf_last_error().decode()


@pytest.mark.parametrize(
    ("told", "fill"),
    [
        ({}, 0x21212121),
        ({"nc_filters": 0}, 0x21212121),
        ({"no_fill": 1}, 0x42424242),
        ({"no_fill": 1, "failing": b"nc_inq_att"}, 0),
        ({"no_fill": 1, "failing": b"nc_get_att"}, 0),
        ({"no_fill": 1, "att_type": 6}, 0),
        ({"no_fill": 1, "att_type": 0}, 0),
        ({"no_fill": 1, "att_type": 12}, 0),
        ({"no_fill": 1, "att_length": 2}, 0),
    ],
    ids=str,
)
@pytest.mark.parametrize("mode", [1, 2])
def test_fill_values_of_netcdf(fake: Fake, told: dict[str, Any], fill: int, mode: int) -> None:
    """In the mode "no fill" an attribute counts, if it is one value of the variable's type."""
    codec = codec_of(fake)
    assert codec is not None
    fake.words(words(mode=mode))
    fake.tell(**told)
    assert fake.c.fake_modify(c_void_p(codec.modify_parameters)) == 0
    without_zeros = 1 << 10 if mode == 2 and fill and "no_fill" in told else 0
    expected = list(stored(words(mode=mode), "f4", [8], fill=fill or None))
    assert fake.stored() == (*expected[:6], expected[6] | without_zeros, *expected[7:])


VARIABLE = ("vartype", "varndims", "var_chunking", "var_fill", "att", "var_endian", "var_filter_ids")


@pytest.mark.parametrize("missing", [*(f"nc_inq_{name}" for name in VARIABLE), "nc_get_att"])
def test_a_libnetcdf_without_a_function(fakes: Fakes, missing: str) -> None:
    fake = fakes("-DFAKE_ALL", f"-D{missing}={missing}_renamed")
    fake.tell(**START)
    codec = codec_of(fake)
    assert codec is not None
    assert fake.c.fake_modify(c_void_p(codec.modify_parameters)) == BAD_ARGUMENT


def test_a_libnetcdf_without_a_release(fakes: Fakes) -> None:
    assert codec_of(fakes("-DFAKE_ALL", "-Dnc_inq_libvers=nc_inq_libvers_renamed")) is None


@pytest.mark.parametrize(("number", "big", "flag"), [(5, 2, 1), (5, 1, 0), (1, 2, 0)])
def test_byte_orders_of_netcdf(fake: Fake, number: int, big: int, flag: int) -> None:
    codec = codec_of(fake)
    assert codec is not None
    fake.words((1, 2, 0))
    fake.tell(nc_type=number, endian=big)
    assert fake.c.fake_modify(c_void_p(codec.modify_parameters)) == 0
    assert fake.stored()[6] >> 8 & 1 == flag


def test_a_registration_that_fails(fake: Fake) -> None:
    fake.tell(failing=b"H5Zregister")
    assert fake.filter_library.pyf_register(str(fake.path).encode()) == 90
    fake.tell(failing=b"")
    assert fake.filter_library.pyf_register(str(fake.path).encode()) == 0


@pytest.mark.parametrize(("given", "type_id"), [("c8", F32), ("f4", OTHER)])
def test_fill_values_of_another_kind_of_type(fake: Fake, given: str, type_id: int) -> None:
    """Stored cd_values of a copied dataset: no fill value becomes one of complex numbers, or of floats of 16 bits."""
    fake.words(stored(words(), given, [8], fill=5) + ((0, 0) if given == "c8" else ()))
    fake.tell(fill_time=1)
    assert fake.check(type_id=type_id) == 0
    assert fake.stored()[7:9] == (0, 0)


def test_a_large_chunk(fake: Fake) -> None:
    """From 4 MiB on, memory for values is asked for in large pages."""
    fake.tell(dim=1 << 20)
    assert fake.check() == 0
    values = bytes(4 << 20)
    used, frame = run(fake, 0, values)
    assert 0 < used < len(values)
    assert run(fake, 0x100, frame) == (len(values), values)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b'{"id": "pyfilter", "cd_values": [1, 1, 1, 0, 1072693248]}', (1, 1, 1, 0, 1072693248)),
        (b'{"cd_values"\t:\n[1 ,\r2, 0]}', (1, 2, 0)),
        (None, None),
        (b"", None),
        (b'{"cd_values"}', None),
        (b'{"cd_values": 1}', None),
        (b'{"cd_values": []}', None),
        (b'{"cd_values": [x]}', None),
        (b'{"cd_values": [1, 2, 4294967296]}', None),
        (b'{"cd_values": [1 2]}', None),
        (b'{"cd_values": [1, 2', None),
        (b'{"cd_values": [1, 2]}', None),
        (b'{"cd_values": [' + b"1, " * 99 + b"1]}", None),
    ],
    ids=str,
)
def test_codecs_of_zarr(fake: Fake, text: bytes | None, found: tuple[int, ...] | None) -> None:
    codec = codec_of(fake)
    assert codec is not None
    count, given = c_size_t(), ctypes.POINTER(c_uint)()
    status = codec.codec_to_hdf5(text, ctypes.addressof(count), ctypes.addressof(given))
    assert status == (0 if found is not None else BAD_ARGUMENT)
    if found is not None:
        assert tuple(given[: count.value]) == found


def test_codecs_for_zarr(fake: Fake) -> None:
    codec = codec_of(fake)
    assert codec is not None
    said, given = c_char_p(), (c_uint * 6)(*words())
    assert codec.hdf5_to_codec(6, ctypes.addressof(given), ctypes.addressof(said)) == 0
    assert said.value == b'{"id": "pyfilter", "cd_values": [%d, %d, %d, %d, %d, %d]}' % words()


def test_words_that_are_no_codec(fake: Fake) -> None:
    codec = codec_of(fake)
    assert codec is not None
    said, one = c_char_p(), c_uint(1)
    assert codec.hdf5_to_codec(1, ctypes.addressof(one), ctypes.addressof(said)) == BAD_ARGUMENT
    assert codec.hdf5_to_codec(3, None, ctypes.addressof(said)) == BAD_ARGUMENT
    assert said.value is None
