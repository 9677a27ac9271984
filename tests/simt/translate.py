# SPDX-License-Identifier: BSD-3-Clause
"""Kernels as sources of C++ for a CPU: ``python translate.py KERNELS TO``.

Copies what CUDA sources include; launches, shared memory and inline assembly become calls of ``include/``. Everything
else, all arithmetic among it, stays as it is. Stops at what it does not know, and says where.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

SUFFIXES = (".cu", ".cuh", ".hpp")

#: what a kernel writes in assembly, and the function of include/instructions.h that takes its operands
INSTRUCTIONS = {
    "lop3.b32 %0, %1, %2, %3, 0xE4;": "lop3_select",
    "lop3.b32 %0, %1, %2, %3, 0x96;": "lop3_xor",
    "prmt.b32 %0, %1, %2, %3;": "prmt",
    "szext.wrap.s32 %0, %1, 1;": "sign_extend_bit",
    "ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];": "load_four",
    "ld.relaxed.gpu.global.u32 %0, [%1];": "load_word",
    "st.relaxed.gpu.global.u32 [%0], %1;": "store_word",
    "ld.relaxed.gpu.global.v2.u32 {%0, %1}, [%2];": "load_pair",
    "st.relaxed.gpu.global.v2.u32 [%0], {%1, %2};": "store_pair",
    "atom.acq_rel.cta.add.u32 %0, [%1], %2;": "add_ordered",
    "ld.acquire.cta.u32 %0, [%1];": "load_ordered",
    "st.release.cta.u32 [%0], %1;": "store_ordered",
    "ld.shared.u32 %0, [%1];": "load_shared",
    "ld.shared.u16 %0, [%1];": "load_shared",
    "st.shared.u32 [%0], %1;": "store_shared",
    "ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];": "load_shared_four",
    "cp.async.cg.shared.global [%0], [%1], 16;": "copy_16",
    "cp.async.cg.shared.global [%0], [%1], 16, %2;": "copy_some_of_16",
    "{ .reg .pred due; setp.ne.u32 due, %2, 0; @due cp.async.cg.shared.global [%0], [%1], 16; }": "copy_16_if",
    "{ .reg .pred due; setp.ne.u32 due, %2, 0; @due cp.async.ca.shared.global [%0], [%1], %3; }": "copy_bytes_if",
    "cp.async.wait_all;": "copy_now",
    "prefetch.global.L2 [%0];": "nothing",
    "cp.async.bulk.prefetch.L2.global [%0], %1;": "nothing",
    "{ .reg .u32 before; .reg .pred inside; shfl.sync.up.b32 before|inside, %0, %1, %2, 0xffffffff; "
    "@inside add.u32 %0, %0, before; }": "add_lane_before",
    "{ .reg .u32 low, high; .reg .u64 before; .reg .pred inside; mov.b64 {low, high}, %0; "
    "shfl.sync.up.b32 low|inside, low, %1, %2, 0xffffffff; shfl.sync.up.b32 high, high, %1, %2, 0xffffffff; "
    "mov.b64 before, {low, high}; @inside add.u64 %0, %0, before; }": "add_lane_before",
    "{ .reg .pred must; setp.ge.u32 must, %1, %2; vote.sync.ballot.b32 %0, must, 0xffffffff; }": "ballot_from",
    "{ .reg .pred must; setp.ge.u32 must, %0, %1; @must st.global.u16 [%2], %3; @must shr.u32 %0, %0, 16; }": (
        "spill_from"
    ),
}

STRING = r'"(?:[^"\\]|\\.)*"'


class UnknownError(ValueError):
    """Something that cannot be translated."""


def closing(text: str, start: int) -> int:
    """Where the parenthesis closes that opens at ``start``."""
    depth = 0
    for token in re.finditer(rf"{STRING}|[()]", text[start:]):
        depth += {"(": 1, ")": -1}.get(token[0], 0)
        if depth == 0:
            return start + token.start()
    raise UnknownError("a parenthesis that is not closed")


def operand_lists(text: str) -> list[str]:
    """Parts between colons that are outside of strings and parentheses."""
    parts, depth = [""], 0
    for token in re.findall(rf"{STRING}|[\s\S]", text):
        depth += {"(": 1, ")": -1}.get(token, 0)
        if depth == 0 and token == ":":
            parts.append("")
        else:
            parts[-1] += token
    return parts


def assembly(match: re.Match[str], text: str) -> tuple[str, int]:
    """What an asm statement becomes, and where it ends."""
    start = match.end() - 1
    end = closing(text, start)
    template, *operands = operand_lists(text[start + 1 : end])
    code = " ".join(re.sub(r"\\[nt]", " ", "".join(token[1:-1] for token in re.findall(STRING, template))).split())
    if not code:
        return text[match.start() : end + 1], end + 1  # tells the compiler something, and does nothing
    name = INSTRUCTIONS.get(code)
    if name is None:
        raise UnknownError(f"an instruction that include/instructions.h does not have: {code}")
    values = []
    for match_ in re.finditer(rf"{STRING}\s*\(", ",".join(operands[:2])):
        listed = match_.string
        values.append(listed[match_.end() : closing(listed, match_.end() - 1)])
    return f"::simt::{name}({', '.join(values)})", end + 1


def translate(text: str) -> str:
    text = re.sub(
        r"extern __shared__ (?:__align__\(\w+\) )?([\w:]+) (\w+)\[\];",
        r"auto* const \2 = static_cast<\1*>(::simt::dynamic_shared());",
        text,
    )
    text = re.sub(
        r"(?<!extern )__shared__ ([^;\[]+?) (\w+)((?:\[[^\]]*\])*);",
        r"struct Shared_\2 { \1 \2\3; static const char* key() { static char here; return &here; } }; "
        r"auto& \2 = static_cast<Shared_\2*>(::simt::shared(Shared_\2::key(), sizeof(Shared_\2)))->\2;",
        text,
    )
    text = re.sub(
        r"((?:\b[\w:]+)(?:<[\w:<>, ]*?>)?)<<<([\s\S]*?)>>>\(",
        r"::simt::Launch(\2)(\1)(",
        text,
    )
    found, at = "", 0
    while match := re.compile(r"\basm(?: volatile)?\s*\(").search(text, at):
        statement, end = assembly(match, text)
        found += text[at : match.start()] + statement
        at = end
    text = found + text[at:]
    for left in ("__shared__", "<<<"):
        if left in text:
            raise UnknownError(f"{left} in a form that is not known")
    return text


def main(kernels: Path, to: Path) -> None:
    for path in sorted(kernels.rglob("*")):
        if path.suffix not in SUFFIXES or (path.suffix == ".hpp" and "__CUDA_ARCH__" not in path.read_text()):
            continue  # headers that are for devices, too; others are taken as they are
        target = to / path.relative_to(kernels)
        if path.suffix == ".cu":
            target = target.with_suffix(".cu.cpp")
        try:
            text = f'#line 1 "{path}"\n' + translate(path.read_text())
        except UnknownError as error:
            raise SystemExit(f"{path}: {error}") from error
        if target.exists() and target.read_text() == text:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
