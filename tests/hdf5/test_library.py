# SPDX-License-Identifier: BSD-3-Clause
"""The shared library as the loader sees it: what it shows, what it needs; and its filter class called directly."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
import zlib
from pathlib import Path

import numpy as np
import pytest
from reference.library import Library

from .filter_calls import DECODE, Chunk, FilterClass
from .support import FILTER_ID, STAMP, field, lossless, run_tool, stored, words

ROOT = Path(__file__).resolve().parents[2]
ALLOWED = {"H5PLget_plugin_type", "H5PLget_plugin_info", "NCZ_get_codec_info"}
SYSTEM = ("libc.so", "libm.so", "libpthread.so", "libdl.so", "librt.so", "ld-linux", "libgcc_s.so")
SANITIZERS = ("libasan.so", "libubsan.so", "libstdc++.so")


def read(*command: str | Path) -> str:
    return run_tool(str(command[0]), *command[1:], env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"})


def needed(path: Path) -> list[str]:
    lines = read("readelf", "-dW", path).splitlines()
    return [line.split("[")[1].rstrip("]") for line in lines if "(NEEDED)" in line]


def test_only_the_entry_points_are_visible(library_path: Path) -> None:
    lines = read("nm", "-D", "--defined-only", library_path).splitlines()
    shown = {line.split()[-1].split("@")[0] for line in lines}
    assert shown >= ALLOWED
    assert {name for name in shown - ALLOWED if not name.startswith("pyf_")} == set()


def test_the_functions_of_the_header_are_exported(library_path: Path) -> None:
    header = (ROOT / "filter" / "c_api.h").read_text()
    declared = set(re.findall(r"^PYF_API .*?\b(pyf_\w+)\(", header, re.MULTILINE))
    lines = read("nm", "-D", "--defined-only", library_path).splitlines()
    assert declared == {line.split()[-1] for line in lines if line.split()[-1].startswith("pyf_")}
    assert len(declared) >= 14


def test_no_libhdf5_no_libpython_no_cuda(library_path: Path) -> None:
    libraries = needed(library_path)
    if any(name.startswith(SANITIZERS) for name in libraries):
        pytest.skip("a build with sanitizers")
    assert [name for name in libraries if not name.startswith(SYSTEM)] == []


def test_it_stays_in_memory(library_path: Path) -> None:
    assert "NODELETE" in read("readelf", "-dW", library_path)


def test_no_undefined_symbols_of_hdf5_or_python(library_path: Path) -> None:
    undefined = read("nm", "-D", "--undefined-only", library_path).split()
    assert [name for name in undefined if name.startswith(("H5", "Py", "_Py", "cu"))] == []
    forbidden = {"exit", "_exit", "abort", "printf", "puts", "fprintf", "__printf_chk", "__fprintf_chk", "perror"}
    if any(name.startswith(SANITIZERS) for name in needed(library_path)):
        pytest.skip("a build with sanitizers")
    # abort is libstdc++'s, linked in for the throw that guard.hpp catches
    assert {name.split("@")[0] for name in undefined} & (forbidden - {"abort"}) == set()


def test_no_path_of_the_builder_is_in_it(library_path: Path) -> None:
    if ".debug_info" in read("readelf", "-SW", library_path):
        pytest.skip("a build for debugging")
    assert str(ROOT).encode() not in library_path.read_bytes()


@pytest.mark.parametrize(("compiler", "standard"), [("cc", "c99"), ("cc", "c11"), ("c++", "c++98"), ("c++", "c++17")])
def test_the_header_compiles(tmp_path: Path, compiler: str, standard: str) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    source = tmp_path / ("use.c" if compiler == "cc" else "use.cpp")
    source.write_text('#include "filter/c_api.h"\nint main(void) { return pyf_abi_version() != PYF_ABI_VERSION; }\n')
    flags = [f"-std={standard}", "-Wall", "-Wextra", "-Werror", "-pedantic", "-Wno-long-long"]
    command = [compiler, *flags, "-I", str(ROOT), "-c", str(source), "-o", str(tmp_path / "use.o")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_class_table(library: Library, filter_class: FilterClass) -> None:
    assert library.c.H5PLget_plugin_type() == 0
    assert (filter_class.version, filter_class.id) == (1, FILTER_ID)
    assert (filter_class.encoder_present, filter_class.decoder_present) == (1, 1)
    assert filter_class.name.startswith(b"pyfilter")
    assert filter_class.can_apply
    assert filter_class.set_local


SHAPE = (64, 64)


def test_round_trip_without_hdf5(filter_class: FilterClass) -> None:
    values = np.repeat(np.arange(64, dtype="f4"), 64).tobytes()
    chunk, settings = Chunk(values), stored(lossless(), "f4", SHAPE)
    assert 0 < chunk.call(filter_class, 0, settings) < len(values)
    assert chunk.capacity.value < len(values), "the idle half of the buffer was not given back"
    assert chunk.call(filter_class, DECODE, settings) == len(values)
    assert chunk.content == values
    assert chunk.capacity.value == len(values)


@pytest.mark.parametrize("flags", [0, DECODE])
@pytest.mark.parametrize("settings", [(), (1, 2, 0), words(), (7,), (STAMP ^ 1, *stored(words(), "f4", SHAPE)[1:])])
def test_without_the_stamp_bytes_pass_through(filter_class: FilterClass, flags: int, settings: tuple[int, ...]) -> None:
    chunk = Chunk(b"no numbers at all")
    before = chunk.pointer.value
    assert chunk.call(filter_class, flags, settings) == 17
    assert (chunk.content, chunk.pointer.value) == (b"no numbers at all", before)


GOOD = stored(words(), "f4", SHAPE)
BROKEN = [
    (GOOD[:9], "9 words for a chunk of rank 0, must be 10"),
    (GOOD[:-1], "13 words for a chunk of rank 2, must be 10"),
    ((*GOOD, 0), "15 words for a chunk of rank 2"),
    ((*GOOD[:9], 6, *(1, 0) * 6), "for a chunk of rank 6, .* at most 5"),
    ((*GOOD[:9], 2**31, *GOOD[10:]), "for a chunk of rank 2147483648"),
    ((*GOOD[:10], 0, 0, 64, 0), "chunk dimension 0 is 0"),
    ((*GOOD[:10], 0, 2**31, 0, 2**31), "chunk dimension [01] is"),
    ((*GOOD[:6], 0, *GOOD[7:]), "word 6 is 0"),
    ((*GOOD[:6], 16, *GOOD[7:]), "word 6 is 0x10"),
    ((*GOOD[:6], 1 | 1 << 11, *GOOD[7:]), "word 6 is 0x801"),
    ((*GOOD[:7], 1, *GOOD[8:]), "fill value 0x1 does not fit"),
    ((*GOOD[:6], 1 | 1 << 9, 0, 1, *GOOD[9:]), "fill value 0x100000000 does not fit"),
    ((STAMP + (2 << 24), *GOOD[1:]), "layout version '3', pyfilter .* knows '1' and '2': a newer pyfilter is needed"),
    ((GOOD[0], 256, *GOOD[2:]), "codec 256 and bound mode 1, allowed: 0 to 255"),
]


@pytest.mark.parametrize("flags", [0, DECODE])
@pytest.mark.parametrize(("settings", "text"), BROKEN)
def test_broken_stored_words(
    library: Library, filter_class: FilterClass, flags: int, settings: tuple[int, ...], text: str
) -> None:
    """As only a damaged or hostile file has them. The buffer stays as it was."""
    chunk = Chunk(bytes(64 * 64 * 4))
    before = chunk.pointer.value, chunk.capacity.value
    assert chunk.call(filter_class, flags, settings) == 0
    with pytest.raises(AssertionError, match=text):
        raise AssertionError(library.c.pyf_last_error().decode())
    assert (chunk.pointer.value, chunk.capacity.value, chunk.content) == (*before, bytes(64 * 64 * 4))


@pytest.mark.parametrize("size", [0, 1, 64 * 64 * 4 - 4, 64 * 64 * 4 + 4])
def test_chunks_of_another_size_are_not_encoded(library: Library, filter_class: FilterClass, size: int) -> None:
    chunk = Chunk(bytes(64 * 64 * 4 + 4))
    assert chunk.call(filter_class, 0, GOOD, size) == 0
    assert f"a chunk of {size} bytes, the stored cd_values say 16384" in library.c.pyf_last_error().decode()


def test_a_codec_of_the_future_is_named_by_its_frame_alone(filter_class: FilterClass) -> None:
    """A decoder does not need the settings: only an encoder has to know the codec."""
    values, chunk = field(SHAPE).tobytes(), Chunk(field(SHAPE).tobytes())
    assert chunk.call(filter_class, 0, stored(lossless(), "f4", SHAPE)) > 0
    unknown = (STAMP, 99, *stored(lossless(), "f4", SHAPE)[2:])
    assert chunk.call(filter_class, DECODE, unknown) == len(values)
    assert chunk.content == values
    assert chunk.call(filter_class, 0, unknown) == 0


def test_memory_that_cannot_be_had_is_an_error(filter_class: FilterClass, library: Library) -> None:
    """A frame and cd_values that agree on a chunk of 2^50 bytes."""
    dims = 2**25, 2**22
    chunk = Chunk(np.zeros(SHAPE).tobytes())
    assert chunk.call(filter_class, 0, stored(lossless(), "f8", SHAPE)) > 0
    frame = bytearray(chunk.content)
    struct.pack_into("<QQ", frame, 56, *dims)
    frame[12:16] = bytes(4)
    frame[12:16] = struct.pack("<I", zlib.crc32(frame[:72]))
    hostile = Chunk(bytes(frame))
    assert hostile.call(filter_class, DECODE, stored(lossless(), "f8", dims)) == 0
    assert hostile.content == frame
    assert hostile.call(filter_class, 0, stored(lossless(), "f8", dims)) == 0
    assert library.c.pyf_last_error()
