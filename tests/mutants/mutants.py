# SPDX-License-Identifier: BSD-3-Clause
"""The mutants: in each, one check of the library is weakened.

A mutant names a file, a text that occurs in it exactly once, what takes the text's place, and the tests that must fail.
"""

from __future__ import annotations

from typing import NamedTuple


class Mutant(NamedTuple):
    """One weakened check."""

    check: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    #: why no test can tell the mutant from the library; None: a test must
    equivalent: str | None = None


BOUND = ("contract/test_blocks.py", "contract/test_bound.py", "-k", "not Adaptive and not test_relative")
RELATIVE = ("contract/test_formula.py", "contract/test_bound.py", "-k", "not Adaptive")
POINTWISE = ("contract/test_pointwise.py",)
INTEGERS = ("contract/test_integers.py",)
MISSING = ("contract/test_missing.py", "contract/test_bound.py", "-k", "not Adaptive and not test_relative")
PSNR = ("contract/test_psnr.py", "contract/test_formula.py")
ORDERS = ("orders/test_over_frames.py", "orders/test_sequences.py")
HOSTILE = (
    "reference/test_hostile.py::test_hostile_frames_by_the_library",
    "reference/test_hostile.py::test_mutated_frames",
)
HEADER = ("python/test_frames.py", *HOSTILE)
WORDS = ("hdf5/test_refusals.py", "hdf5/test_c_api.py", "hdf5/test_damage.py", "hdf5/test_reuse.py")
C_API = ("hdf5/test_c_api.py",)
REQUESTS = ("python/test_codecs.py", "hdf5/test_c_api.py", "contract/test_pointwise.py", "contract/test_psnr.py")

QUANTIZE = "kernels/stages/quantize.hpp"
LOGARITHM = "kernels/stages/logarithm.hpp"
INTEGER = "kernels/stages/integer.hpp"
BOUNDS = "kernels/core/bound.hpp"
UPDATED = "kernels/core/updated_chunk.cpp"
KEPT = "kernels/core/kept_values.hpp"
HALVES = "kernels/core/half_values.cpp"
UPDATED_HALVES = "kernels/core/updated_halves.cpp"
HEADERS = "kernels/core/header.cpp"
CHECKS = "kernels/core/request.cpp"
DRIVER = "kernels/core/cpu_driver.cpp"
TILES = "kernels/stages/tile_decode.hpp"
PACKED = "kernels/stages/packed/decode_parts.hpp"
LORENZO = "kernels/lorenzo/cpu/decode.hpp"
HUFFMAN = "kernels/lorenzo/huffman.hpp"
PARTICLES = "kernels/particles/cpu/decode.hpp"
SEQUENCE = "kernels/particles/head.hpp"
PROGRESSIVE = "kernels/progressive/head.hpp"
SPECIALS = "kernels/progressive/specials.hpp"
SEGMENTS = "kernels/progressive/driver.cpp"
ADAPTIVE = "kernels/adaptive/cpu/unit_decode.hpp"
STATES = "kernels/stages/entropy/packed_states.hpp"
SHORT_STATES, LANES = "kernels/lorenzo/states.hpp", "kernels/lorenzo/cpu/lanes.hpp"
MODEL = "kernels/adaptive/model_read.hpp"
PARTS, FOLDS = "kernels/adaptive/payload.cpp", "kernels/adaptive/grid.hpp"
BINS = "kernels/lossless/cpu/binned_unit.hpp"
BIN_MODEL = "kernels/lossless/binned_read.hpp"
BIN_PARTS = "kernels/lossless/binned_model.hpp"
CD_VALUES = "filter/cd_values.cpp"
RECORD_HEADER = "kernels/core/records_header.cpp"
RECORD_CODE = "kernels/core/records.cpp"
RECORD_CHUNKS = "filter/record_filter.cpp"
RECORD_TESTS = ("contract/test_records.py", "hdf5/test_records.py")

