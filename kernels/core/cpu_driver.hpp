// SPDX-License-Identifier: BSD-3-Clause
// Tiles, or groups of them, over threads: the directory and the payload of a frame, on the CPU (docs/format.md,
// section 4.2).
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/plan.hpp"
#include "core/status.hpp"

namespace pyfilter {

// Writes directory and tiles to `out`; *bytes is their size, or 0 if they would need `limit` bytes or more.
Status encode_tiles(const Plan& plan, const TileCoder& coder, const void* values, std::uint8_t* out, std::size_t limit,
                    std::size_t* bytes) noexcept;

// What encode_tiles() would need, for a few tiles.
Status encoded_bytes(const Plan& plan, const TileCoder& coder, const void* values, std::size_t* bytes) noexcept;

// `payload` are the frame's bytes from the directory on. Decodes values [start, stop) to `out`.
Status decode_tiles(const Plan& plan, const TileCoder& coder, const std::uint8_t* payload, std::size_t payload_bytes,
                    std::uint64_t start, std::uint64_t stop, void* out) noexcept;

// Scratch memory of the calling thread, kept between calls; nullptr if there is none.
std::uint8_t* thread_scratch(std::size_t bytes) noexcept;
// And memory for what a call keeps from one pass over a chunk to the next.
std::uint8_t* thread_keeping(std::size_t bytes) noexcept;

}  // namespace pyfilter
