# SPDX-License-Identifier: BSD-3-Clause
"""Every golden frame decodes as it always did, and our encoder still writes the same bytes (README.md)."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from reference import adaptive, adaptive_grid, adaptive_model, bins, bins_writer, decoder, packed, progressive, records

import pyfilter
from pyfilter.registry import registry
from pyfilter.settings import CPU_LEVELS

from . import writer
from .cases import DTYPES, ENCODED_DIFFERENTLY, FOLDER, cases
from .golden_case import GoldenCase, RecordCase
from .hand_made import (
    HAND_MADE,
    HAND_MADE_ADAPTIVE,
    HAND_MADE_BINS,
    HAND_MADE_PACKED,
    HAND_MADE_PARTICLES,
    HAND_MADE_PARTS,
    HAND_MADE_PROGRESSIVE,
    HAND_MADE_SHORT_STATES,
    HAND_MADE_STREAMS,
)
from .type_cases import record_cases

FRAMES = sorted(FOLDER.glob("v*.pyf"))
OF_VALUES = [path for path in FRAMES if not records.is_records(path.read_bytes())]
EACH = pytest.mark.parametrize("path", FRAMES, ids=lambda path: path.stem)
HOW = "write it with: pytest tests/golden --write-golden"


def expected(path: Path) -> NDArray[Any]:
    values: NDArray[Any] = np.load(path.with_suffix(".npy"), allow_pickle=False)
    return values


def assert_same(decoded: NDArray[Any], values: NDArray[Any]) -> None:
    assert decoded.shape == values.shape
    decoded = decoded.view("V2") if decoded.dtype.name == "bfloat16" else decoded  # of ml_dtypes
    assert decoded.dtype == values.dtype
    assert decoded.tobytes() == values.tobytes()


@EACH
def test_reference_decoder(path: Path) -> None:
    assert_same(decoder.decode(path.read_bytes()), expected(path))


@EACH
def test_library(path: Path) -> None:
    frame, values = path.read_bytes(), expected(path)
    levels = set()
    for level in ("baseline",) if pyfilter.config().backend == "cuda" else CPU_LEVELS:
        try:
            config = pyfilter.config(cpu_level=level)
        except pyfilter.errors.InvalidArgument:
            continue  # this machine does not have it
        with config:
            levels.add(config.cpu_level)
            assert_same(pyfilter.decode(frame), values)
            if values.dtype.names is not None:  # records are decoded whole
                continue
            n = values.size
            for start, stop in {(0, n), (n // 3, n // 2), (0, min(n, 33)), (n, n), (max(0, n - 1), n)}:
                assert_same(pyfilter.decode(frame, start, stop), values.reshape(-1)[start:stop])
    assert "baseline" in levels


CASES = cases()
RECORDS = record_cases()
ALL: list[GoldenCase | RecordCase] = [*CASES, *RECORDS]


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_encoder(case: GoldenCase | RecordCase) -> None:
    path = FOLDER / f"{writer.stem(case.name, case.version)}.pyf"
    assert path.exists(), f"golden file {path.name} is missing; {HOW}"
    same = case.encode() == path.read_bytes()
    if case.name in ENCODED_DIFFERENTLY:
        assert not same, f"{case.name} is encoded as before: take it out of ENCODED_DIFFERENTLY"
        return
    assert same, (
        f"the encoder no longer writes {path.name}. If an old decoder could not read the new bytes, this needs a new "
        f"format version (docs/format.md, section 11). If only the encoder's choices are others, and on purpose, note "
        f"{case.name!r} in ENCODED_DIFFERENTLY of tests/golden/cases.py, with the release and the reason"
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_values_keep_their_bound(case: GoldenCase) -> None:
    """The golden values are those of the case, to its bound: a wrong decoder did not make them."""
    path = FOLDER / f"{writer.stem(case.name, case.version)}.pyf"
    given, values = case.values.astype(case.values.dtype.newbyteorder("=")), expected(path)
    bound = pyfilter.frame_info(path.read_bytes()).error_bound
    assert (pyfilter.frame_info(path.read_bytes()).carried_bound > 0) is (case.before is not None)
    assert values.shape == given.shape
    if bound == 0:
        assert values.tobytes() == given.tobytes()
        return
    if given.dtype.kind == "c":
        given, values = (item.reshape(-1).view(f"f{item.itemsize // 2}") for item in (given, values))
    finite = np.isfinite(given)
    error = np.abs(values[finite].astype(np.longdouble) - given[finite])
    if not pyfilter.frame_info(path.read_bytes()).pointwise_relative:
        assert error.max(initial=0) <= bound
    else:
        assert (error <= bound * np.abs(given[finite].astype(np.longdouble))).all()
        assert np.array_equal(np.signbit(values[finite]), np.signbit(given[finite]))
    assert values[~finite].tobytes() == given[~finite].tobytes()


@pytest.mark.parametrize("case", RECORDS, ids=lambda case: case.name)
def test_records_keep_their_bounds(case: RecordCase) -> None:
    path = FOLDER / f"{writer.stem(case.name, case.version)}.pyf"
    info, decoded = pyfilter.records_info(path.read_bytes()), expected(path).view(case.values.dtype)
    carried = [column.frame.carried_bound for column in info.columns]
    assert any(carried) is (case.before is not None)
    for name in case.values.dtype.names or ():
        fields = case.values.dtype.fields
        assert fields is not None
        offset = fields[name][1]
        bound = next(column.frame.error_bound for column in info.columns if column.offset == offset)
        given, values = case.values[name], decoded[name]
        if bound == 0:
            assert values.tobytes() == given.tobytes(), name
            continue
        assert name in case.codec.fields
        finite = np.isfinite(given)
        for part in ("real", "imag"):
            error = getattr(values[finite], part).astype("f8") - getattr(given[finite], part).astype("f8")
            assert np.abs(error).max() <= bound, name
        assert values[~finite].tobytes() == given[~finite].tobytes()


def test_names() -> None:
    names = [case.name for case in ALL]
    assert len(set(names)) == len(names)
    assert set(ENCODED_DIFFERENTLY) <= set(names)
    assert all(ENCODED_DIFFERENTLY.values()), "say since which release, and why"
    by_version = {
        **{1: HAND_MADE, 2: HAND_MADE_PACKED, 3: HAND_MADE_STREAMS, 4: HAND_MADE_PARTICLES, 5: HAND_MADE_PROGRESSIVE},
        7: HAND_MADE_ADAPTIVE + HAND_MADE_BINS,
        10: HAND_MADE_SHORT_STATES,
        11: HAND_MADE_PARTS,
    }
    for version, seeds in by_version.items():
        for seed in seeds:
            assert list(FOLDER.glob(f"v{version}_made_*_{seed}.pyf")), f"hand-made frame {seed} is missing; {HOW}"


def test_files_are_only_added() -> None:
    """None of the manifest is gone or changed, and every file is in it (or `sha256sum -c` it)."""
    manifest = writer.read_manifest()
    assert {path.name: writer.checksum(path) for path in FOLDER.glob("v*.*")} == manifest, f"new files: {HOW}"


def test_the_manifest_keeps_what_it_has(tmp_path: Path) -> None:
    (tmp_path / "v1_a.pyf").write_bytes(b"first")
    writer.add_to_manifest(tmp_path)
    first = writer.read_manifest(tmp_path)
    (tmp_path / "v1_a.pyf").write_bytes(b"changed")
    (tmp_path / "v1_b.pyf").write_bytes(b"second")
    writer.add_to_manifest(tmp_path)
    assert writer.read_manifest(tmp_path) == {**first, "v1_b.pyf": writer.checksum(tmp_path / "v1_b.pyf")}


#: its frames are of floating-point values; those of integers are hierarchical_delta's
ADAPTIVE = 7


def test_pairs_and_size() -> None:
    frames, values = {p.stem for p in FRAMES}, {p.stem for p in FOLDER.glob("v*.npy")}
    assert frames == values
    assert sum(path.stat().st_size for path in FOLDER.glob("v*")) < 2_750_000


def test_all_of_the_format_is_there() -> None:
    """Codecs, dtypes, modes, block dimensions, raw frames, flags, ranks, and every kind of rate code."""
    headers = [decoder.parse_header(path.read_bytes()) for path in OF_VALUES]
    numbers = {np.dtype(spec.numpy): spec for spec in registry().dtypes.values()}
    pairs = {(h.codec, numbers[h.element].name) for h in headers}
    taken = {(codec.id, name) for codec in registry().codecs.values() for name in codec.dtypes}
    assert pairs == {(codec, name) for codec, name in taken if codec != ADAPTIVE or name[0] in "fc" or name == "bf16"}
    assert {(h.codec, path.name.split("_")[0]) for h, path in zip(headers, OF_VALUES, strict=True)} == {
        (decoder.CUSZP2, "v1"),
        (decoder.LOSSLESS, "v1"),
        (decoder.HIERARCHICAL_DELTA, "v2"),
        (decoder.LORENZO, "v3"),
        (decoder.PARTICLES, "v4"),
        (decoder.PROGRESSIVE, "v5"),
        *((codec, "v6") for codec in range(1, 7) if codec != decoder.PARTICLES),
        *((decoder.ADAPTIVE, version) for version in ("v7", "v11")),
        (decoder.LOSSLESS, "v7"),
        *((codec, "v7") for codec in (decoder.LORENZO, decoder.HIERARCHICAL_DELTA)),  # asked for was adaptive
        *((codec, "v10") for codec in (decoder.LORENZO, decoder.HIERARCHICAL_DELTA)),  # asked for was lorenzo
        *((codec.id, "v8") for codec in registry().codecs.values() if "c64" in codec.dtypes),
    }
    assert {h.codec for h in headers if h.carried_bound > 0} == set(range(1, 8)) - {decoder.PARTICLES}
    tiled = {(numbers[h.dtype].name, h.mode, h.block_dims) for h in headers if h.codec == decoder.CUSZP2 and not h.raw}
    assert tiled == set(itertools.product(("f32", "f64"), range(3), (1, 2, 3)))
    assert {h.block_dims for h in headers if h.codec == decoder.LOSSLESS and not h.raw and not h.bins} == {1, 2, 3}
    assert {h.codec for h in headers if h.raw} == {
        decoder.CUSZP2, decoder.LOSSLESS, decoder.HIERARCHICAL_DELTA, decoder.LORENZO, decoder.PROGRESSIVE,
        decoder.ADAPTIVE,
    }  # fmt: skip
    assert {h.flags for h in headers} >= {0, decoder.RAW, decoder.BIG_ENDIAN, decoder.HAS_SENTINEL}
    assert {len(h.dims) for h in headers} >= {0, 1, 2, 3, 5, 32}
    assert any(h.value_count == 0 for h in headers)
    rates: set[int] = set()
    uniform: set[bool] = set()
    for path, header in zip(OF_VALUES, headers, strict=True):
        if header.codec in (decoder.CUSZP2, decoder.LOSSLESS) and not header.raw and not header.bins:
            tile = decoder.parse_tiles(path.read_bytes(), header)
            rates |= set(() if tile is None else tile.codes.tolist())
            uniform |= set(decoder.parse_directory(path.read_bytes(), header)[1].tolist())
    assert rates >= {0, *range(247, 256)}
    assert {int(decoder.OUTLIER_BYTES[rate]) for rate in rates} == {0, 1, 2, 3, 4, 5, 6, 8}
    assert uniform == {False, True}


def test_all_of_the_packed_tiles_is_there() -> None:
    """Tile shapes and orders of both dtypes, bit-exact frames, and every part that a tile can have."""
    headers = [(path, decoder.parse_header(path.read_bytes())) for path in OF_VALUES]
    tiled = [
        (path, h) for path, h in headers if h.codec == decoder.HIERARCHICAL_DELTA and not h.raw and h.dtype.kind == "f"
    ]
    orders = {(1, 0), (1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (3, 3), (4, 1)}
    shapes = {(h.dtype.itemsize, h.tile_shape, h.order) for _, h in tiled}
    assert shapes == {(size, *order) for size in (4, 8) for order in orders}
    assert {(h.dtype.itemsize, h.exact, h.tile_shape) for _, h in tiled} == {
        (size, exact, shape) for size in (4, 8) for exact in (False, True) for shape in range(1, 5)
    }
    assert {h.parameters[1] for _, h in tiled} == {1, 2}
    masks: set[int] = set()
    parts = {"empty": False, "exceptions": False, "verbatim": False, "absent": False}
    flags: set[tuple[int, int]] = set()  # of heads, by tile shape
    for path, header in tiled:
        frame = path.read_bytes()
        tile = packed.parse_tiles(frame, header)
        if tile is None:
            continue
        masks |= set(tile.masks.reshape(-1).tolist())
        parts["empty"] |= bool((np.diff(decoder.parse_directory(frame, header)[0]) == 0).any())
        parts["exceptions"] |= bool((tile.exceptions >= 0).any())
        flags |= {(header.tile_shape, int(flag)) for flag in tile.flags[:, 0]}
        parts["verbatim"] |= bool(tile.verbatim.any())
        parts["absent"] |= not packed.present_blocks(header).all()
    assert masks == set(range(0, 32, 2))
    assert all(parts.values()), parts
    for shape in range(1, 5):
        here = {flag for s, flag in flags if s == shape}
        assert {flag & packed.PLAIN_MASKS for flag in here if flag & packed.MISSING} == {0, packed.PLAIN_MASKS}
        assert any(flag & packed.NEGATIVE for flag in here)
        assert packed.ALL_MISSING in here
    assert {(h.dtype.itemsize, h.tile_shape) for _, h in tiled if h.pointwise} == {
        (size, shape) for size in (4, 8) for shape in range(1, 5)
    }


def test_all_of_the_integers_is_there() -> None:
    """Every dtype quantised, bit-exact, with missing and verbatim values, in every tile shape; steps odd and even."""
    headers = [(path.read_bytes(), decoder.parse_header(path.read_bytes())) for path in OF_VALUES]
    tiled = [(frame, h) for frame, h in headers if h.packed and not h.raw and h.dtype.kind != "f"]
    kinds = {np.dtype(dtype) for dtype in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")}
    for exact in (False, True):
        assert {h.dtype.newbyteorder("=") for _, h in tiled if h.exact == exact} == kinds
    assert {h.dtype.newbyteorder("=") for _, h in tiled if h.flags & decoder.HAS_SENTINEL} == kinds
    assert {h.tile_shape for _, h in tiled} == {1, 2, 3, 4}
    assert {h.step % 2 for _, h in tiled if not h.exact} == {0, 1}
    tiles = [(h, packed.parse_tiles(frame, h)) for frame, h in tiled]
    found = {h.dtype.newbyteorder("=") for h, tile in tiles if tile is not None and (tile.masks & 4).any()}
    assert found == kinds


def test_writing_never_overwrites(tmp_path: Path) -> None:
    frame, values = FRAMES[0].read_bytes(), expected(FRAMES[0])
    first, second = writer.write_pair(tmp_path, "a", 1, frame, values)
    assert first.read_bytes() == frame
    assert_same(np.load(second), values)
    assert writer.write_pair(tmp_path, "a", 1, b"", np.zeros(3)) == []
    assert first.read_bytes() == frame
    second.unlink()
    with pytest.raises(FileExistsError, match="without its other half"):
        writer.write_pair(tmp_path, "a", 1, frame, values)
    with pytest.raises(ValueError, match="other values"):
        writer.write_pair(tmp_path, "b", 1, frame, np.zeros(3))


def test_all_of_adaptive_is_there() -> None:
    """Kinds of tiles with up to three refining passes, masks, components, all axes, folds, units of many tiles."""
    headers = [(path.read_bytes(), decoder.parse_header(path.read_bytes())) for path in OF_VALUES]
    found: set[tuple[Any, ...]] = set()
    for frame, h in headers:
        if h.codec == decoder.ADAPTIVE and not h.raw:
            parts = adaptive.payload_parts(frame, h)
            found.add(("parts", h.parameters[1] == adaptive_grid.PARTS, len(parts) > 1))
            for grid, unit_log2, data in parts:
                model = adaptive_model.parse_model(data, h, grid.kind, 8)
                kind = (grid.part is not None, grid.row > 0, grid.kind)
                found |= {("passes", *kind, len(model.passes)), ("masks", *kind, model.masks)}
                found |= {("axes", grid.part is not None, grid.axes), ("unit", grid.part is not None, unit_log2)}
                found |= {("dtype", *kind, h.dtype.itemsize), ("classes", len(model.passes[0].thresholds) > 0)}
                found |= {("components", grid.components > 1), ("values", grid.values > 0)}
    kinds = [(part, False, kind) for part in (False, True) for kind in (1, 2, 3)] + [(True, True, 2), (True, True, 3)]
    wanted: set[tuple[Any, ...]] = {("passes", *kind, passes) for kind in kinds for passes in (1, 2, 3, 4)}
    wanted |= {("masks", *kind, masks) for kind in kinds for masks in (False, True)}
    wanted |= {("dtype", *kind, size) for kind in kinds for size in (4, 8)}
    wanted |= {("unit", part, log2) for part in (False, True) for log2 in range(5)}
    wanted |= {("axes", part, axes) for part in (False, True) for axes in (0, 1)}
    wanted |= {("parts", False, False), ("parts", True, False), ("parts", True, True)}
    wanted |= {(what, there) for what in ("components", "classes", "values") for there in (False, True)}
    assert found == wanted


def test_all_of_bins_is_there() -> None:
    """Every kind of numbers of every dtype, strides, contexts, tables, escapes, raw frames, no values."""
    found: set[tuple[Any, ...]] = set()
    for frame, h in ((path.read_bytes(), decoder.parse_header(path.read_bytes())) for path in OF_VALUES):
        if not h.bins or h.raw:
            found.add(("raw", h.bins))
            continue
        model = bins.parse_model(frame[h.header_bytes :], h)
        found |= {(h.dtype.str[1:], model.kind), ("strides", len(model.strides)), ("contexts", bool(model.distances))}
        found |= {("remainders", model.remainders), ("units", h.value_count > model.unit_values)}
        found |= {("values", h.value_count > 0), ("base", model.base != 0 and model.kind == bins.GRID)}
        found.add(("changes", model.changes))
        for stream in model.streams:
            found |= {("tables", len(stream.tables) > 1), ("zigzag", stream.zigzag)}
            found |= {("escape", table.frequencies[255] > 0) for table in stream.tables}
    wanted: set[tuple[Any, ...]] = {(dtype, kind) for dtype in DTYPES for kind in bins_writer.kinds_of(dtype)}
    wanted |= {("strides", count) for count in range(5)}
    for what in ("raw", "contexts", "remainders", "base", "changes", "units", "values", "tables", "zigzag", "escape"):
        wanted |= {(what, False), (what, True)}
    assert found == wanted


def test_all_of_the_segments_is_there() -> None:
    """Levels, tiles of every form, both predictions, planes of all sizes, and every kind of special values."""
    frames = [path.read_bytes() for path in OF_VALUES]
    headers = [(frame, decoder.parse_header(frame)) for frame in frames]
    heads = [
        (h, progressive.parse_head(frame, h))
        for frame, h in headers
        if h.codec == decoder.PROGRESSIVE and not h.raw and h.value_count > 0
    ]
    units = [(h, d, unit, n) for h, d in heads for n, unit in enumerate(d.units)]
    tiles = {(1, 1, 4096), (1, 128, 32), (8, 16, 32)}
    assert {(h.dtype.itemsize, unit.tile) for h, _, unit, _ in units} == set(itertools.product((4, 8), tiles))
    assert {d.cubic[n] for _, d, _, n in units} == {False, True}
    assert {unit.tiles > 1 for *_, unit, _ in units} == {False, True}
    assert {(h.dtype.itemsize, d.planes[n] // 8) for h, d, _, n in units} >= {(4, 0), (4, 3), (8, 0), (8, 7)}
    assert {h.parameters[0] for h, _ in heads} == {1, 2}
    found = set()
    for h, d in heads:
        missing, verbatim = progressive.special_values(d, h)
        found.add((bool(missing.any()), bool(missing.all()), bool(verbatim)))
    assert found == {(False, False, False), (False, False, True), (True, False, False), (True, False, True),
                     (True, True, False)}  # fmt: skip
