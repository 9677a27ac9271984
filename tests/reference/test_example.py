# SPDX-License-Identifier: BSD-3-Clause
"""The numbers of docs/format-example.md are true: by both decoders, the writer and the library's encoder."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import numpy as np

from .decoder import decode, parse_header
from .encoder import Block, Spec, code_value, residuals, write_frame
from .library import Library, Request
from .located import PATH, needs_library

PAGE = Path(__file__).parents[2] / "docs" / "format-example.md"


def fences(name: str) -> list[str]:
    """Lines of all blocks of this name on the page."""
    found = re.findall(rf"^```text {name}\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert found, name
    return "".join(found).splitlines()


def numbers(name: str) -> list[float]:
    return [float(word) for line in fences(name) for word in line.split()]


def frame_bytes() -> bytes:
    """The frame, each line "offset  bytes  explanation"."""
    frame = b""
    for line in fences("frame"):
        match = re.match(r" *(\d+)  ((?:[0-9a-f]{2} )+) *\S", line)
        assert match, line
        assert int(match[1]) == len(frame), line
        frame += bytes.fromhex(match[2])
    return frame


VALUES = np.array(numbers("values"), np.float32)
DECODED = np.array(numbers("decoded"), np.float32)


def test_reference_decoder() -> None:
    frame = frame_bytes()
    assert len(frame) == 116
    assert decode(frame).tobytes() == DECODED.tobytes()
    header = parse_header(frame)
    text = PAGE.read_text()
    for number in (header.bound, header.step):
        assert repr(number) in text


def test_steps() -> None:
    """Residuals, codes and values follow from each other, and the writer makes the frame of them."""
    header = parse_header(frame_bytes())
    spec = Spec(dims=(40,), bound=header.bound, step=header.step)
    z, q = ([int(x) for x in numbers(name)] for name in ("residuals", "codes"))
    assert [residuals(q[i : i + 32], spec) for i in (0, 32)] == [z[:32], z[32:]]
    blocks = [
        Block(codes=q[:32], planes=4, outlier_bytes=1),
        Block(codes=q[32:], planes=4, outlier_bytes=1, nan_mask=1 << 4),
    ]
    assert write_frame(spec, blocks) == frame_bytes()
    for code, value in zip(q[:40], DECODED, strict=True):
        assert np.isnan(value) or struct.pack("<f", value) == struct.pack("<I", code_value(code, spec))


def test_error() -> None:
    finite = ~np.isnan(VALUES)
    assert np.array_equal(finite, ~np.isnan(DECODED))
    error = np.abs(DECODED[finite].astype(np.float64) - VALUES[finite].astype(np.float64)).max()
    assert f"The largest error is {error:.4f}." in PAGE.read_text()
    assert error <= parse_header(frame_bytes()).bound


@needs_library
def test_library() -> None:
    assert PATH is not None
    library, frame = Library(PATH), frame_bytes()
    assert library.decode(frame, 160) == DECODED.tobytes()
    request = Request(codec=1, dtype=1, bound_mode=1, bound=0.01, rank=1)
    request.dims[0] = 40
    assert library.encode(request, VALUES) == frame