#: the encoder's checks that a decoded value is within the bound
BOUNDS_KEPT = (
    Mutant(
        "absolute bound of a decoded value, 1 % wider",
        QUANTIZE,
        "return absolute(x - decoded) <= p.bound;",
        "return absolute(x - decoded) <= p.bound * T{1.01f};",
        BOUND,
    ),
    Mutant(
        "step for a bound: twice the bound, not slightly less, and the comparison left out",
        QUANTIZE,
        "return absolute(x - decoded) <= p.bound;",
        "return absolute(x - decoded) <= 2 * p.bound;",
        BOUND,
    ),
    Mutant(
        "the neighbouring code keeps the bound",
        QUANTIZE,
        "const bool fits = in_reach(p, x) & keeps_bound(p, x, other) & !(other == p.sentinel);",
        "const bool fits = in_reach(p, x) & !(other == p.sentinel);",
        BOUND,
    ),
    Mutant(
        "four doubles below the product of fraction and range",
        BOUNDS,
        "return std::bit_cast<double>(bits > 4 ? bits - 4 : 0);",
        "return std::bit_cast<double>(bits > 4 ? bits + 4 : 0);",
        RELATIVE,
    ),
    Mutant(
        "a range that overflows",
        BOUNDS,
        "double bound = range > kHighest ?",
        "double bound = range > kHighest && low == 0 ?",
        RELATIVE,
    ),
    Mutant(
        "fraction of a psnr rounded down", BOUNDS, "return exp2_of(exponent) * (1 - 0x1p-40);",
        "return exp2_of(exponent) * (1 + 0x1p-10);", PSNR,
    ),
    Mutant(
        "pointwise bound, a millionth wider",
        LOGARITHM,
        "p.share = bound * (1 - 0x1p-50);",
        "p.share = bound * (1 + 0x1p-20);",
        POINTWISE,
    ),
    Mutant(
        "pointwise bound of an infinity",
        LOGARITHM,
        "(absolute(a * scale - b * scale) <= a * scale * share) & (a > 0) & (a <= highest)",
        "(absolute(a * scale - b * scale) <= a * scale * share) & (a > 0)",
        POINTWISE,
    ),
    Mutant(
        "integers half-way between two codes",
        INTEGER,
        "static_cast<Code>(rest > p.half) +",
        "static_cast<Code>(rest >= p.half) +",
        INTEGERS,
    ),
    Mutant(
        "integers limited to the type's range",
        INTEGER,
        "static_cast<U>(below ? p.lowest : above ? p.highest : product)",
        "static_cast<U>(below ? p.lowest : product)",
        INTEGERS,
    ),
)  # fmt: skip

#: special values: fill values, NaN, infinities
SPECIAL_VALUES = (
    Mutant(
        "no other value decodes to the fill value (quantiser)",
        QUANTIZE,
        "misfit = misfit | (value == p.sentinel) | (decoded == p.sentinel);",
        "misfit = misfit | (value == p.sentinel);",
        MISSING,
    ),
    Mutant(
        "no other value decodes to the fill value (misfits)",
        QUANTIZE,
        "keeps_bound(p, value, decoded) & in_reach(p, value) & !(decoded == p.sentinel);",
        "keeps_bound(p, value, decoded) & in_reach(p, value);",
        MISSING,
    ),
    Mutant(
        "no other value decodes to the fill value (neighbours)",
        QUANTIZE,
        "keeps_bound(p, x, other) & !(other == p.sentinel);",
        "keeps_bound(p, x, other);",
        MISSING,
    ),
    Mutant(
        "no other value decodes to the fill value (pointwise)",
        LOGARITHM,
        "static_cast<Code>(far[i]) | static_cast<Code>(p.has_sentinel & (decoded == p.sentinel_bits));",
        "static_cast<Code>(far[i] | (p.has_sentinel & (decoded == p.sentinel_bits) & 0));",
        POINTWISE,
    ),
    Mutant(
        "no other value decodes to the fill value (integers)",
        INTEGER,
        "(value == p.sentinel_bits) | (integer_value(p, q[from + lane]) == p.sentinel_bits)",
        "(value == p.sentinel_bits)",
        INTEGERS,
    ),
    Mutant(
        "only the quiet NaN goes into the mask of NaN",
        "kernels/stages/special.hpp",
        "block.nan = equal_bits<B>(x, FloatTraits<T>::kQuietNan) & ~block.sentinel;",
        "block.nan = misfits & ~(misfits & (misfits - 1)) & ~block.sentinel;",
        BOUND,
    ),
)

