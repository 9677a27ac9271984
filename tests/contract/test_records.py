# SPDX-License-Identifier: BSD-3-Clause
"""Records: each field within its own bound in exact arithmetic, everything else bit for bit, of any structured type."""

from __future__ import annotations

import itertools
import math
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from reference import decoder
from reference import records as reference

import pyfilter
from pyfilter import Cuszp2
from pyfilter._lib import library
from pyfilter.records import fields as record_fields

from .judge import bits, first_beyond, float_not_above

Array = NDArray[Any]
SHAPES = ((), (0,), (1,), (31,), (33,), (0, 3), (1, 33), (31, 2), (3, 5, 9))
FLOATS = ("<f4", ">f4", "<f8", ">f8", "<f2", ">f2", "<c8", ">c16")
OTHERS = ("i1", "u1", "<i2", ">u2", "<i4", ">i8", "u8", "?", "S1", "S7", "V3", "<M8[s]")
SPECIALS = (math.nan, math.inf, -math.inf, -0.0, 1e30)


@st.composite
def dtypes(draw: st.DrawFn, deep: bool = True) -> np.dtype[Any]:
    """Packed, as C lays it out, or with gaps; some fields arrays, some compounds."""
    kinds: list[Any] = []
    for _ in range(draw(st.integers(1, 5))):
        kind: Any = draw(st.sampled_from(FLOATS + OTHERS))
        choice = draw(st.integers(0, 9))
        if choice == 0 and deep:
            kind = draw(dtypes(deep=False))
        elif choice < 3:
            kind = (kind, draw(st.sampled_from([(1,), (3,), (2, 2)])))
        kinds.append(np.dtype(kind))
    named = [(f"n{number}" if number % 2 else f"Größe {number}", kind) for number, kind in enumerate(kinds)]
    if not deep or draw(st.booleans()):
        return np.dtype(named, align=draw(st.booleans()))
    gaps = draw(st.lists(st.integers(0, 9), min_size=len(kinds) + 1, max_size=len(kinds) + 1))
    ends = list(itertools.accumulate(gap + kind.itemsize for gap, kind in zip(gaps, kinds, strict=False)))
    offsets = [end - kind.itemsize for end, kind in zip(ends, kinds, strict=True)]
    names = [name for name, _ in named]
    return np.dtype({"names": names, "formats": kinds, "offsets": offsets, "itemsize": ends[-1] + gaps[-1]})


def codecs(dtype: np.dtype[Any]) -> st.SearchStrategy[pyfilter.Codec]:
    """Codecs that take floats of a type, with every kind of bound."""
    bounds = st.sampled_from([{"absolute": 1e-2}, {"relative": 1e-3}, {"psnr": 50.0}])
    of_each: dict[str, Any] = {"pointwise_relative": 1e-2}
    kinds: list[Any] = [pyfilter.Cuszp2, pyfilter.HierarchicalDelta, pyfilter.Lorenzo]
    return st.one_of(
        st.builds(lambda kind, bound: kind(**bound), st.sampled_from(kinds), bounds),
        st.just(pyfilter.HierarchicalDelta(**of_each)),
        st.just(pyfilter.Lossless(effort="ratio")),
    )


@st.composite
def requests(draw: st.DrawFn) -> tuple[Array, pyfilter.Compound, Any]:
    """Records, codecs for some of their floats, and perhaps a fill value that is among them."""
    dtype = draw(dtypes())
    shape = draw(st.sampled_from(SHAPES))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    values = np.frombuffer(rng.bytes(math.prod(shape) * dtype.itemsize), dtype).reshape(shape).copy()
    chosen: dict[str, pyfilter.Codec] = {}
    fields = record_fields.fields_of(dtype)
    smooth = draw(st.booleans())
    for field in fields:
        if field.dtype.kind == "b":
            field.of(values)[...] = rng.integers(0, 2, (*shape, *field.shape)).astype(bool)
        if field.dtype.kind not in "fc":
            continue
        part = field.of(values)
        noise = rng.standard_normal(part.shape)
        part[...] = np.cumsum(noise.reshape(-1)).reshape(part.shape) if smooth else 50 * noise
        if part.dtype.kind == "c":
            part.imag = noise
        if part.size and draw(st.booleans()):
            with np.errstate(over="ignore"):
                part.reshape(-1)[draw(st.integers(0, part.size - 1))] = draw(st.sampled_from(SPECIALS))
        if draw(st.booleans()):
            chosen[field.name] = draw(codecs(field.dtype))
    fill = None
    if values.size and draw(st.booleans()):
        fill = values.reshape(-1)[draw(st.integers(0, values.size - 1))].copy()
        for field in fields:
            if field.shape and field.is_number:
                field.of(fill)[...] = np.asarray(field.of(fill)).reshape(-1)[0]
        values.reshape(-1)[0] = fill
    others = pyfilter.Lossless(effort=draw(st.sampled_from(["fast", "ratio"])))
    return values, pyfilter.Compound(chosen, others=others), fill


