# SPDX-License-Identifier: BSD-3-Clause
"""Compound types through HDF5's pipeline: stored words, types, fill values, refusals, and HDF5's own programs."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray
from reference import decoder, records

from .support import (
    FILTER_ID,
    HIERARCHICAL_DELTA,
    LORENZO,
    LOSSLESS,
    RELATIVE,
    cd_values,
    frames,
    halves,
    words,
)

Array = NDArray[Any]
Tool = Callable[..., str]
STAMP = 0x32465950  # "PYF2"
PACKED = np.dtype([("id", "i8"), ("x", "f4"), ("y", "f4"), ("t", "f8"), ("flag", "u1")])
ALL = np.dtype(
    [
        *(("id", ">i8"), ("x", "<f4"), ("y", ">f4"), ("t", "<f8"), ("flag", "?"), ("v", ">f4", (3,))),
        *(("m", "<f8", (2, 2)), ("s", "S5"), ("h", "<f2"), ("c", ">c8"), ("raw", "V3"), ("ld", "g")),
        ("in", [("a", "<f4"), ("b", "<i2"), ("deep", [("z", "<f8")])]),
        ("rows", [("p", "<f4"), ("q", "<i4")], (2,)),
    ],
    align=True,
)
#: a bound for each field that has one, and the user's words for it
BOUNDS = {"x": 1e-3, "y": 2e-3, "v": 1e-2, "m": 1e-3, "c": 1e-2, "h": 0.1, "in.a": 1e-3}


def user(fields: Mapping[str, tuple[int, ...]], others: int = 0) -> tuple[int, ...]:
    """The user form of cd_values of records (docs/cd_values.md), from the words of each field's codec."""
    found = [2, len(fields), others]
    for name, given in fields.items():
        text = name.encode()
        padded = text + bytes(-len(text) % 4)
        full = (*given, *(0,) * (6 - len(given)))
        found += [full[1] | full[2] << 8 | len(text) << 16, *full[3:6], *struct.unpack(f"<{len(padded) // 4}I", padded)]
    return tuple(found)


def compressed(given: tuple[int, ...]) -> dict[str, Any]:
    return {"compression": FILTER_ID, "compression_opts": given}


def made(dtype: np.dtype[Any], shape: tuple[int, ...], seed: int = 0) -> Array:
    """Records with waves in the floats and noise in everything else, padding too."""
    rng = np.random.default_rng(seed)
    size = int(np.prod(shape))
    found = np.frombuffer(rng.bytes(size * dtype.itemsize), dtype).reshape(shape).copy()
    wave = np.sin(np.arange(size) / 9).reshape(shape)

    def fill(records: Array) -> None:
        for name in records.dtype.names or ():
            field = records[name]
            if field.dtype.names is not None:
                fill(field)
            elif field.dtype.kind in "fc":
                field[...] = wave.reshape(*shape, *(1,) * (field.ndim - len(shape))) * 7
            elif field.dtype.kind == "b":
                field[...] = wave > 0

    filled: Array = found
    fill(filled)
    return filled


def part(records: Array, name: str) -> Array:
    found: Array = records
    for member in name.split("."):
        found = found[member]
    return found


def leaves(dtype: np.dtype[Any], before: str = "") -> list[str]:
    """All fields, those of compounds in it by their full names."""
    found = []
    for name in dtype.names or ():
        inner = dtype[name]
        found += leaves(inner, f"{before}{name}.") if inner.names is not None else [before + name]
    return found


def check(given: Array, got: Array, bounds: Mapping[str, float]) -> None:
    """Every finite value within its field's bound; all else bit for bit."""
    assert given.shape == got.shape
    for name in leaves(given.dtype):
        x, y = part(given, name), part(got, name)
        if name not in bounds:
            assert x.tobytes() == y.tobytes(), name
            continue
        for a, b in ((x.real, y.real), (x.imag, y.imag)) if x.dtype.kind == "c" else ((x, y),):
            finite = np.isfinite(a)
            assert np.abs(a[finite].astype("f8") - b[finite].astype("f8")).max(initial=0) <= bounds[name], name
            assert a[~finite].tobytes() == b[~finite].tobytes(), name


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize(("shape", "chunk"), [((1,), (1,)), ((31,), (33,)), ((100,), (33,)), ((20, 30), (7, 16))])
def test_every_kind_of_field(tmp_path: Path, shape: tuple[int, ...], chunk: tuple[int, ...], aligned: bool) -> None:
    dtype = ALL if aligned else np.dtype([(name, ALL[name]) for name in ALL.names or ()])
    values = made(dtype, shape)
    values["x"][..., 0], values["in"]["a"][..., 0] = np.nan, np.inf
    given = user({name: words(bound) for name, bound in BOUNDS.items()})
    with h5py.File(tmp_path / "a.h5", "w") as file:
        limits = tuple(max(pair) for pair in zip(shape, chunk, strict=True))
        dataset = file.create_dataset("x", shape, dtype, maxshape=limits, chunks=chunk, **compressed(given))
        dataset[...] = values
    with h5py.File(tmp_path / "a.h5") as file:
        got = file["x"][...]
        assert got.dtype == dtype
        check(values, got, BOUNDS)
        raw = np.empty(shape, dtype)
        file["x"].id.read(h5py.h5s.ALL, h5py.h5s.ALL, raw)
        for frame in frames(file["x"]):
            assert frame[:5] == b"\x89PYF\x09"
            columns = decoder.decode(frame)
            assert columns.dtype.itemsize == dtype.itemsize
            assert records.parse_records(frame).dims == chunk


