# SPDX-License-Identifier: BSD-3-Clause
"""filter/c_api.h and pyfilter/_lib/abi.py: the same structures, functions and constants, field by field.

The parser knows what the header uses: typedefs of structures, PYF_API functions, enumerations and one macro.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from ctypes import POINTER
from typing import Any, NamedTuple

import pytest

from pyfilter import errors
from pyfilter._lib import abi

from .support import REPOSITORY

HEADER = (REPOSITORY / "filter" / "c_api.h").read_text(encoding="utf-8")
SCALARS: dict[str, Any] = {
    "double": ctypes.c_double,
    "int": ctypes.c_int,
    "int32_t": ctypes.c_int32,
    "int64_t": ctypes.c_int64,
    "size_t": ctypes.c_size_t,
    "uint8_t": ctypes.c_uint8,
    "uint32_t": ctypes.c_uint32,
    "uint64_t": ctypes.c_uint64,
    "unsigned": ctypes.c_uint,
}


class Declaration(NamedTuple):
    """A name and its type in C without const: "uint8_t", "pyf_grid*", "uint8_t[8]", "int(*)(int64_t, void*)"."""

    name: str
    kind: str


def without_comments(header: str) -> str:
    return re.sub(r"/\*.*?\*/", " ", header, flags=re.DOTALL)


def declarations(text: str, separator: str) -> list[Declaration]:
    """Return the fields of a structure (separated by ";") or the arguments of a function (by ",")."""
    text = re.sub(r"\bconst\b", "", text)
    found = []
    kind = ""
    for part in re.split(rf"{separator}(?![^(]*\))", text):
        if part.strip() in ("", "void"):
            continue
        function = re.fullmatch(r"\s*(\w+) \(\*(\w+)\)\((.*)\)\s*", part, re.DOTALL)
        if function is not None:
            arguments = ", ".join(argument.kind for argument in declarations(function[3], ","))
            found.append(Declaration(function[2], f"{function[1]}(*)({arguments})"))
            continue
        for number, name in enumerate(part.split(",")):  # uint64_t offset, size;
            one = re.fullmatch(r"\s*(\w+)?\s*(\**)\s*(\w+)(\[\d+\])?\s*", name if number == 0 else f"{kind} {name}")
            assert one is not None, part
            kind = one[1]
            found.append(Declaration(one[3], f"{kind}{one[2]}{one[4] or ''}"))
    return found


def structures(header: str) -> dict[str, list[Declaration]]:
    found = re.findall(r"typedef struct (\w+) \{(.*?)\} \1;", without_comments(header), re.DOTALL)
    return {name: declarations(body, ";") for name, body in found}


def functions(header: str) -> dict[str, tuple[str, list[Declaration]]]:
    found = re.findall(r"PYF_API ([\w ]+\*?)\s*\b(pyf_\w+)\(([^;]*)\);", without_comments(header))
    return {name: (re.sub(r"\bconst\b|\s", "", kind), declarations(arguments, ",")) for kind, name, arguments in found}


def fits(kind: str, declared: Any) -> bool:
    """Whether a type of ctypes is that of C; an address (c_void_p) stands for every pointer but one to a text."""
    array = re.fullmatch(r"(\w+)\[(\d+)\]", kind)
    if array is not None:
        return bool(declared is SCALARS[array[1]] * int(array[2]))
    function = re.fullmatch(r"(\w+)\(\*\)\((.*)\)", kind)
    if function is not None:
        arguments = function[2].split(", ")
        return (
            fits(function[1], declared._restype_)
            and len(arguments) == len(declared._argtypes_)
            and all(map(fits, arguments, declared._argtypes_))
        )
    if not kind.endswith("*"):
        return declared is SCALARS[kind]
    target = kind[:-1]
    if target == "char":
        return declared is ctypes.c_char_p
    known = abi.STRUCTURES.get(target, SCALARS.get(target))
    return declared is ctypes.c_void_p or (known is not None and declared is POINTER(known))


def mismatches(header: str) -> Iterator[str]:
    """Yield what is declared in only one of both, or differently."""
    theirs = structures(header)
    yield from (f"structure {name}" for name in theirs.keys() ^ abi.STRUCTURES.keys())
    for name, structure in abi.STRUCTURES.items():
        wanted, fields = theirs.get(name, []), list(structure._fields_)
        if [field.name for field in wanted] != [field[0] for field in fields]:
            yield f"{name}: fields"
            continue
        yield from (f"{name}.{w.name}" for w, field in zip(wanted, fields, strict=True) if not fits(w.kind, field[1]))
    called = functions(header)
    yield from (f"function {name}" for name in called.keys() ^ abi.FUNCTIONS.keys())
    for name, (result, arguments) in abi.FUNCTIONS.items():
        wanted_result, wanted = called.get(name, ("", []))
        if len(wanted) != len(arguments):
            yield f"{name}: number of arguments"
            continue
        if wanted_result and not fits(wanted_result, result):
            yield f"{name}: result"
        yield from (f"{name}({w.name})" for w, given in zip(wanted, arguments, strict=True) if not fits(w.kind, given))


def enumeration(name: str) -> dict[str, int]:
    body = re.search(rf"enum {name} \{{(.*?)\}}", without_comments(HEADER), re.DOTALL)
    assert body is not None
    found: dict[str, int] = {}
    for item in body[1].split(","):
        key, _, value = map(str.strip, item.partition("="))
        found[key] = int(value) if value else len(found)
    return found


def test_the_header_and_abi_declare_the_same() -> None:
    assert len(structures(HEADER)) == HEADER.count("typedef struct")
    assert len(functions(HEADER)) == len(re.findall(r"^PYF_API ", HEADER, re.MULTILINE))
    assert list(mismatches(HEADER)) == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("uint8_t has_fill;", "uint8_t with_fill;", "pyf_request: fields"),
        ("uint8_t reserved[2];", "uint8_t reserved[4];", "pyf_request.reserved"),
        ("uint64_t offset, size;", "uint64_t offset; uint32_t size;", "pyf_progressive_part.size"),
        ("uint64_t offset, size;", "uint64_t size, offset;", "pyf_progressive_part: fields"),
        ("const pyf_grid* grid; ", "const pyf_range* grid; ", "pyf_cuda_chunks.grid"),
        ("uint32_t mask, const uint64_t* origin", "const uint64_t* origin, uint32_t mask", "pyf_chunk_writer.write"),
        ("} pyf_range;", "} pyf_range; typedef struct pyf_new { int a; } pyf_new;", "structure pyf_new"),
        ("pyf_cuda_fault(uint32_t fault)", "pyf_cuda_fault(uint64_t fault)", "pyf_cuda_fault(fault)"),
        ("PYF_API uint32_t pyf_abi", "PYF_API int pyf_abi", "pyf_abi_version: result"),
        ("size_t* frame_bytes);\n/* Enc", "int* frame_bytes);\n/* Enc", "pyf_encode(frame_bytes)"),
        ("pyf_config(const char* key)", "pyf_config(void* key)", "pyf_config(key)"),
        ("pyf_config(const char* key)", "pyf_config(const char* key, int a)", "pyf_config: number of arguments"),
        ("PYF_API int pyf_register", "PYF_API int pyf_registered", "function pyf_register"),
    ],
)
def test_a_header_that_differs_is_found(old: str, new: str, said: str) -> None:
    assert HEADER.count(old) == 1
    assert said in list(mismatches(HEADER.replace(old, new)))


def test_constants() -> None:
    version = re.search(r"#define PYF_ABI_VERSION (\d+)", HEADER)
    assert version is not None
    assert int(version[1]) == abi.ABI_VERSION
    states = enumeration("pyf_chunk_state")
    assert list(states.values()) == [abi.CHUNK_WAITING, abi.CHUNK_DONE, abi.CHUNK_LEFT]
    assert list(states) == ["PYF_CHUNK_WAITING", "PYF_CHUNK_DONE", "PYF_CHUNK_LEFT"]


def test_every_status_code_has_its_exception() -> None:
    codes = enumeration("pyf_code")
    assert codes.pop("PYF_OK") == 0
    named = {
        "PYF_INVALID_ARGUMENT": errors.InvalidArgument,
        "PYF_UNSUPPORTED": errors.Unsupported,
        "PYF_CORRUPT": errors.CorruptFrame,
        "PYF_TRUNCATED": errors.TruncatedFrame,
        "PYF_TOO_NEW": errors.TooNew,
        "PYF_NO_SPACE": errors.NoSpace,
        "PYF_NO_MEMORY": errors.NoMemory,
        "PYF_DEVICE": errors.DeviceError,
        "PYF_INTERNAL": errors.InternalError,
    }
    assert {name: type(errors.from_code(code, "")) for name, code in codes.items()} == named