def parts(values: Array) -> Array:
    """Real and imaginary parts of complex numbers, flat and in this machine's byte order."""
    flat = np.ascontiguousarray(values.astype(values.dtype.newbyteorder("="))).reshape(-1)
    return flat.view(f"f{flat.dtype.itemsize // 2}") if flat.dtype.kind == "c" else flat


def check_field(given: Array, got: Array, header: pyfilter.FrameInfo, codec: pyfilter.Codec, fill: Any) -> None:
    """One field against the bound that its column's frame says, and that bound against the codec's."""
    x, y = parts(given), parts(got)
    if codec.is_lossless or header.error_bound == 0:
        assert bits(x).tobytes() == bits(y).tobytes()
        return
    finite = np.isfinite(x)
    assert bits(x[~finite]).tobytes() == bits(y[~finite]).tobytes()
    if header.pointwise_relative:
        exact = np.abs(x[finite].astype(np.longdouble)) * np.longdouble(codec.bound[1])
        assert (np.abs(x[finite].astype(np.longdouble) - y[finite]) <= exact).all()
        return
    ordinary = x[finite]
    if fill is not None:
        same = np.ascontiguousarray(given.astype(given.dtype.newbyteorder("="))).reshape(-1) == fill
        kept = np.ascontiguousarray(got.astype(got.dtype.newbyteorder("="))).reshape(-1)[same]
        assert (kept == fill).all() or np.isnan(fill)
        ordinary = parts(given.reshape(-1)[~same])
        ordinary = ordinary[np.isfinite(ordinary)]
    bound = codec.bound[1]
    if codec.range_fraction is not None:
        spread = float(ordinary.astype("f8").max() - ordinary.astype("f8").min()) if ordinary.size else 0.0
        bound = float(codec.range_fraction) * spread * (1 + 2**-50)
    assert header.bound <= bound
    from fractions import Fraction

    assert first_beyond(x[finite].astype("f8"), y[finite].astype("f8"), Fraction(header.error_bound)) is None
    assert float_not_above(Fraction(header.error_bound)) == header.error_bound


@given(requests())
def test_every_structured_type(request: tuple[Array, pyfilter.Compound, Any]) -> None:
    values, codec, fill = request
    frame = pyfilter.encode(values, codec, fill)
    decoded = pyfilter.decode(frame)
    assert decoded.tobytes() == decoder.decode(frame).tobytes()
    got = decoded.view(values.dtype)
    info = pyfilter.records_info(frame)
    assert (info.shape, info.value_bytes, info.frame_bytes) == (values.shape, values.nbytes, len(frame))
    columns = {column.offset: column for column in info.columns}
    covered = np.zeros(values.dtype.itemsize, bool)
    for field in record_fields.all_bytes_of(values.dtype):
        covered[field.offset : field.offset + field.size] = True
        column = columns[field.offset]
        assert column.dtype.itemsize == field.size
        if not field.is_number or field.dtype.kind not in "fc":
            mine, theirs = (
                item.reshape(-1).view(np.uint8).reshape(values.size, values.dtype.itemsize) for item in (values, got)
            )
            cut = slice(field.offset, field.offset + field.size)
            assert np.array_equal(mine[:, cut], theirs[:, cut])
        else:
            own = codec.codec_of(field.name)
            one = None if fill is None else np.asarray(field.of(fill)).reshape(-1)[0]
            check_field(field.of(values), field.of(got), column.frame, own, one)
    assert covered.all()