#: bounds of chunks that are written in parts
CARRIED = (
    Mutant(
        "no kept value moves further than the bounds allow",
        KEPT,
        "if (!(distance <= most)) return false;",
        "if (!(distance <= 64 * most + 1e30)) return false;",
        ORDERS,
    ),
    Mutant(
        "the frame carries the largest bound of its origins",
        UPDATED,
        "choice.carried_bound = std::max(choice.carried_bound, error);",
        "choice.carried_bound = 0;",
        ORDERS,
    ),
    Mutant(
        "a bit-exact frame carries the bound of its origin",
        UPDATED,
        "request.carried_bound = error;\n  return request;",
        "request.carried_bound = 0 * error;\n  return request;",
        ORDERS,
    ),
    Mutant(
        "errors of kept ends narrow the range",
        KEPT,
        "bound_of_range(request, values, count, kept_ends * error);",
        "bound_of_range(request, values, count, kept_ends * 0 * error);",
        ORDERS,
    ),
    Mutant(
        "a zero that was kept may have been another value",
        KEPT,
        "if (kept_ends == 0 || !follows_range(request.bound_mode)) return false;",
        "if (kept_ends < 9) return false;",
        ORDERS,
    ),
    Mutant(
        "floats of 16 bits: the bound of the f32 leaves room for rounding",
        HALVES,
        "std::max(bound / 2, (bound - largest_rounding(dtype, largest, bound)) * (1 - 0x1p-50))",
        "std::max(bound / 2, bound * (1 - 0x1p-50))",
        ("contract/test_half.py",),
    ),
    Mutant(
        "floats of 16 bits: no other value becomes the fill value",
        HALVES,
        "return extremes.from_fill <= reach;",
        "return extremes.from_fill <= reach / 4;",
        ("contract/test_half.py",),
    ),
    Mutant(
        "floats of 16 bits: originals are within half of the old step",
        UPDATED_HALVES,
        "constexpr double kOneStep = 0.95;",
        "constexpr double kOneStep = 64;",
        ("contract/test_half.py",),
    ),
    Mutant(
        "floats of 16 bits: values are taken from the old frame as they were decoded",
        UPDATED_HALVES,
        "mixed[i] = origin.exact[i];",
        "mixed[i] = origin.rounded[i];",
        ("contract/test_half.py",),
    ),
    Mutant(
        "a carried bound is rounded up",
        HEADERS,
        "+ ((bits & 0xFFFFFFFFu) != 0 ? 1 : 0);",
        "+ ((bits & 0) != 0 ? 1 : 0);",
        (*ORDERS, "python/test_checking.py"),
    ),
    Mutant(
        "a carried bound is above the bound",
        HEADERS,
        "!(info->carried_bound > info->bound)",
        "!(info->carried_bound > 0)",
        HEADER,
    ),
    Mutant(
        "formats before the carried bound have none",
        HEADERS,
        "if (info->format_version < kCarriedVersion) return",
        "if (info->format_version < 1) return",
        HEADER,
    ),
)

