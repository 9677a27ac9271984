# SPDX-License-Identifier: BSD-3-Clause
"""registry.json against what it speaks of: rooms, dataclasses, golden files, documents, versions, the library.

`problems` is the whole comparison and returns texts. The tests below expect none for this repository, and the right
text for registries and folders that are wrong on purpose.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reference import decoder, records

import pyfilter
from pyfilter._lib import abi, host, library
from pyfilter.registry import parameter_value

ROOT = Path(__file__).resolve().parents[1]
REGISTRY: dict[str, Any] = json.loads((ROOT / "registry.json").read_text(encoding="utf-8"))
#: dtypes that came with a format version of their own
DERIVED = ("c64", "c128", "b8", "f16", "bf16")
ROOM = ("FORMAT.md", "codec.hpp", "codec.cpp", "cpu/coders.cpp")


def repeated(numbers: list[Any], what: str) -> Iterator[str]:
    for number in sorted({n for n in numbers if numbers.count(n) > 1}):
        yield f"{what} {number!r} is there twice"


def registry_problems(registry: dict[str, Any]) -> Iterator[str]:
    """What contradicts itself or the rules of the file."""
    codecs, dtypes = registry["codecs"], registry["dtypes"]
    for key in ("id", "name", "class"):
        yield from repeated([codec[key] for codec in codecs], f"codec {key}")
    yield from repeated([dtype["code"] for dtype in dtypes.values()], "dtype code")
    yield from repeated(list(registry["bounds"].values()), "bound mode")
    if not 32768 <= registry["filter"]["id"] <= 65535 and not registry["filter"]["registered"]:
        yield f"filter id {registry['filter']['id']} is not one for unregistered filters"
    for name, dtype in dtypes.items():
        numpy = np.dtype(dtype["numpy"])
        if name == "bf16":  # NumPy has no such type
            continue
        if numpy.itemsize != dtype["bytes"] or name != f"{numpy.kind}{8 * numpy.itemsize}":
            yield f"dtype {name}: {dtype}"
    release = [int(part) for part in registry["version"].split(".")[:2]]
    for codec in codecs:
        name = codec["name"]
        yield from (f"{name}: unknown dtype {d}" for d in codec["dtypes"] if d not in dtypes)
        yield from (f"{name}: unknown bound {b}" for b in codec["bounds"] if b not in registry["bounds"])
        yield from repeated([parameter["byte"] for parameter in codec["parameters"]], f"{name}: parameter byte")
        if not 1 <= codec["id"] <= 255:
            yield f"{name}: id {codec['id']} does not fit its byte"
        if codec["needs_release"] > release or codec["min_format_version"] > registry["format_version"]:
            yield f"{name} needs a release or a format that is not there yet"
        for parameter in codec["parameters"]:
            if parameter["values"].get(parameter["default"]) != 0:
                yield f"{name}: byte 0 must be the default of {parameter['name']}"
            if not all(0 <= value <= 255 for value in parameter["values"].values()) or not 0 <= parameter["byte"] <= 3:
                yield f"{name}: parameter {parameter['name']} does not fit its byte, or word 5 of cd_values"
            yield from repeated(list(parameter["values"].values()), f"{name}: value of {parameter['name']}")


def room_problems(registry: dict[str, Any], kernels: Path) -> Iterator[str]:
    """Files of a codec that are missing, and rooms of no codec."""
    names = {codec["name"] for codec in registry["codecs"]}
    for name in sorted(names):
        yield from (f"kernels/{name}/{file} is missing" for file in ROOM if not (kernels / name / file).is_file())
    for room in sorted(path.parent.name for path in kernels.glob("*/FORMAT.md")):
        if room not in names:
            yield f"kernels/{room} is no codec of the registry"


def dataclass_problems(registry: dict[str, Any]) -> Iterator[str]:
    """Codec classes that are missing or declare something else."""
    classes = {codec["class"] for codec in registry["codecs"]} | {pyfilter.Auto.__name__}  # which asks for one of them
    for name in sorted(c.__name__ for c in pyfilter.Codec.__subclasses__() if c.__name__ not in classes):
        yield f"class {name} is no codec of the registry"
    for codec in registry["codecs"]:
        name = codec["class"]
        found = getattr(pyfilter, name, None)
        if found is None or name not in pyfilter.__all__:
            yield f"pyfilter.{name} is missing"
            continue
        if not (isinstance(found, type) and issubclass(found, pyfilter.Codec) and dataclasses.is_dataclass(found)):
            yield f"pyfilter.{name} is no codec dataclass"
            continue
        if found.codec_name != codec["name"]:
            yield f"pyfilter.{name} is for {found.codec_name!r}, not for {codec['name']!r}"
        wanted = {mode: None for mode in codec["bounds"] if mode != "none"}
        wanted |= {p["name"]: parameter_value(p["default"]) for p in codec["parameters"]}
        fields = {field.name: field.default for field in dataclasses.fields(found)}
        if fields != wanted:
            yield f"pyfilter.{name} has fields {fields}, the registry {wanted}"


def frame_codec(codec: dict[str, Any], dtype: str) -> str:
    """Return the codec whose frames hold such values: adaptive stores integers as hierarchical_delta does."""
    floats = dtype[0] in "fc" or dtype == "bf16"
    return "hierarchical_delta" if codec["name"] == "adaptive" and not floats else str(codec["name"])


def golden_problems(registry: dict[str, Any], golden: Path) -> Iterator[str]:
    """Codecs and dtypes without a golden frame. Read with the reference decoder, which has tables of its own."""
    frames = [path.read_bytes() for path in golden.glob("v*.pyf")]
    headers = [decoder.parse_header(frame) for frame in frames if not records.is_records(frame)]
    there = {(header.codec, header.element) for header in headers}
    for codec in registry["codecs"]:
        for name in codec["dtypes"]:
            if frame_codec(codec, name) != codec["name"]:
                continue
            if (codec["id"], np.dtype(registry["dtypes"][name]["numpy"])) not in there:
                yield f"no golden frame of {codec['name']} with dtype {name}"


def document_problems(registry: dict[str, Any], docs: Path) -> Iterator[str]:
    """Numbers in docs/format.md and docs/cd_values.md."""
    text = {path.stem: " ".join(path.read_text(encoding="utf-8").split()) for path in docs.glob("*.md")}
    by_id = sorted(registry["codecs"], key=lambda codec: codec["id"])
    codes = sorted((spec["code"], name) for name, spec in registry["dtypes"].items())
    modes = sorted((code, name) for name, code in registry["bounds"].items())
    wanted = {
        "format": [
            "| 8 | 1 | codec | " + ", ".join(f"{codec['id']} = {codec['name']}" for codec in by_id),
            "| 9 | 1 | dtype | " + ", ".join(f"{code} {name}" for code, name in codes),
            f"# The frame format, versions 1 to {registry['format_version']}",
            f"| {registry['format_version']} | {registry['version']} |",
        ],
        "cd_values": [
            f"| 0 | {registry['cd_values_version']}: version of this layout |",
            "| 1 | codec id (registry.json): " + ", ".join(f"{codec['id']} {codec['name']}" for codec in by_id),
            "| 2 | bound mode: " + ", ".join(f"{code} {name}" for code, name in modes),
        ],
    }
    for codec in by_id:
        for p in codec["parameters"]:
            values = ", ".join(f"{code} {name}" for name, code in p["values"].items())
            if not all(name.isdigit() for name in p["values"]):
                wanted["cd_values"].append(f"byte {p['byte']} = {p['name']} ({values})")
                # packed tiles say what they are in a table of their own (section 7.1)
                if codec["min_format_version"] == 1:
                    wanted["format"].append(f"{codec['name']}: byte {p['byte']} = {p['name']} ({values})")
    for page, sentences in wanted.items():
        yield from (f"docs/{page}.md lacks {s!r}" for s in sentences if s not in text.get(page, ""))


def version_problems(registry: dict[str, Any]) -> Iterator[str]:
    """The release's number, wherever it is."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    match = re.search(r'^\[project\]\n(?:[^\[]*\n)?version = "([^"]+)"', project, re.MULTILINE)
    versions = {
        "registry.json": registry["version"],
        "pyproject.toml": match[1] if match else None,
        "pyfilter.__version__": pyfilter.__version__,
        "the library": library.version(),
    }
    if len(set(versions.values())) > 1:
        yield f"versions differ: {versions}"
    if registry["format_version"] != decoder.FORMAT_VERSION:
        yield f"the reference decoder reads format versions up to {decoder.FORMAT_VERSION}"
    versions_with_news = {codec["min_format_version"] for codec in registry["codecs"]}
    versions_with_news |= {decoder.CARRIED_VERSION, decoder.DERIVED_VERSION, records.RECORDS_VERSION}
    versions_with_news |= {decoder.SHORT_STATES_VERSION, decoder.PARTS_VERSION}
    if max(versions_with_news) != registry["format_version"]:
        yield f"nothing came with format version {registry['format_version']}"