def test_stored_words(tmp_path: Path) -> None:
    """docs/cd_values.md, word by word; applied again they stay, and an unstamped copy of them is the same request."""
    dtype = np.dtype({"names": ["a", "v", "s"], "formats": [">f4", "(2,3)<f8", "S3"], "offsets": [0, 8, 56]})
    fill = np.zeros((), dtype)
    fill["a"], fill["v"] = -999, 1.5
    asked = {"a": words(0.5), "v": words(1e-4, RELATIVE, LORENZO)}
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = file.create_dataset(
            "x", (5, 6), dtype, chunks=(5, 6), fillvalue=fill[()], **compressed(user(asked, 1))
        )
        settings = user(asked, 1)[1:]
        number = 0xC479C000
        columns: tuple[int, ...] = (1 | 0x100 | 0x200 | 1 << 16, number)  # big-endian, a fill value, field 1
        columns += (0, 4)  # padding
        columns += (2 | 0x200 | 0x800 | 2 << 16, 2, 2, 3, *halves(0x3FF8000000000000))  # an array of rank 2
        columns += (0, 3)
        assert cd_values(dataset) == (STAMP, *settings, 2 | 4 << 16, *halves(5), *halves(6), *columns)
        again = file.create_dataset("y", (5, 6), dtype, chunks=(5, 6), **compressed(cd_values(dataset)))
        assert cd_values(again) == (STAMP, *settings, 2 | 4 << 16, *halves(5), *halves(6), *unfilled(columns))
        other = np.dtype([("s", "S3"), ("a", "<f4"), ("v", "<f8"), ("new", "i4")])
        moved = file.create_dataset("z", (4,), other, chunks=(4,), **compressed(cd_values(dataset)))
        columns = (0, 3, 1 | 1 << 16, 2 | 2 << 16, 7)
        assert cd_values(moved) == (STAMP, *settings, 1 | 4 << 16, *halves(4), *columns)


def unfilled(columns: tuple[int, ...]) -> tuple[int, ...]:
    """The columns of `test_stored_words` without their fill values."""
    return (columns[0] & ~0x200, *columns[2:4], columns[4] & ~0x200, *columns[5:8], *columns[10:])


def test_fill_values(tmp_path: Path) -> None:
    """Of each field its own: bit for bit, out of the range of a relative bound, in values and at edges."""
    values = made(PACKED, (70,))
    fill = np.zeros((), PACKED)
    fill["x"], fill["y"], fill["t"] = 1e30, np.nan, -5
    values["x"][3], values["y"][4], values["t"][5] = fill["x"], fill["y"], fill["t"]
    asked = {name: words(1e-3, RELATIVE, HIERARCHICAL_DELTA) for name in ("x", "y", "t")}
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=values, chunks=(64,), fillvalue=fill[()], **compressed(user(asked)))
    with h5py.File(tmp_path / "a.h5") as file:
        got = file["x"][...]
        check(values, got, dict.fromkeys("xyt", 0.015))  # 1e-3 of 14
        for name, place in (("x", 3), ("y", 4), ("t", 5)):
            assert got[name][place].tobytes() == fill[name].tobytes()
        last = decoder.decode(frames(file["x"])[1])
        assert last["f1"][6:].tobytes() == np.full(58, 1e30, "f4").tobytes()