#: the frame's header
FRAME_HEADER = (
    Mutant("magic", HEADERS, "std::memcmp(frame, kMagic, 4) != 0", "std::memcmp(frame, kMagic, 3) != 0", HEADER),
    Mutant(
        "checksum", HEADERS, "load_le<std::uint32_t>(frame + kCrcAt) != header_crc(frame, bytes)",
        "load_le<std::uint32_t>(frame + kCrcAt) != header_crc(frame, bytes) && frame[20] != 0", HEADER,
    ),
    Mutant("format version 0", HEADERS, "if (frame[4] == 0) return", "if (frame[3] == 0) return", HEADER),
    Mutant(
        "formats of the future", HEADERS, "if (frame[4] > registry::kFormatVersion)",
        "if (frame[4] > registry::kFormatVersion + 1)", HEADER,
    ),
    Mutant("reserved flags", HEADERS, "(flags & ~kKnownFlags) != 0", "(flags & 64) != 0", HEADER),
    Mutant("unknown dtype", HEADERS, "if (dtype_bytes(info->dtype) == 0) return", "if (frame[9] == 0) return", HEADER),
    Mutant(
        "dtypes of later formats", HEADERS, "is_derived(info->dtype) && info->format_version < kDerivedVersion",
        "is_derived(info->dtype) && info->format_version < 1", HEADER,
    ),
    Mutant("finite bound", HEADERS, "!std::isfinite(info->bound) ||", "std::isnan(info->bound) ||", HEADER),
    Mutant("finite step", HEADERS, "!std::isfinite(info->step) ||", "std::isnan(info->step) ||", HEADER),
    Mutant(
        "sentinel without its flag", HEADERS, "if (!info->has_sentinel && info->sentinel != 0) return",
        "if (!info->has_sentinel && info->sentinel == 1) return", HEADER,
    ),
    Mutant(
        "sentinel wider than the dtype", HEADERS, "(info->sentinel >> (8 * width)) != 0",
        "(info->sentinel >> 63) != 0", HEADER,
    ),
    Mutant(
        "raw values fill the frame", HEADERS, "if (payload != info.value_bytes) return",
        "if (payload < info.value_bytes) return", HEADER,
    ),
    Mutant(
        "product of the dims below 2^61", HEADERS, "&product) || product >= kMaxValueCount)", "&product))", HEADER,
    ),
    Mutant(
        "header size and rank agree", HEADERS, "frame[11] > kMaxRank ||\n      bytes != header_bytes(frame[11]))",
        "frame[11] > kMaxRank)", HEADER,
    ),
    Mutant(
        "frame cut short", CHECKS, "if (in_header > frame_bytes)", "if (in_header > frame_bytes + 1)",
        HEADER,
    ),
    Mutant(
        "bytes behind a frame", CHECKS, "if (in_header < frame_bytes)",
        "if (in_header + 1 < frame_bytes)", HEADER,
    ),
    Mutant(
        "range of values inside the frame", CHECKS, "if (start > stop || stop > info.value_count)",
        "if (start > stop || stop > info.value_count + 1)", C_API,
    ),
    Mutant(
        "quantised frame without bound or step", CHECKS, "if (!(info.step > 0) || !(info.bound > 0))",
        "if (!(info.step > 0))", HEADER,
    ),
    Mutant(
        "bit-exact frame with a bound or a step", CHECKS, "if (!quantised && (info.step != 0 || info.bound != 0))",
        "if (!quantised && info.step != 0)", HEADER,
    ),
    Mutant("pointwise bound below 1", CHECKS, "if (info.pointwise && info.bound >= 1)",
           "if (info.pointwise && info.bound > 1)", HEADER),
    Mutant(
        "bound and step of integers", CHECKS, "!is_integer_step(info.bound, info.step, dtype_bytes(info.dtype))",
        "!is_integer_step(info.bound, info.step, 8)", HEADER,
    ),
    Mutant(
        "codec's first format", CHECKS, "version_of(*codec, info.parameters); info.format_version < version)",
        "version_of(*codec, info.parameters); info.format_version + 1 < version)", HEADER,
    ),
)  # fmt: skip

