# SPDX-License-Identifier: BSD-3-Clause
"""The base of codec classes: a frozen dataclass that h5py takes as ``compression=codec`` and as ``**codec``.

A codec's fields are its bounds and its parameters by their names in registry.json. Validation and cd_values
(docs/cd_values.md) follow from the registry, so a codec's own file only declares its fields.
"""

from __future__ import annotations

import dataclasses
import decimal
import math
import struct
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pyfilter.errors import InvalidArgument, Unsupported
from pyfilter.registry import CodecSpec, parameter_name, parameter_value, registry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from typing_extensions import Self

    class FilterRefBase(Mapping[str, Any]):
        """h5py's class as a type checker shall see it (h5py has no annotations)."""

        def __getitem__(self, key: str) -> Any: ...
        def __iter__(self) -> Iterator[str]: ...
        def __len__(self) -> int: ...

else:
    import h5py

    FilterRefBase = h5py.filters.FilterRefBase  # a name in h5py, not a module that can be imported

STAMP = 0x31465950  # "PYF1": word 0 of cd_values as stored in a file
RECORD_LAYOUT, RECORD_STAMP = 2, 0x32465950  # word 0 of cd_values of records: as given, and as stored ("PYF2")
HIGHEST_PSNR = 6000  # dB; 10**-300 of the range
_USER_WORDS = 6
_STORED_HEADER_WORDS = 10