def library_problems(registry: dict[str, Any]) -> Iterator[str]:
    """What the library encodes, and how it marks it."""
    if registry["filter"]["id"] != pyfilter.FILTER_ID:
        yield f"the package's filter id is {pyfilter.FILTER_ID}"
    for codec in registry["codecs"]:
        for name, spec in registry["dtypes"].items():
            values = 100 * np.sin(np.arange(20000) / 50)  # enough for tables of their own
            if spec["numpy"][0] == "c":
                values = values + 1j * values[::-1]
            upper = (values.real.astype("f4").view("u4") >> 16).astype("u2")  # bfloat16
            values = upper if name == "bf16" else values.astype(spec["numpy"])
            request = abi.Request(codec=codec["id"], dtype=spec["code"], rank=1)
            request.dims[0] = values.size
            if codec["name"] == "particles":  # positions, in any order
                values = np.random.default_rng(1).permutation(values)
                request.rank, request.dims[0], request.dims[1], request.parameters[0] = 2, 10000, 2, 2
            request.bound_mode = registry["bounds"][codec["bounds"][0]]
            request.bound = 0.0 if codec["bounds"][0] == "none" else 1.0
            try:
                host.check_request(request)
                taken = True
            except pyfilter.errors.Unsupported:
                taken = False
            if taken != (name in codec["dtypes"]):
                yield f"the library {'takes' if taken else 'does not take'} {name} with {codec['name']}"
            if not taken:
                continue
            frame = np.zeros(host.max_frame_bytes(request), np.uint8)
            host.encode(request, values, frame)
            wanted = next(c for c in registry["codecs"] if c["name"] == frame_codec(codec, name))
            if (frame[8], frame[9]) != (wanted["id"], spec["code"]):
                yield f"{codec['name']} with {name} gives a frame of codec {frame[8]} and dtype {frame[9]}"
            first = decoder.first_version(wanted["id"], frame[48:56].tobytes())
            first = max(first, decoder.DERIVED_VERSION if name in DERIVED else wanted["min_format_version"])
            if frame[4] != first:
                yield f"{codec['name']} gives a frame of format version {frame[4]}"
            if list(frame[5:7]) != codec["needs_release"]:
                yield f"{codec['name']} gives a frame that needs release {frame[5]}.{frame[6]}"