#: directories and streams
DECODERS = (
    Mutant("directory ascends", DRIVER, "if (offset < before ||", "if (offset + 1 < before ||", HOSTILE),
    Mutant("directory begins at 0", DRIVER, "(t == 0 && offset != 0)", "(t == 0 && offset > 1)", HOSTILE),
    Mutant("last entry has no flag", DRIVER, "(t == units && entry != offset)", "(t == units && entry == 0)", HOSTILE),
    Mutant(
        "tiles fill the frame", DRIVER, "if (directory_bytes + 4 * std::size_t{before} != payload_bytes)",
        "if (directory_bytes + 4 * std::size_t{before} > payload_bytes)", HOSTILE,
    ),
    Mutant(
        "directory in the frame", CHECKS, "if (payload_bytes / 4 <= entries)", "if (payload_bytes / 4 < entries)",
        HOSTILE, "decode_tiles() checks it again; frame_info() refuses such frames later, with another text",
    ),
    Mutant(
        "planes of a special block", TILES, "if (rate.planes > 8 * sizeof(typename Map::Code)) return kBadRate;",
        "if (rate.planes > 64) return kBadRate;", HOSTILE,
    ),
    Mutant("verbatim values of a block", TILES, "verbatim > B ||", "verbatim > B + 1 ||", HOSTILE,
           "the block's mask has B bits, and the check of the number against it refuses more"),
    Mutant(
        "parts fill their tile", TILES, "if (words_from + 4 * std::size_t{sizes.words} != size) return kBadSize;",
        "if (words_from + 4 * std::size_t{sizes.words} > size) return kBadSize;", HOSTILE,
    ),
    Mutant("padding of a tile", TILES, "if (bytes[i] != 0) return kBadPadding;",
           "if (bytes[i] > 1) return kBadPadding;", HOSTILE),
    Mutant("mask and number of verbatim values", TILES, "if (masks.verbatim_count() != verbatim) return kBadCount;",
           "if (masks.verbatim_count() < verbatim) return kBadCount;", HOSTILE),
    Mutant("bits of absent blocks", PACKED, "if ((all.words[w] & absent.words[w]) != 0) return kBadAbsent;",
           "if ((all.words[0] & absent.words[w]) != 0) return kBadAbsent;", HOSTILE),
    Mutant("planes of a packed block", PACKED, "if (highest > 8 * limits.code_bytes) return kBadRate;",
           "if (highest > 8 * limits.code_bytes + 1) return kBadRate;", HOSTILE),
    Mutant("list of coded blocks ascends", LORENZO, "(k != 0 && g.lists[i][k] <= g.lists[i][k - 1])",
           "(k != 0 && g.lists[i][k] < g.lists[i][k - 1])", HOSTILE),
    Mutant("states of a stream", LORENZO, "if (states.x[l] < kLowestState || states.x[l] >> kStateBits != 0)",
           "if (states.x[l] >> kStateBits != 0)", HOSTILE),
    Mutant("short states: padding", SHORT_STATES, "(at % 32 == 0 || words[at / 32] >> at % 32 == 0)", "true", HOSTILE),
    Mutant("short states: no words behind the last", LANES, "bool more() const { return at != end; }",
           "bool more() const { return true; }", HOSTILE),
    Mutant("last states of a stream", LORENZO, "plan.coder == kRansFull ? x != kLowestState : !is_first_state(x)",
           "plan.coder == kRansFull ? x > 2 * kLowestState : x > 2 * kLowestState", HOSTILE),
    Mutant("Huffman codes are complete", HUFFMAN, "return good && !in.failed && taken == 1u << kMostCodeBits;",
           "return good && !in.failed && taken <= 1u << kMostCodeBits;", HOSTILE),
    Mutant("particles: stored values fill the tile", PARTICLES, "!= std::size_t{head.stored} * D * sizeof(T)) return",
           "< std::size_t{head.stored} * D * sizeof(T)) return", HOSTILE),
    Mutant("particles: reserved bits of a sequence", SEQUENCE, "return (word & 0xF8E0) == 0 && head.rate_planes <= 5;",
           "return (word & 0xF860) == 0 && head.rate_planes <= 5;", HOSTILE),
    Mutant("progressive: range of the integers", PROGRESSIVE, "|| head->high > most) return", ") return", HOSTILE),
    Mutant("progressive: superfluous bytes of a number", PROGRESSIVE,
           "return byte == 0 && shift != 0 ? nullptr : from;", "return from;", HOSTILE),
    Mutant("progressive: a special value twice", SPECIALS, "if (mask_bit(mask, next)) return bad();", "", HOSTILE),
    Mutant("progressive: segments fill the frame", SEGMENTS,
           "if (std::max(end, least_payload_bytes(info.value_count)) != payload_bytes)",
           "if (std::max(end, least_payload_bytes(info.value_count)) > payload_bytes)", HOSTILE),
    Mutant("adaptive: values that can be predicted with", ADAPTIVE, "if (!is_tame(w.dense)) return kBadUnitValue;", "",
           HOSTILE),
    Mutant("adaptive: a stream's end", ADAPTIVE, "if (stream.failed() || !stream.ended()) return kBadUnitStream;",
           "if (stream.failed()) return kBadUnitStream;", HOSTILE),
    Mutant("adaptive: padding of states", STATES, "return good && padded && !in.failed ? words : 0;",
           "return good && !in.failed ? words : 0;", HOSTILE),
    Mutant("adaptive: last states", STATES, "return x == kFirstState || x == kLowestState;",
           "return x == kFirstState || x <= 2 * kLowestState;", HOSTILE),
    Mutant("adaptive: verbatim values", ADAPTIVE,
           "if (stored.failed || stored.end - stored.at >= 4) return kBadStoredValues;",
           "if (stored.failed || stored.end - stored.at > 4) return kBadStoredValues;", HOSTILE),
    Mutant("adaptive: parts fill the payload", PARTS, "return at == payload_bytes ? kOk :",
           "return at <= payload_bytes ? kOk :", HOSTILE),
    Mutant("adaptive: rows of folded lines", FOLDS, "return axes.row >= kLeastFoldRow &&", "return axes.row >= 8 &&",
           HOSTILE),
    Mutant("adaptive: lags of folded lines", FOLDS, "         2 * lag <= values;", "         lag <= values;", HOSTILE),
    Mutant("adaptive: levels of contexts ascend", MODEL, "if (end <= level || end > kContextLevels) return false;",
           "if (end < level || end > kContextLevels) return false;", HOSTILE),
    Mutant("bins: index of a dictionary", BINS, "if (memory.numbers[i] >= model.map.entries) return kBadPlace;",
           "if (memory.numbers[i] > model.map.entries) return kBadPlace;", HOSTILE),
    Mutant("bins: symbol of a uniform stream", BIN_PARTS, "symbol < bins.bins && bins.bits[symbol] == 0;",
           "symbol < bins.bins;", HOSTILE),
    Mutant("bins: distance of a context", BIN_MODEL, "distance < kLeastDistance || distance > kMostDistance) return",
           "distance > kMostDistance) return", HOSTILE),
)  # fmt: skip