@pytest.mark.parametrize("cached", [False, True], ids=["not cached", "cached"])
def test_written_in_parts(tmp_path: Path, cached: bool) -> None:
    """Values that are not written again keep the error that they have, under a bound that follows the range."""
    rng = np.random.default_rng(1)
    path = tmp_path / "a.h5"
    values = made(PACKED, (1000,))
    for name in ("x", "y", "t"):
        values[name] = rng.normal(size=1000).cumsum()
    asked = {"x": words(1e-3, RELATIVE, HIERARCHICAL_DELTA), "t": words(1e-3, codec=7)}  # and one that is predicted
    with h5py.File(path, "w") as file:
        file.create_dataset("p", (1000,), PACKED, chunks=(1000,), **compressed(user(asked)))
    for begin in range(0, 1000, 50):
        with h5py.File(path, "r+", rdcc_nbytes=1 << 20 if cached else 0) as file:
            file["p"][begin : begin + 25] = values[begin : begin + 25]
            file.flush()
            file["p"][begin + 25 : begin + 50] = values[begin + 25 : begin + 50]
    with h5py.File(path) as file:
        check(values, file["p"][...], {"x": 1e-3 * float(np.ptp(values["x"])), "t": 1e-3})


def test_one_field_is_changed(tmp_path: Path) -> None:
    """A program reads records, changes one field and writes them back: the others do not move, however often."""
    rng = np.random.default_rng(2)
    values = made(PACKED, (2000,))
    for name in ("x", "y", "t"):
        values[name] = rng.normal(size=2000).cumsum()
    asked = {name: words(1e-3, RELATIVE, HIERARCHICAL_DELTA) for name in ("x", "y", "t")}
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("p", data=values, chunks=(500,), **compressed(user(asked)))
    for turn in range(12):
        with h5py.File(path, "r+") as file:
            now = file["p"][...]
            now["y"] = rng.normal(size=2000).cumsum() * (turn + 1)
            values["y"] = now["y"]
            file["p"][...] = now
    with h5py.File(path) as file:
        got = file["p"][...]
    for begin in range(0, 2000, 500):
        cut = slice(begin, begin + 500)
        check(values[cut], got[cut], {name: 1e-3 * float(np.ptp(values[name][cut])) for name in ("x", "y", "t")})


def test_a_copy_moves_nothing(tmp_path: Path, tool: Tool) -> None:
    """h5repack gives the stored words to a new dataset; other chunks, too."""
    values = made(ALL, (300,))
    given = user({name: words(bound) for name, bound in BOUNDS.items()})
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("p", data=values, chunks=(100,), **compressed(given))
    with h5py.File(tmp_path / "a.h5") as file:
        first, asked = file["p"][...], cd_values(file["p"])
    for name, options in (("same", ()), ("others", ("-l", "p:CHUNK=64")), ("none", ("-f", "NONE"))):
        tool("h5repack", *options, tmp_path / "a.h5", tmp_path / f"{name}.h5")
        with h5py.File(tmp_path / f"{name}.h5") as file:
            got = file["p"][...]
            assert (FILTER_ID in [int(key) for key in file["p"]._filters]) is (name != "none")
            if name == "others":
                assert cd_values(file["p"])[: len(given)] == (STAMP, *given[1:])
            if name == "same":
                assert cd_values(file["p"]) == asked
        check(first, got, {})


def test_h5repack_compresses(tmp_path: Path, tool: Tool) -> None:
    values = made(PACKED, (300,))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("p", data=values, chunks=(100,))
    given = user({"x": words(1e-3), "t": words(1e-2)})
    option = f"p:UD={FILTER_ID},0,{len(given)},{','.join(map(str, given))}"
    tool("h5repack", "-f", option, tmp_path / "a.h5", tmp_path / "b.h5")
    with h5py.File(tmp_path / "b.h5") as file:
        assert cd_values(file["p"])[0] == STAMP
        check(values, file["p"][...], {"x": 1e-3, "t": 1e-2})


def test_h5dump(tmp_path: Path, tool: Tool) -> None:
    values = made(PACKED, (40,))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("p", data=values, chunks=(16,), **compressed(user({"x": words(0.25), "y": words(0.25)})))
    with h5py.File(tmp_path / "a.h5") as file:
        got = file["p"][...]
    text = tool("h5dump", "-d", "/p", "-m", "%.17g", "-y", "-w", "1", tmp_path / "a.h5").partition("DATA {")[2]
    numbers = np.array([float(number) for number in re.findall(r"-?\b\d[\d.e+-]*", text)]).reshape(40, 5)
    for column, name in enumerate(("id", "x", "y", "t", "flag")):
        assert np.array_equal(numbers[:, column], got[name].astype("f8")), name