@given(requests(), st.integers(1, 40), st.booleans())
def test_the_filter_writes_the_same(request: tuple[Array, pyfilter.Compound, Any], chunk: int, through: bool) -> None:
    """What HDF5 writes and reads back is what the frames of the arrays hold, edge chunks included."""
    values, codec, fill = request
    if values.ndim != 1 or values.size == 0 or any(kind == "M" for kind in kinds(values.dtype)):
        return
    names = [field for field in record_fields.fields_of(values.dtype) if field.dtype.kind in "SV"]
    if any(field.dtype.kind == "V" and field.shape for field in names):
        return
    with h5py.File("records", "w", driver="core", backing_store=False) as file:
        made = {"chunks": (chunk,), "maxshape": (None,), "fillvalue": fill}
        if through:
            dataset = pyfilter.create_dataset(file, "p", values, codec, **made)
        else:
            dataset = file.create_dataset("p", data=values, **made, **codec)
        file.flush()
        again = pyfilter.codec_of(dataset)
        assert isinstance(again, pyfilter.Compound)
        assert through or again == codec
        for begin in range(0, values.size, chunk):
            frame = dataset.id.read_direct_chunk((begin,))[1]
            got = pyfilter.decode(frame).view(values.dtype)[: values.size - begin]
            whole = pyfilter.records_info(frame)
            assert whole.shape == (chunk,)
            for field in record_fields.fields_of(values.dtype):
                column = next(item for item in whole.columns if item.offset == field.offset)
                mine, theirs = field.of(values[begin : begin + chunk]), field.of(got)
                if column.frame.error_bound == 0:
                    assert mine.tobytes() == theirs.tobytes()
                elif not column.frame.pointwise_relative:
                    x, y = parts(mine), parts(theirs)
                    finite = np.isfinite(x)
                    error = np.abs(x[finite].astype("f8") - y[finite].astype("f8"))
                    assert error.max(initial=0) <= column.frame.error_bound


def kinds(dtype: np.dtype[Any]) -> set[str]:
    """Kinds of the elements."""
    return {field.dtype.base.kind for field in record_fields.fields_of(dtype)}


def small() -> bytes:
    """A frame with a column of each kind."""
    dtype = np.dtype({"names": ["x", "n", "s"], "formats": [">f4", "<i2", "S3"], "offsets": [1, 5, 8], "itemsize": 12})
    values = np.zeros((3, 11), dtype)
    values["x"], values["n"], values["s"] = np.arange(33).reshape(3, 11) / 8, 7, b"ab"
    return pyfilter.encode(values, pyfilter.Compound({"x": pyfilter.Cuszp2(absolute=0.25)}))


def seal(frame: bytes) -> bytes:
    """With a right checksum of header and table."""
    (columns,) = struct.unpack_from("<I", frame, 32)
    head = frame[: 8 * frame[7] + 16 * columns]
    crc = zlib.crc32(head[:12] + bytes(4) + head[16:])
    return frame[:12] + struct.pack("<I", crc) + frame[16:]


def patched(frame: bytes, offset: int, form: str, value: int) -> bytes:
    changed = bytearray(frame)
    struct.pack_into(form, changed, offset, value)
    return seal(bytes(changed))


def with_column(frame: bytes, number: int, own: bytes) -> bytes:
    """The same frame, but for the frame of one column."""
    columns = reference.parse_records(frame).columns
    contents = [frame[column.start : column.start + column.frame_bytes] for column in columns]
    contents[number] = own
    table = 8 * frame[7]
    head = bytearray(frame[: table + 16 * len(columns)])
    for place, content in enumerate(contents):
        struct.pack_into("<Q", head, table + 16 * place + 8, len(content))
    body = b"".join(content + bytes(-len(content) % 8) for content in contents)
    struct.pack_into("<Q", head, 16, len(head) + len(body))
    return seal(bytes(head) + body)