#: cd_values and requests
PARAMETERS = (
    Mutant("most words of a user", CD_VALUES, "if (count > kUserMaxWords)", "if (count > kUserMaxWords + 1)", WORDS),
    Mutant("layout version of a user", CD_VALUES, "if (words[0] != kLayoutVersion)", "if (words[0] == 0)", WORDS),
    Mutant("codec beyond a byte", CD_VALUES, "if (words[1] > 0xFF || find_codec(", "if (find_codec(", WORDS),
    Mutant("a bound needs two words", CD_VALUES, "if (count == 4 || (count == 3",
           "if ((count == 3", WORDS),
    Mutant("layout version of stored words", CD_VALUES, "if (words[0] != kStamp)", "if (words[0] < kStamp)", WORDS),
    Mutant("stored words and rank agree", CD_VALUES, "count != kStoredFixedWords + 2 * rank + more)",
           "count < kStoredFixedWords + 2 * rank + more)", WORDS),
    Mutant("stored dims of 0", CD_VALUES, "if (dim == 0 || __builtin_mul_overflow(bytes, dim, &bytes))",
           "if (__builtin_mul_overflow(bytes, dim, &bytes))", WORDS),
    Mutant("stored chunks below 2^64 bytes", CD_VALUES, "if (dim == 0 || __builtin_mul_overflow(bytes, dim, &bytes))",
           "if (dim == 0)", WORDS),
    Mutant("flags of the stored type", CD_VALUES, "(word & ~kTypeKnownBits) != 0)",
           "(word & ~kTypeKnownBits) == 1u << 31)", WORDS),
    Mutant("stored fill value fits the dtype", CD_VALUES, "if (!fits || ((word", "if (((word", WORDS),
    Mutant("stored fill value has its flag", CD_VALUES, "((word & kTypeHasFill) == 0 && fill != 0))", "false)", WORDS),
    Mutant("finite bound of cd_values", CD_VALUES, "(std::isfinite(request.bound) && positive)) return kOk;",
           "positive) return kOk;", WORDS,
           "check_codec_rules() refuses the same bounds"),
    Mutant("bound of a request", CHECKS, "!(std::isfinite(request.bound) && positive))", "!positive)", REQUESTS),
    Mutant("pointwise bound of a request below 1", CHECKS,
           "request.bound_mode == Bound::pointwise_relative && request.bound >= 1)",
           "request.bound_mode == Bound::pointwise_relative && request.bound > 1)", REQUESTS),
    Mutant("highest psnr of a request", CHECKS, "request.bound > kHighestPsnr)", "request.bound > 2 * kHighestPsnr)",
           REQUESTS),
    Mutant("bound for a codec without", CHECKS, "if (request.bound_mode == Bound::none && request.bound != 0)",
           "if (request.bound_mode == Bound::none && request.bound < 0)", REQUESTS),
)  # fmt: skip

