// SPDX-License-Identifier: BSD-3-Clause
// Lossless: bit patterns as codes. Effort "fast": differences in blocks (stages/bit_map.hpp), in the tile layout of
// stages/tile_encode.hpp. Effort "ratio": numbers, their differences, and bins of these by rANS (binned_model.hpp). See
// FORMAT.md.
#pragma once

#include "core/level.hpp"
#include "lossless/binned_plan.hpp"
#include "stages/block_plan.hpp"

namespace pyfilter {

struct LosslessCoders {
  FindBlockCoder* coder;
};
PYF_LEVEL_TABLE(LosslessCoders, kLosslessCoders, lossless_coders)

struct BinnedCoders {
  const TileCoder* (*units)(Dtype dtype);
  // Makes the model of a chunk. The caller has set the dtype's fields of model.map. Allocates; may throw
  // std::bad_alloc.
  void (*train)(const FrameInfo& info, const void* values, BinnedModel& model);
};
PYF_LEVEL_TABLE(BinnedCoders, kBinnedCoders, binned_coders)

// The dtype's fields of a map.
inline NumberMap plain_map(Dtype dtype) {
  NumberMap map;
  map.is_float = is_float(dtype);
  map.is_unsigned = !map.is_float && !is_signed_integer(dtype);
  map.width = static_cast<std::uint32_t>(8 * dtype_bytes(dtype));
  return map;
}

// Payloads of the form `ratio` (binned.cpp).
Status encode_binned(const void* values, FrameInfo& info, std::uint8_t* out, std::size_t limit, std::size_t* bytes);
Status decode_binned(const FrameInfo& info, const std::uint8_t* payload, std::size_t payload_bytes, std::uint64_t start,
                     std::uint64_t stop, void* values);
Status check_binned_size(const FrameInfo& info, std::uint64_t payload_bytes);

}  // namespace pyfilter
