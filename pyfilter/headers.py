# SPDX-License-Identifier: BSD-3-Clause
"""The header of a frame in Python's terms (docs/format.md, section 2). frames.py checks that it can be true."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pyfilter import dtypes
from pyfilter._lib import abi
from pyfilter.errors import CorruptFrame
from pyfilter.registry import CodecSpec, parameter_value, registry

# what frames have in their parameter bytes beyond what a codec is asked for (docs/format.md, sections 7.1, 8.1, 14.1)
_FRAME_PARAMETERS = {
    "hierarchical_delta": {"order": 2},
    "lorenzo": {"order": 2, "group_log2": 3},
    "adaptive": {"axes": 1, "unit_log2": 2},
}
# what byte 1 means in frames of lorenzo: coder and gap array
_FRAME_CODERS: dict[int, tuple[str, bool]] = {
    1: ("rans", True),
    2: ("huffman", True),
    3: ("huffman", False),
    4: ("rans", True),
}


@dataclass(frozen=True)
class FrameInfo:
    """The header of a frame.

    Attributes
    ----------
    codec : str
        Name of the codec that the frame is encoded with; "lossless" also where another could gain nothing.
    dtype : numpy.dtype
        Element type, in this machine's byte order.
    shape : tuple of int
        The array's shape, slowest dimension first.
    bound : float
        Error bound that the values keep: absolute, in the unit of the data, or relative to each value where
        ``pointwise_relative`` says so; 0.0 where they are bit-exact. The bound of values that were written when the
        frame was encoded; see ``carried_bound`` for others.
    carried_bound : float
        Error bound of older values: a chunk was written in parts, its range became smaller, and older values keep the
        chunk's earlier bound. 0.0 where there are none. No value is farther from the written one than the larger of
        both bounds (`error_bound`).
    pointwise_relative : bool
        Whether the bound is relative to each value. The step is then of log2 of the values' magnitudes.
    parameters : dict
        The codec's parameters by name; for hierarchical_delta and lorenzo with what "auto" became, and the "order":
        the number of axes that differences are taken along (0: none); for lorenzo also "group_log2": 2 to that power
        is how many tiles share a stream. Of adaptive "axes" and "unit_log2", which is the same for its units.
    stored_raw : bool
        Whether the values are stored as they are.
    big_endian : bool
        Whether the values came from a big-endian array or dataset.
    sentinel : numpy scalar or None
        The value (fill value) that is kept bit for bit, where there is one; of complex numbers that of their parts.
    step : float
        Width of a quantum, in the unit of the data but for pointwise relative bounds; 0.0 where there is none.
    format_version, header_bytes, frame_bytes, value_count, value_bytes : int
        Version of the frame format, sizes of the header, of the whole frame and of the decoded values, and their
        number.
    """

    codec: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    bound: float
    carried_bound: float
    pointwise_relative: bool
    parameters: dict[str, str | int | bool]
    stored_raw: bool
    big_endian: bool
    sentinel: np.generic | None
    step: float
    format_version: int
    header_bytes: int
    frame_bytes: int
    value_count: int
    value_bytes: int

    @property
    def error_bound(self) -> float:
        """Largest error that any value may have: ``bound`` or ``carried_bound``."""
        return max(self.bound, self.carried_bound)

    @property
    def ratio(self) -> float:
        """Size of the values divided by the size of the frame."""
        return self.value_bytes / self.frame_bytes


def spec_of(raw: abi.Info) -> CodecSpec:
    """Return the codec of a header as the registry has it; CorruptFrame if it is unknown."""
    spec = registry().codec_by_id(raw.codec)
    if spec is None:
        message = f"codec {raw.codec} is unknown"
        raise CorruptFrame(message)
    return spec


def info_of(raw: abi.Info) -> FrameInfo:
    """Return what a header says, from the library's words for it; CorruptFrame if its codec is unknown."""
    spec = spec_of(raw)
    dtype = dtypes.from_code(raw.dtype)
    parameters: dict[str, str | int | bool] = {}
    for parameter in spec.parameters:
        value = parameter.from_byte(raw.parameters[parameter.byte])
        if value is not None:
            parameters[parameter.name] = parameter_value(value)
    if spec.name == "lorenzo":
        parameters["coder"], parameters["gap_array"] = _FRAME_CODERS[int(raw.parameters[1])]
    if spec.name == "progressive":
        parameters["errors"] = "measured" if raw.parameters[0] == 1 else "bounds"
    if spec.name == "adaptive":  # both predictors are in the model, whatever was asked for
        parameters = {}
    for name, byte in _FRAME_PARAMETERS.get(spec.name, {}).items():
        parameters[name] = int(raw.parameters[byte])
    return FrameInfo(
        codec=spec.name,
        dtype=dtype,
        shape=raw.shape,
        bound=raw.bound,
        carried_bound=raw.carried_bound,
        pointwise_relative=bool(raw.pointwise),
        parameters=parameters,
        stored_raw=bool(raw.stored_raw),
        big_endian=bool(raw.source_big_endian),
        sentinel=dtypes.sentinel_of(raw.sentinel, dtype) if raw.has_sentinel else None,
        step=raw.step,
        format_version=raw.format_version,
        header_bytes=raw.header_bytes,
        frame_bytes=raw.frame_bytes,
        value_count=raw.value_count,
        value_bytes=raw.value_bytes,
    )
