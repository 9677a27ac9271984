// SPDX-License-Identifier: BSD-3-Clause
// encode_updated() (updated_chunk.hpp) for floats of 16 bits with a bound.
#pragma once

#include "core/updated_chunk.hpp"

namespace pyfilter {

// `request`: without psnr.
Status encode_updated_halves(const Request& request, const void* values, std::size_t value_bytes,
                             const FrameBytes* frames, std::size_t frame_count, void* out, std::size_t capacity,
                             std::size_t* out_bytes, bool* kept) noexcept;

}  // namespace pyfilter