VARIABLE = [
    (np.dtype([("x", "f4"), ("s", h5py.string_dtype())]), "field 's' is text of variable length"),
    (np.dtype([("x", "f4"), ("r", h5py.ref_dtype)]), "field 'r' is a reference"),
    (np.dtype([("x", "f4"), ("v", h5py.vlen_dtype("i4"))]), "field 'v' is of variable length"),
    (np.dtype([("x", "f4"), ("n", [("r", h5py.ref_dtype)])]), r"field 'n\.r' is a reference"),
    (np.dtype([("x", "f4"), ("n", [("r", h5py.ref_dtype)], (2,))]), r"field 'n\.r' is a reference"),
]
REFUSED = [
    (PACKED, user({"q": words()}), "a codec is given for field 'q', but the dataset's type has: id, x, y, t, flag"),
    (PACKED, user({"id": words()}), "field 'id': cuszp2 cannot compress dtype i64"),
    (PACKED, user({"x": words(-1)}), "field 'x': the bound .* is -1"),
    (PACKED, user({"x": words(codec=99)}), "field 'x': .*unknown codec"),
    (PACKED, user({"x": words(mode=3)}), "field 'x': cuszp2 does not take bound mode 3"),
    (PACKED, user({"x": (1, LOSSLESS, 0, 0, 7)}), "field 'x': a bound of .* without a mode"),
    (PACKED, user({"": words()}), "a field without a name"),
    (PACKED, (2,), "too few words"),
    (PACKED, (2, 1, 0), "within a field"),
    (PACKED, (2, 300, 0), "more fields than words"),
    (PACKED, (*user({"x": words()}), 5), "1 words behind the last field"),
    (PACKED, (*user({"x": words()})[:-1], 0x100 | ord("x")), "padded with zeros"),
    (PACKED, user({}, others=7), "lossless: .*7"),
    (ALL, user({"flag": words(1, codec=3)}), "field 'flag': it is an enumeration"),
    (ALL, user({"s": words()}), "field 's': a bound needs numbers"),
    (ALL, user({"rows": words()}), "field 'rows': a bound needs numbers"),
    (ALL, user({"in": words(), "in.a": words()}), r"field 'in\.a' is given two codecs, for 'in' and for 'in\.a'"),
    (np.dtype("f4"), user({"x": words()}), "for compound types, the dataset's type is float: give the codec itself"),
    (np.dtype("c8"), user({}), "complex numbers are no records"),
    (np.dtype([(f"field_{n}", "f4") for n in range(60)]), user({f"field_{n}": words() for n in range(36)}), "too many"),
]


@pytest.mark.parametrize(("dtype", "text"), VARIABLE, ids=[text for _, text in VARIABLE])
def test_fields_that_point_elsewhere(tmp_path: Path, dtype: np.dtype[Any], text: str) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file, pytest.raises(ValueError, match=text):
        file.create_dataset("x", (10,), dtype, chunks=(5,), **compressed(user({"x": words()})))


@pytest.mark.parametrize(("dtype", "given", "text"), REFUSED, ids=[text for *_, text in REFUSED])
def test_refusals(tmp_path: Path, dtype: np.dtype[Any], given: tuple[int, ...], text: str) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file, pytest.raises(ValueError, match=text):
        file.create_dataset("x", (10,), dtype, chunks=(5,), **compressed(given))


def test_fill_values_of_an_array_differ(tmp_path: Path) -> None:
    dtype = np.dtype([("v", "f4", (3,))])
    fill = np.zeros((), dtype)
    fill["v"] = 1, 2, 3
    with h5py.File(tmp_path / "a.h5", "w") as file:
        with pytest.raises(ValueError, match="field 'v': its fill value has different elements"):
            file.create_dataset("x", (9,), dtype, chunks=(5,), fillvalue=fill[()], **compressed(user({"v": words()})))
        file.create_dataset("y", (9,), dtype, chunks=(5,), fillvalue=fill[()], **compressed(user({})))
        assert file["y"][...].tobytes() == np.full(9, fill).tobytes()


def test_damaged_chunks(tmp_path: Path) -> None:
    """Every flipped byte of header and table is an error, and a frame of values or of other records is refused."""
    values = made(PACKED, (50,))
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=values, chunks=(50,), **compressed(user({"x": words()})))
        file.create_dataset("f", data=values["x"], chunks=(50,), **{**compressed(words())})
        file.create_dataset("o", data=values[["x"]], chunks=(50,), **compressed(user({"x": words()})))
    with h5py.File(path) as file:
        frame, of_values, of_others = (frames(file[name])[0] for name in "xfo")
    head = 8 * frame[7] + 16 * 5
    bad = [frame[:at] + bytes([frame[at] ^ 1]) + frame[at + 1 :] for at in range(head)]
    bad += [of_values, of_others, frame[:-1], frame + b"\0", frame[:head], b"\x89PYF\x09\0\1\6\0"]
    for content in bad:
        with h5py.File(path, "r+") as file:
            file["x"].id.write_direct_chunk((0,), content)
        with h5py.File(path) as file, pytest.raises(OSError, match=r"filter returned failure|pyfilter"):
            file["x"][...]


