# SPDX-License-Identifier: BSD-3-Clause
"""Why no test takes a branch: file, part of the line, reason. The first row that matches counts."""

from __future__ import annotations

import re

from .measure import Missed

MEMORY = "memory is out"
DEVICE = "a device, or code for one"
KNOWN = "no other value comes here: an earlier check refuses it"
ENCODER = "the encoder's part of a shared file"
DAMAGE = "damage of a kind that no test makes"
SHAPES = "shapes, or parts of a chunk, that these tests do not have"
FREED = "the system forbids reading, or memory is freed meanwhile"
REASONS: tuple[tuple[str, str, str], ...] = (
    (r".*", r"no[_ ]memory|nothrow|bad_alloc|== nullptr\) (return|continue)|!block|!frame|!mask|!aligned", MEMORY),
    (r".*", r"cuda|prefers_|on_devices", DEVICE),
    (r".*", r"no_kernel|^switch|Dtype::f64", KNOWN),
    (r".*", r"^new \(memory\)", "the compiler's own check"),
    (r"filter/chunk_grid.hpp", r"in_place", "a device, or code for one"),
    (r"filter/(dataset|record_dataset|nczarr|filter).cpp", r"chunk is too large|capacity == 0", KNOWN),
    (r"filter/caller.cpp", r"PYF_HDF5_REQUIRED", "the first function: none was missing before it"),
    (r"filter/caller.cpp", r"major > 1", "HDF5 has no release 0"),
    (r"filter/datatype.hpp", r"operator==", KNOWN),  # members of a pair are never enumerations
    (r"filter/record_dataset.cpp", r"\(padding\)", MEMORY),  # what is made in the line goes when an exception comes
    (r"filter/record_type.cpp", r"member_name\(hdf5, type, 0\)", MEMORY),
    (r"filter/record_type.cpp", r"depth > kDeepest \|\|", KNOWN),  # check_plain() goes as deep before
    (r"filter/record_words.cpp", r"words != nullptr|not in the stored form|65535 bytes|> 0xFFFF", KNOWN),
    (r"filter/record_words.cpp", r"is_array && i > 0", KNOWN),  # the dims of a column make up its bytes
    (r"filter/records_api.cpp", r"^\? kOk", KNOWN),
    (
        r"filter/caller.cpp",
        r"dladdr|module.path|compare_exchange",
        "the dynamic linker knows its callers; two threads at once",
    ),
    (r"filter/nczarr.cpp", r"dladdr", "the dynamic linker knows its callers"),
    (r"filter/nczarr.cpp", r"size < 0|write_codec|user_words", KNOWN),
    (r"filter/cd_values.cpp", r"used >= size|n > 0|has_fill|parse_words|is_stamped", KNOWN),
    (r"filter/c_api.cpp", r"\? kOk|bits == 0|value_range", KNOWN),
    (r"filter/config.cpp", r"set_local_thread_count", KNOWN),
    (r"filter/buffer.hpp", r"used == 0|bytes_ < kLarge", KNOWN),
    (r"filter/byte_order.hpp", r"from != to", KNOWN),
    (r"filter/decoded_chunks.cpp", r"kMostCached|kMostDropped", "256 MiB of frames"),
    (r"filter/decoded_chunks.cpp", r"got|errno|read_memory|whole < count", FREED),
    (r"filter/decoded_chunks.cpp", r"all == nullptr|failed == 0|static Memory|catch", MEMORY),
    (r"filter/guard.hpp", r"catch", "exceptions that nothing throws"),
    (r"filter/stored_chunks.cpp", r"EINTR", "a signal while reading"),
    (r"filter/(grid_chunks|filter|progressive_choices).cpp", r"PYF_TRY|parts\[i\]|big-endian|chosen > 0", KNOWN),
    (r"kernels/core/grid.cpp", r"overflow", "shapes whose padding has 2^64 values"),
    (
        r"kernels/core/cpu_driver.cpp",
        r"units / rows|status.ok",
        "more units than a test has; two damaged tiles at once",
    ),
    (r"kernels/progressive/cpu/decode.hpp", r"alignof|aligned", "values at an odd address"),
    (
        r"kernels/progressive/(specials|values|codec|order|memory).hpp|kernels/progressive/codec.cpp",
        r"put_run|ones|changes|too_fine|capacity|rows_at_once|coarsest|finest|scales|bits >> 52|error_code|exponent",
        ENCODER,
    ),
    (r"kernels/lorenzo/huffman.hpp", r"taken|order\[i\]|used|length", ENCODER),
    (r"kernels/lorenzo/model.hpp", r"other\.|every|choose_group|tiles", ENCODER),
    (r"kernels/lorenzo/cpu/huffman_stream.hpp", r"put|escaped|bits > 32|narrow|raw|next_gap_ < 32", ENCODER),
    (r"kernels/adaptive/cpu/stream.hpp", r"put_raw|record|number|at_ -= 2|at_ - begin_", ENCODER),
    (r"kernels/particles/(head|sequence).hpp", r"stored|runs|last_key|tail|filled", ENCODER),
    (r"kernels/(hierarchical_delta/codec|lossless/binned|stages/block_codec).cpp", r"encode|parameters|asked", ENCODER),
    (r"kernels/stages/(masks|special|entropy/tables).hpp", r"mask|misfits|largest", ENCODER),
    # stored values have 4 or 8 bytes: what is left of a unit has none or at least 4
    (r"kernels/adaptive/cpu/unit_decode.hpp", r"stored.at != stored.end", KNOWN),
    (r"kernels/adaptive/grid.hpp", r"from >= values", KNOWN),  # rows without a value are not asked for
    (r"kernels/lorenzo/cpu/decode.hpp", r"has_before", KNOWN),  # blocks of a row are there from its beginning on
    (r"kernels/lorenzo/cpu/decode.hpp", r"kPackedExceptions", DAMAGE),
    (r"kernels/lorenzo/cpu/huffman_stream.hpp", r"gaps_ == nullptr", DAMAGE),
    (r"kernels/lorenzo/cpu/lanes.hpp", r"== kEscape", ENCODER),
    (r"kernels/particles/cpu/decode.hpp", r"low < high", KNOWN),  # tiles of which nothing is wanted are not decoded
    (r"kernels/progressive/bit_stream.hpp", r"at_ == bits_", DAMAGE),
    (r"kernels/progressive/cpu/pieces.hpp", r"pieces.limit", ENCODER),
    (r"kernels/progressive/cpu/points.hpp", r"tiled", SHAPES),
    (r"kernels/progressive/driver.cpp", r"end < payload_bytes|payload\[end\]", SHAPES),  # millions of equal values
    (r"kernels/progressive/driver.cpp", r"frame_info", DAMAGE),
    (r"kernels/progressive/layout.hpp", r"kNoBound|bits < 63", KNOWN),  # integers have at most 58 bits
    (r"kernels/progressive/specials.hpp", r"from % 64", SHAPES),
    (r"kernels/progressive/tile.hpp", r"ones == 0", ENCODER),
    (r"kernels/stages/packed/values.hpp", r"box.inx", SHAPES),
    (r".*", r"return (kBad\w+|false|0|bad\(\));|corrupt\(|failed", DAMAGE),
)


def reason_of(line: Missed) -> str | None:
    """Why a line has branches that were not taken, if this is known."""
    for file, text, reason in REASONS:
        if re.fullmatch(file, line.file) and re.search(text, line.text):
            return reason
    return None
