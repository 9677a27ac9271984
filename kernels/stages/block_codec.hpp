// SPDX-License-Identifier: BSD-3-Clause
// What the codecs of block tiles (block_plan.hpp) share: the check of their parameters, and encoding and decoding by
// the driver.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/codec.hpp"
#include "core/error_text.hpp"
#include "core/request.hpp"
#include "stages/block_plan.hpp"

namespace pyfilter {

// Checks parameter 1, the block dimensions, and that the unused parameters are 0.
Status check_block_parameters(const registry::CodecRow& row, const Parameters& parameters, const Shape& shape,
                              bool in_frame) noexcept;
void block_frame_parameters(Parameters& parameters);
Status check_block_size(const FrameInfo& info, std::uint64_t payload_bytes);

Status encode_blocks(FindBlockCoder& find, const FrameInfo& info, const void* values, std::uint8_t* out,
                     std::size_t limit, std::size_t* bytes) noexcept;
Status decode_blocks(FindBlockCoder& find, const FrameInfo& info, const std::uint8_t* payload,
                     std::size_t payload_bytes, std::uint64_t start, std::uint64_t stop, void* values) noexcept;

}  // namespace pyfilter
