// SPDX-License-Identifier: BSD-3-Clause
// Codecs of block tiles (block_codec.hpp).
#include "stages/block_codec.hpp"

#include "core/cpu_driver.hpp"
#include "core/request.hpp"

namespace pyfilter {

Status check_block_parameters(const registry::CodecRow& row, const Parameters& parameters, const Shape& shape,
                              bool in_frame) noexcept {
  constexpr std::uint8_t kMaxBlockDims = 3;
  const Code code = parameter_code(in_frame);
  if (in_frame && parameters[1] == 0) return fail(code, "corrupt frame: block dimensions 0, allowed: 1, 2, 3");
  PYF_TRY(check_zero_parameters(row, parameters, 2, in_frame));
  if (parameters[1] > kMaxBlockDims) return fail(code, "%s: block_dims %d, allowed: 1, 2, 3", row.name, parameters[1]);
  if (parameters[1] > (shape.rank > 1 ? shape.rank : 1))
    return fail(code, "%s: block_dims %d needs data of at least that rank, this has rank %d", row.name, parameters[1],
                shape.rank);
  return kOk;
}

void block_frame_parameters(Parameters& parameters) {
  if (parameters[1] == 0) parameters[1] = 1;
}

Status check_block_size(const FrameInfo& info, std::uint64_t payload_bytes) {
  return check_directory_size(make_grid(info.shape, info.value_count, info.parameters[1]).tiles, payload_bytes);
}

Status encode_blocks(FindBlockCoder& find, const FrameInfo& info, const void* values, std::uint8_t* out,
                     std::size_t limit, std::size_t* bytes) noexcept {
  *bytes = 0;
  if (info.value_count == 0) return kOk;
  const BlockPlan plan = block_plan(info);
  const TileCoder* const coder = find(info.dtype, plan.grid.block_dims);
  return coder == nullptr ? no_kernel(info) : encode_tiles(plan, *coder, values, out, limit, bytes);
}

Status decode_blocks(FindBlockCoder& find, const FrameInfo& info, const std::uint8_t* payload,
                     std::size_t payload_bytes, std::uint64_t start, std::uint64_t stop, void* values) noexcept {
  const BlockPlan plan = block_plan(info);
  const TileCoder* const coder = find(info.dtype, plan.grid.block_dims);
  return coder == nullptr ? no_kernel(info) : decode_tiles(plan, *coder, payload, payload_bytes, start, stop, values);
}

}  // namespace pyfilter