class Codec(FilterRefBase):
    """Base of the codec classes; not made by itself."""

    codec_name: ClassVar[str] = ""
    _classes: ClassVar[dict[str, type[Codec]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Keep the class, so that cd_values find it by the codec's id."""
        super().__init_subclass__(**kwargs)
        Codec._classes[cls.codec_name] = cls

    # -- what h5py asks for

    @property
    def filter_id(self) -> int:
        """The id of the HDF5 filter, the same for every codec."""
        return registry().filter_id

    @property
    def filter_options(self) -> tuple[int, ...]:
        """The cd_values that ask for this codec: six words, the user form of docs/cd_values.md."""
        mode, bound = self.bound
        low, high = struct.unpack("<II", struct.pack("<d", bound))
        (parameters,) = struct.unpack("<I", bytes(self.parameter_bytes[:4]))
        return (registry().cd_values_version, self.requested_spec.id, registry().bounds[mode], low, high, parameters)

    # -- what the package asks for

    @classmethod
    def spec(cls) -> CodecSpec:
        """Return the codec's entry in registry.json."""
        try:
            return registry().codecs[cls.codec_name]
        except KeyError:
            message = f"{cls.__name__} is not a codec: use one of {', '.join(sorted(Codec._classes))}"
            raise Unsupported(message) from None

    @property
    def requested_spec(self) -> CodecSpec:
        """The entry in registry.json of the codec that the library is asked for: `Auto` requests several."""
        return self.spec()

    @classmethod
    def takes_integers(cls) -> bool:
        """Whether the codec encodes integers too. An absolute bound of theirs may be 0."""
        return "i32" in cls.spec().dtypes

    @property
    def bound(self) -> tuple[str, float]:
        """The bound's mode by its name in registry.json ("none", "absolute", ...) and its value (0.0 for none)."""
        for mode in self.requested_spec.bounds:
            value = getattr(self, mode, None)
            if value is not None:
                return mode, float(value)
        return "none", 0.0

    @property
    def range_fraction(self) -> Fraction | None:
        """The bound as a fraction of the value range, not above the exact fraction; None where it is no such bound."""
        mode, bound = self.bound
        if mode == "relative":
            return Fraction(bound)
        if mode == "psnr":  # a root mean square error of that much; if no error is larger, it is not
            digits = decimal.Context(prec=50)
            power = digits.power(10, digits.divide(decimal.Decimal(bound), decimal.Decimal(-20)))
            return Fraction(power) * (1 - Fraction(1, 10**40))
        return None

    @property
    def is_lossless(self) -> bool:
        """Whether every value comes back bit for bit."""
        return self.bound[0] == "none"

    @property
    def parameter_bytes(self) -> bytes:
        """The eight parameter bytes of the frame format."""
        packed = bytearray(8)
        for parameter in self.requested_spec.parameters:
            packed[parameter.byte] = parameter.values[parameter_name(getattr(self, parameter.name))]
        return bytes(packed)

    @property
    def edges(self) -> tuple[int, ...]:
        """Extents of a block or tile along the last dimensions. Extents of chunks are best multiples of them."""
        return {1: (32,), 2: (8, 8), 3: (4, 4, 4)}[getattr(self, "block_dims", 1)]

    def with_absolute(self, absolute: float) -> Self:
        """Return the same codec with an absolute bound instead of its own."""
        changes: dict[str, Any] = {mode: None for mode in self.requested_spec.bounds if mode != "none"}
        changes["absolute"] = absolute
        dataclass: Any = self  # each subclass is one
        changed: Self = dataclasses.replace(dataclass, **changes)
        return changed

    # -- cd_values back to a codec

    @classmethod
    def from_cd_values(cls, cd_values: Iterable[int]) -> Self:
        """Return the codec that cd_values stand for.

        Parameters
        ----------
        cd_values
            The filter's words: as a user gives them or as a file stores them. Signed words, as h5dump prints
            them, are taken too.

        Returns
        -------
        Codec
            An instance of the class that belongs to the codec in the words.

        Raises
        ------
        InvalidArgument
            If the words describe no codec of this release, or a codec of another class.
        """
        words = [_word(value) for value in cd_values]
        spec, mode, bound, parameters = _parse(words)
        found = Codec._classes[spec.name]
        if not issubclass(found, cls):
            message = f"the cd_values are those of {found.__name__}, not of {cls.__name__}"
            raise InvalidArgument(message)
        fields: dict[str, Any] = {} if mode == "none" else {mode: bound}
        for parameter in spec.parameters:
            value = parameter.from_byte(parameters[parameter.byte])
            if value is None:
                message = (
                    f"{parameter.name} of {spec.name} is stored as {parameters[parameter.byte]}; "
                    f"known are {', '.join(f'{code} ({name})' for name, code in parameter.values.items())}"
                )
                raise InvalidArgument(message)
            fields[parameter.name] = parameter_value(value)
        used = {parameter.byte for parameter in spec.parameters}
        if any(byte for position, byte in enumerate(parameters) if position not in used):
            message = f"cd_values word 5 is {words[5]:#x}: it sets parameters that {spec.name} does not have"
            raise InvalidArgument(message)
        return found(**fields)

    # -- shared by the dataclasses

    def _validate(self) -> None:
        """Bring the fields into their normal form; called by each codec's ``__post_init__``."""
        spec = self.requested_spec
        given: list[str] = []
        for mode in spec.bounds:
            if mode == "none":
                continue
            value = getattr(self, mode)
            if value is not None:
                given.append(mode)
                number = positive_float(mode, value, or_zero=mode == "absolute" and self.takes_integers())
                if mode == "psnr" and number > HIGHEST_PSNR:
                    message = f"psnr must be a number > 0 and at most {HIGHEST_PSNR} (dB), got {_short(value)}"
                    raise InvalidArgument(message)
                if mode == "pointwise_relative" and number >= 1.0:
                    message = f"pointwise_relative must be a number > 0 and < 1, got {_short(value)}"
                    raise InvalidArgument(message)
                object.__setattr__(self, mode, number)
        modes = [mode for mode in spec.bounds if mode != "none"]
        if modes and (len(given) > 1 or (not given and "none" not in spec.bounds)):
            wanted = " or ".join(filter(None, (", ".join(f"{mode}=" for mode in modes[:-1]), f"{modes[-1]}=")))
            many = "at most" if "none" in spec.bounds else "exactly"
            message = f"{type(self).__name__} takes {many} one of {wanted}; given: {', '.join(given) or 'none'}"
            raise InvalidArgument(message)
        dataclass: Any = self  # each subclass is one
        own = {field.name for field in dataclasses.fields(dataclass)}
        for parameter in spec.parameters:
            if parameter.name not in own:  # a property, made from other fields
                continue
            value = getattr(self, parameter.name)
            object.__setattr__(self, parameter.name, _choice(parameter.name, value, tuple(parameter.values)))

    def __repr__(self) -> str:
        """Return the call that makes this codec, defaults left out."""
        dataclass: Any = self  # each subclass is one
        shown = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in dataclasses.fields(dataclass)
            if getattr(self, field.name) != field.default
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


def positive_float(name: str, value: object, *, or_zero: bool = False) -> float:
    """Return a bound as a float that is not above the number given.

    Raises
    ------
    InvalidArgument
        If it is not a finite number above 0, or 0 where that may be (a ValueError; the text names the value).
    """
    allowed = "a finite number > 0 (float64), or 0 for integers" if or_zero else "a finite number > 0 (float64)"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        message = f"{name} must be {allowed}, got {value!r}"
        raise InvalidArgument(message)
    try:
        result = float(value)
    except OverflowError:
        result = math.inf
    if or_zero and not value:
        return 0.0
    if not (math.isfinite(result) and result >= 0.0 and value):
        message = f"{name} must be {allowed}, got {_short(value)}"
        raise InvalidArgument(message)
    # A conversion that rounds up would loosen the bound: integers above 2**53, fractions, long doubles.
    exact: Any = Fraction(value) if isinstance(value, Rational) else value
    if result > exact:
        result = math.nextafter(result, 0.0)
    if result <= 0.0:
        message = f"{name} must be {allowed}, got {_short(value)}, which is below the smallest float"
        raise InvalidArgument(message)
    return result


def _short(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:  # Python refuses to print integers of more than 4300 digits
        return "an integer of thousands of digits"
    return text if len(text) <= 60 else f"{text[:28]}...{text[-28:]}"


def _choice(name: str, value: object, allowed: tuple[str, ...]) -> str | int | bool:
    """Return a parameter's value in the normal form, as `parameter_value` does."""
    numeric = all(item.isdigit() for item in allowed)
    if set(allowed) == {"true", "false"}:
        if isinstance(value, (bool, np.bool_)):
            return bool(value)
        message = f"{name} must be True or False; got {_short(value)}"
        raise InvalidArgument(message)
    plain: str | int | None = None
    if numeric and isinstance(value, Integral) and not isinstance(value, (bool, np.bool_)):
        plain = int(value)
    elif not numeric and isinstance(value, str):
        plain = str(value)
    if plain is None or str(plain) not in allowed:
        shown = ", ".join(item if numeric else repr(item) for item in allowed)
        message = f"{name} must be one of {shown}; got {_short(value)}"
        raise InvalidArgument(message)
    return plain


def _word(value: object) -> int:
    if not isinstance(value, Integral) or isinstance(value, (bool, np.bool_)) or not -(2**31) <= int(value) < 2**32:
        message = f"a cd_values word must be an integer of 32 bits, signed or unsigned; got {_short(value)}"
        raise InvalidArgument(message)
    return int(value) & 0xFFFFFFFF


def _parse(words: list[int]) -> tuple[CodecSpec, str, float, bytes]:
    """Return the codec, the bound's mode and value, and the four parameter bytes of either form of cd_values."""
    reg = registry()
    stored = bool(words) and words[0] == STAMP
    if stored:
        dtype = reg.dtype_by_code(words[6] & 0xFF) if len(words) >= _STORED_HEADER_WORDS else None
        fixed = _STORED_HEADER_WORDS + (2 if dtype is not None and np.dtype(dtype.numpy).kind == "c" else 0)
        if len(words) < _STORED_HEADER_WORDS or len(words) != fixed + 2 * words[9]:
            message = f"stored cd_values have {fixed} words and two for each dimension, got {len(words)}: {words}"
            raise InvalidArgument(message)
    elif words[:1] in ([RECORD_LAYOUT], [RECORD_STAMP]):
        message = "these are cd_values of records (a compound type): pyfilter.Compound.from_cd_values"
        raise InvalidArgument(message)
    elif not 3 <= len(words) <= _USER_WORDS:
        message = f"cd_values have 3 to {_USER_WORDS} words, got {len(words)}: {words}"
        raise InvalidArgument(message)
    elif words[0] != reg.cd_values_version:
        message = f"cd_values word 0 is their version, {reg.cd_values_version} in this release; got {words[0]}"
        raise InvalidArgument(message)
    spec = reg.codec_by_id(words[1])
    if spec is None:
        known = ", ".join(f"{codec.id} ({codec.name})" for codec in reg.codecs.values())
        message = f"cd_values word 1 is the codec, one of {known}; got {words[1]}"
        raise InvalidArgument(message)
    modes = {reg.bounds[mode]: mode for mode in spec.bounds}
    if words[2] not in modes:
        known = ", ".join(f"{code} ({mode})" for code, mode in modes.items())
        message = f"cd_values word 2 is the bound's mode, for {spec.name} one of {known}; got {words[2]}"
        raise InvalidArgument(message)
    mode = modes[words[2]]
    if mode != "none" and len(words) < 5:
        message = f"cd_values of mode {mode} need the bound in words 3 and 4, got {len(words)} words: {words}"
        raise InvalidArgument(message)
    low, high, parameters = ([*words[3:_USER_WORDS], 0, 0, 0])[:3]
    (bound,) = struct.unpack("<d", struct.pack("<II", low, high))
    if mode == "none" and (low, high) != (0, 0):
        message = f"cd_values words 3 and 4 must be 0 without a bound, got {low}, {high}"
        raise InvalidArgument(message)
    return spec, mode, bound, struct.pack("<I", parameters)


def absolute_of(relative: float | Fraction, limits: tuple[float, float], *, whole: bool = False) -> float:
    """Return ``relative`` times the range as the largest float that is not above it; ``whole``: the largest integer."""
    exact = Fraction(relative) * (Fraction(limits[1]) - Fraction(limits[0]))
    exact = Fraction(math.floor(exact)) if whole else exact
    try:
        rounded = float(exact)
    except OverflowError:
        return float(np.finfo(np.float64).max)
    return math.nextafter(rounded, 0.0) if Fraction(rounded) > exact else rounded