#: records: columns in a container
RECORDS = (
    Mutant(
        "columns make up a record", RECORD_HEADER, "if (bytes != info->record_bytes) return",
        "if (bytes < info->record_bytes) return", RECORD_TESTS,
    ),
    Mutant(
        "columns fill the frame", RECORD_HEADER, "if (at != info->frame_bytes) return",
        "if (at > info->frame_bytes) return", RECORD_TESTS,
    ),
    Mutant(
        "a column within the frame", RECORD_HEADER, "if (part.size > info->frame_bytes - at) return",
        "if (part.size > info->frame_bytes) return", RECORD_TESTS,
        "the check behind it, of the place where the column ends, and the sum of all find the same frames",
    ),
    Mutant(
        "bytes between columns are zero", RECORD_HEADER, "if (bytes[at] != 0) return",
        "if (bytes[at] == 2) return", RECORD_TESTS,
    ),
    Mutant(
        "a column has the values of all records", RECORD_CODE, "column.value_bytes != info.record_count * part.bytes)",
        "column.value_bytes > info.record_count * part.bytes)", RECORD_TESTS,
    ),
    Mutant(
        "values of records move once", RECORD_CODE, "encode_beside_old(column.request, before.of(i),",
        "encode_beside_old(column.request, OldFrames{},", RECORD_TESTS,
    ),
    Mutant(
        "frames have the dataset's fields", RECORD_CHUNKS, "info.parts[i].bytes == column.bytes &&", "true &&",
        RECORD_TESTS,
    ),
    Mutant(
        "codecs of one field", "filter/record_dataset.cpp", "if ((*numbers)[k] != 0)", "if ((*numbers)[k] > 99)",
        RECORD_TESTS,
    ),
)  # fmt: skip

MUTANTS = (*BOUNDS_KEPT, *SPECIAL_VALUES, *CARRIED, *FRAME_HEADER, *DECODERS, *PARAMETERS, *RECORDS)