def problems(registry: dict[str, Any], root: Path) -> list[str]:
    return [
        *registry_problems(registry),
        *room_problems(registry, root / "kernels"),
        *dataclass_problems(registry),
        *golden_problems(registry, root / "tests" / "golden"),
        *document_problems(registry, root / "docs"),
    ]


def test_registry_agrees_with_everything() -> None:
    assert problems(REGISTRY, ROOT) == []


def test_versions_agree() -> None:
    assert list(version_problems(REGISTRY)) == []
    assert list(version_problems(REGISTRY | {"version": "0.0.9", "format_version": 77}))


def test_library_agrees() -> None:
    assert list(library_problems(REGISTRY)) == []


def test_the_package_reads_it_whole() -> None:
    """Nothing is lost on the way from the file to pyfilter.registry."""
    parsed = pyfilter.registry.registry()
    assert {name: codec.class_name for name, codec in parsed.codecs.items()} == {
        codec["name"]: codec["class"] for codec in REGISTRY["codecs"]
    }
    assert {codec.id for codec in parsed.codecs.values()} == {codec["id"] for codec in REGISTRY["codecs"]}
    assert {name: spec.code for name, spec in parsed.dtypes.items()} == {
        name: spec["code"] for name, spec in REGISTRY["dtypes"].items()
    }
    assert parsed.bounds == REGISTRY["bounds"]


