// SPDX-License-Identifier: BSD-3-Clause
// Progressive on the CPU; compiled once per level (core/target.hpp).
#include "progressive/codec.hpp"
#include "progressive/cpu/decode.hpp"
#include "progressive/cpu/encode_chunk.hpp"

PYF_BEGIN_TARGET

const ProgressiveCoder kProgressiveCoder{
    [](const Request& request, double bound, const void* values, FrameInfo* info, std::uint8_t* out, std::size_t limit,
       std::size_t* bytes, bool* too_fine) {
      return request.dtype == Dtype::f32
                 ? encode_progressive<float>(request, bound, values, info, out, limit, bytes, too_fine)
                 : encode_progressive<double>(request, bound, values, info, out, limit, bytes, too_fine);
    },
    [](const FrameInfo& info, const std::uint8_t* payload, const ProgressiveLayout& layout, const ProgressiveHead& head,
       const ProgressiveSegment* segments, int count, int level, void* out) {
      return info.dtype == Dtype::f32
                 ? decode_progressive<float>(info, payload, layout, head, segments, count, level, out)
                 : decode_progressive<double>(info, payload, layout, head, segments, count, level, out);
    }};

PYF_END_TARGET
