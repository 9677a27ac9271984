// SPDX-License-Identifier: BSD-3-Clause
// Encodes and decodes the directory and the units of a frame on the CPU, by several threads (docs/format.md,
// section 4.2). A unit is a tile or a group of tiles.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/plan.hpp"
#include "core/status.hpp"

namespace pyfilter {

// Writes directory and tiles to `out`; *bytes is their size, or 0 if they would need `limit` bytes or more.
Status encode_tiles(const Plan& plan, const TileCoder& coder, const void* values, std::uint8_t* out, std::size_t limit,
                    std::size_t* bytes) noexcept;

// Sets *bytes to the size that encode_tiles() would give. One thread encodes everything: for a few tiles only.
Status encoded_bytes(const Plan& plan, const TileCoder& coder, const void* values, std::size_t* bytes) noexcept;

// Decodes values [start, stop) to `out`. `payload` has the frame's bytes from the directory on.
Status decode_tiles(const Plan& plan, const TileCoder& coder, const std::uint8_t* payload, std::size_t payload_bytes,
                    std::uint64_t start, std::uint64_t stop, void* out) noexcept;

// Returns scratch memory of the calling thread, kept from call to call; nullptr if allocation fails.
std::uint8_t* thread_scratch(std::size_t bytes) noexcept;
// The same for results that a call keeps from its first pass over a chunk to its second.
std::uint8_t* thread_keeping(std::size_t bytes) noexcept;

}  // namespace pyfilter