def test_chunks_of_other_fields(tmp_path: Path) -> None:
    """A frame whose columns are of other sizes, types or byte orders is refused, even if records are as large."""
    kinds = [
        np.dtype([("a", "f4", (2,)), ("b", "f4")]),
        np.dtype([("a", "f4"), ("b", "f4", (2,))]),
        np.dtype([("a", "f4", (2,)), ("b", ">f4")]),
        np.dtype([("a", "f4", (2,)), ("b", "i4")]),
        np.dtype([("a", "f4", (2,)), ("b", "V4")]),
    ]
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for number, dtype in enumerate(kinds):
            file.create_dataset(str(number), data=made(dtype, (20,)), chunks=(20,), **compressed(user({})))
    with h5py.File(tmp_path / "a.h5") as file:
        contents = [frames(file[str(number)])[0] for number in range(len(kinds))]
    for number, content in enumerate(contents[1:], 1):
        with h5py.File(tmp_path / "a.h5", "r+") as file:
            file["0"].id.write_direct_chunk((0,), content)
        with h5py.File(tmp_path / "a.h5") as file, pytest.raises(OSError, match=r"filter returned failure|fields"):
            pytest.fail(f"kind {number}: {file['0'][...]}")


def test_complex_numbers_stay_as_they_are(tmp_path: Path) -> None:
    """A pair of floats with any names takes one codec for both, and records where the words say so."""
    pair = np.dtype([("a", "f4"), ("b", "f4")])
    values = made(pair, (50,))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("one", data=values, chunks=(50,), **compressed(words()))
        file.create_dataset("two", data=values, chunks=(50,), **compressed(user({"a": words()})))
    with h5py.File(tmp_path / "a.h5") as file:
        assert frames(file["one"])[0][9] == 11
        check(values, file["one"][...], {"a": 1e-3, "b": 1e-3})
        check(values, file["two"][...], {"a": 1e-3})


def test_netcdf_reads_compounds(tmp_path: Path, script: Callable[..., str]) -> None:
    """A variable of a compound type, written by h5py, read by netCDF4 with the plugin alone."""
    pytest.importorskip("netCDF4")
    values = made(PACKED, (40,))
    given = compressed(user({"x": words(0.25), "t": words(0.25)}))
    with h5py.File(tmp_path / "a.nc", "w") as file:
        file.create_dataset("p", data=values, chunks=(16,), track_order=True, **given).make_scale("n")
        got = file["p"][...]
    text = """
import sys, netCDF4
with netCDF4.Dataset(sys.argv[1]) as file:
    found = file["p"][...]
    print(b"".join(found[name].tobytes() for name in found.dtype.names).hex())
"""
    found = bytes.fromhex(script(text, tmp_path / "a.nc"))
    assert found == b"".join(got[name].tobytes() for name in PACKED.names or ())
    check(values, got, {"x": 0.25, "t": 0.25})


def test_nccopy(tmp_path: Path, tool: Tool) -> None:
    """It brings the stored words of a variable, or compresses one by words of a user."""
    values = made(PACKED, (40,))
    given = user({"x": words(1e-3), "t": words(1e-2)})
    for name, more in (("a", compressed(given)), ("plain", {})):
        with h5py.File(tmp_path / f"{name}.nc", "w", track_order=True) as file:
            file["kind"] = PACKED  # netCDF's types have names
            made_of: dict[str, Any] = {"chunks": (16,), "track_order": True, **more}
            file.create_dataset("p", (40,), file["kind"], **made_of)[...] = values
    tool("nccopy", tmp_path / "a.nc", tmp_path / "b.nc")
    tool("nccopy", "-F", f"p,{FILTER_ID},{','.join(map(str, given))}", tmp_path / "plain.nc", tmp_path / "c.nc")
    for name in "bc":
        with h5py.File(tmp_path / f"{name}.nc") as file:
            assert cd_values(file["p"])[: len(given)] == (STAMP, *given[1:])
            check(values, file["p"][...], {"x": 1e-3, "t": 1e-2})