def hostile() -> Iterator[tuple[str, bytes]]:
    """Frames that must be refused, most of them behind a right checksum."""
    good = small()
    table, numbers = 8 * good[7], (0, 1, 255, 1 << 31, (1 << 32) - 1)
    wide = (*numbers, 1 << 60, 1 << 61, 1 << 63, (1 << 64) - 8, (1 << 64) - 1)
    columns = reference.parse_records(good).columns
    for size in range(len(good)):
        yield f"cut to {size}", good[:size]
    yield "one byte too many", good + b"\0"
    yield "eight bytes behind the last column", patched(good + bytes(8), 16, "<Q", len(good) + 8)
    for at in range(table + 16 * len(columns)):
        yield f"byte {at} flipped", good[:at] + bytes([good[at] ^ 0x11]) + good[at + 1 :]
    for at, name in ((9, "dtype"), (10, "flags"), (36, "reserved")):
        yield name, patched(good, at, "B", 1)
    for value in wide:
        for at, name in ((16, "frame_bytes"), (24, "record_bytes"), (40, "dims"), (48, "dims")):
            if struct.unpack_from("<Q", good, at)[0] != value:
                yield f"{name} {value}", patched(good, at, "<Q", value)
    other = pyfilter.encode(np.arange(33, dtype=">f4"), Cuszp2(absolute=0.25))
    assert pyfilter.decode(with_column(good, 1, other)).shape == (3, 11)
    for count in (0, 1, 32, 34):
        own = pyfilter.encode(np.arange(count, dtype=">f4"), Cuszp2(absolute=0.25))
        yield f"a column of {count} values", with_column(good, 1, own)
    yield "a column of values of 8 bytes", with_column(good, 1, pyfilter.encode(np.zeros(33), pyfilter.Lossless()))
    yield "bytes of i8", with_column(good, 0, pyfilter.encode(np.zeros((1, 33), "i1"), pyfilter.Lossless()))
    yield "records in records", with_column(good, 1, good)
    for value in (0, 1, len(columns) - 1):
        yield f"{value} columns", patched(good, 32, "<I", value)
    for value in (len(columns) + 1, 4096, 4097, (1 << 32) - 1):  # the table has no room: a checksum of nothing
        yield f"{value} columns", good[:32] + struct.pack("<I", value) + good[36:]
    for number, column in enumerate(columns):
        entry = table + 16 * number
        for value in numbers:
            if column.size != value:
                yield f"column {number} of {value} bytes", patched(good, entry, "<I", value)
        for value in wide:
            yield f"column {number}: frame of {value} bytes", patched(good, entry + 8, "<Q", value)
        if column.kind == reference.VALUES:
            yield f"column {number} as bytes", patched(good, entry + 4, "B", 1)
        for at in range(4, 8):
            yield f"column {number}: byte {at}", patched(good, entry + at, "B", 2)
        end = column.start + column.frame_bytes
        for at in range(end, end + -column.frame_bytes % 8):
            yield f"byte {at} between columns", good[:at] + b"\1" + good[at + 1 :]
        for at in range(column.start, column.start + 8 * good[column.start + 7]):
            yield f"column {number}: header byte {at}", good[:at] + bytes([good[at] ^ 0x40]) + good[at + 1 :]


def test_hostile_frames() -> None:
    """Both decoders refuse them; nothing is read out of bounds (tests/fuzz runs the filter under sanitizers)."""
    count = 0
    records = np.zeros(33 * 12, np.uint8)
    for name, frame in hostile():
        data = np.frombuffer(frame or b"\0", np.uint8)
        decode = library.load().pyf_decode_records  # without what Python checks before
        assert decode(data.ctypes.data, len(frame), records.ctypes.data, records.nbytes) != 0, name
        with pytest.raises(pyfilter.errors.FrameError):
            pytest.fail(f"{name}: {pyfilter.decode(frame).shape}")
        with pytest.raises(decoder.FrameError):
            pytest.fail(f"{name}: {decoder.decode(frame).shape}")
        count += 1
    assert count > 500


@pytest.mark.parametrize("seed", range(300))
def test_mutated_frames(seed: int) -> None:
    """Random bytes in the columns: both decoders say the same, or both refuse."""
    rng = np.random.default_rng(seed)
    good = small()
    changed = bytearray(good)
    for at in rng.integers(8 * good[7], len(good), 3):
        changed[at] = rng.integers(256)
    frame = seal(bytes(changed)) if rng.integers(2) else bytes(changed)
    try:
        expected = decoder.decode(frame)
    except decoder.FrameError:
        with pytest.raises(pyfilter.errors.FrameError):
            pyfilter.decode(frame)
        return
    assert pyfilter.decode(frame).tobytes() == expected.tobytes()


def test_a_later_version_names_the_release() -> None:
    frame = bytearray(small())
    frame[4:7] = bytes([decoder.FORMAT_VERSION + 1, 3, 7])
    with pytest.raises(pyfilter.errors.TooNew, match=r"needs pyfilter >= 3\.7"):
        pyfilter.decode(bytes(frame))
    with pytest.raises(decoder.TooNew):
        decoder.decode(bytes(frame))


def test_bytes_do_not_depend_on_threads(tmp_path: Path) -> None:
    values = np.zeros(100_000, [("x", "f4"), ("y", "f8"), ("n", "i4")])
    values["x"], values["y"] = np.sin(np.arange(100_000) / 50), np.cos(np.arange(100_000) / 99)
    codec = pyfilter.Compound({"x": pyfilter.Lorenzo(absolute=1e-3), "y": pyfilter.Cuszp2(relative=1e-4)})
    frames = set()
    for threads in (1, 2, 5):
        with pyfilter.config(threads=threads):
            frames.add(pyfilter.encode(values, codec))
    assert len(frames) == 1
    assert tmp_path.exists()
