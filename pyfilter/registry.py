# SPDX-License-Identifier: BSD-3-Clause
"""Reads registry.json, the single list of the filter's id, the element types, the bound modes and the codecs.

The same file makes the C++ tables (CMake), so a number written here would be a second source: there is none.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class DtypeSpec:
    """An element type: its name and code in the frame format, and the NumPy type without byte order."""

    name: str
    code: int
    numpy: str
    size_bytes: int


@dataclass(frozen=True)
class ParameterSpec:
    """A codec parameter: the byte that holds it, and its possible values by the names that users write."""

    name: str
    byte: int
    values: dict[str, int]
    default: str

    def from_byte(self, byte: int) -> str | None:
        """Return the value's name for a byte as stored, None for one that is not in use."""
        for name, code in self.values.items():
            if code == byte:
                return name
        # A numeric value may also be written as itself: block_dims = 1 is 0 or 1 (docs/cd_values.md).
        return str(byte) if str(byte) in self.values else None


@dataclass(frozen=True)
class CodecSpec:
    """A codec as the registry describes it."""

    name: str
    class_name: str
    id: int
    summary: str
    dtypes: tuple[str, ...]
    bounds: tuple[str, ...]
    parameters: tuple[ParameterSpec, ...]


@dataclass(frozen=True)
class Registry:
    """The whole of registry.json."""

    filter_id: int
    filter_name: str
    version: str
    format_version: int
    cd_values_version: int
    exact_codec: str
    dtypes: dict[str, DtypeSpec]
    bounds: dict[str, int]
    codecs: dict[str, CodecSpec]

    def codec_by_id(self, codec_id: int) -> CodecSpec | None:
        """Return the codec with this id, None for an unknown one."""
        return next((codec for codec in self.codecs.values() if codec.id == codec_id), None)

    def dtype_by_code(self, code: int) -> DtypeSpec | None:
        """Return the element type with this code, None for an unknown one."""
        return next((dtype for dtype in self.dtypes.values() if dtype.code == code), None)


def parameter_value(name: str) -> int | str | bool:
    """Return what users write for a parameter's value by its name here: an int for digits, a bool for "true"."""
    if name.isdigit():
        return int(name)
    return {"true": True, "false": False}.get(name, name)


def parameter_name(value: object) -> str:
    """Return the name here of a parameter's value as users write it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def registry_path() -> Path:
    """Return the file: beside the package (a wheel), else at the root of the source tree."""
    package = Path(__file__).resolve().parent
    beside = package / "registry.json"
    return beside if beside.is_file() else package.parent / "registry.json"


def parse(text: str) -> Registry:
    """Return the registry that a JSON text describes."""
    raw: dict[str, Any] = json.loads(text)
    dtypes = {name: DtypeSpec(name, item["code"], item["numpy"], item["bytes"]) for name, item in raw["dtypes"].items()}
    codecs = {
        item["name"]: CodecSpec(
            name=item["name"],
            class_name=item["class"],
            id=item["id"],
            summary=item["summary"],
            dtypes=tuple(item["dtypes"]),
            bounds=tuple(item["bounds"]),
            parameters=tuple(
                ParameterSpec(parameter["name"], parameter["byte"], dict(parameter["values"]), parameter["default"])
                for parameter in item["parameters"]
            ),
        )
        for item in raw["codecs"]
    }
    return Registry(
        filter_id=raw["filter"]["id"],
        filter_name=raw["filter"]["name"],
        version=raw["version"],
        format_version=raw["format_version"],
        cd_values_version=raw["cd_values_version"],
        exact_codec=raw["exact_codec"],
        dtypes=dtypes,
        bounds=dict(raw["bounds"]),
        codecs=codecs,
    )


@cache
def registry() -> Registry:
    """Return the registry of this installation."""
    return parse(registry_path().read_text(encoding="utf-8"))