def test_a_codec_that_is_nowhere_is_noticed() -> None:
    """What a new codec needs, and gets told when it lacks it."""
    registry = copy.deepcopy(REGISTRY)
    new = {**copy.deepcopy(registry["codecs"][1]), "name": "newcomer", "class": "Newcomer", "id": 99}
    registry["codecs"].append(new)
    found = problems(registry, ROOT)
    assert [f"kernels/newcomer/{file} is missing" for file in ROOM] == [p for p in found if p.startswith("kernels")]
    assert "pyfilter.Newcomer is missing" in found
    assert "no golden frame of newcomer with dtype u16" in found
    assert any(p.startswith("docs/format.md lacks") and "99 = newcomer" in p for p in found)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda r: r["codecs"][1].update(id=1), "codec id 1 is there twice"),
        (lambda r: r["codecs"].pop(1), "kernels/lossless is no codec of the registry"),
        (lambda r: r["codecs"].pop(0), "class Cuszp2 is no codec of the registry"),
        (lambda r: r["codecs"][0]["parameters"][0].update(default="plain"), "byte 0 must be the default of mode"),
        (lambda r: r["codecs"][0]["parameters"].pop(), "pyfilter.Cuszp2 has fields"),
        (lambda r: r["codecs"][0]["dtypes"].append("i8"), "no golden frame of cuszp2 with dtype i8"),
        (lambda r: r["codecs"][0].update(needs_release=[9, 9]), "needs a release"),
        (lambda r: r["dtypes"]["i8"].update(code=4), "dtype code 4 is there twice"),
        (lambda r: r["bounds"].update(relative=7), "docs/cd_values.md lacks"),
        (lambda r: r["filter"].update(id=300), "filter id 300"),
        (lambda r: r.update(format_version=99), "docs/format.md lacks"),
    ],
)
def test_mistakes_are_noticed(change: Any, text: str) -> None:
    registry = copy.deepcopy(REGISTRY)
    change(registry)
    assert any(text in problem for problem in problems(registry, ROOT))


def test_missing_files_are_noticed(tmp_path: Path) -> None:
    """With a copy of the tree from which one file after the other goes."""
    for folder in ("kernels", "docs", "tests/golden"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    assert problems(REGISTRY, tmp_path) == []
    for path in (tmp_path / "tests" / "golden").glob("v*_u2_*.pyf"):
        if decoder.parse_header(path.read_bytes()).codec == decoder.LOSSLESS:
            path.unlink()
    assert problems(REGISTRY, tmp_path) == ["no golden frame of lossless with dtype u16"]
    (tmp_path / "kernels" / "cuszp2" / "FORMAT.md").unlink()
    assert "kernels/cuszp2/FORMAT.md is missing" in problems(REGISTRY, tmp_path)
