// SPDX-License-Identifier: BSD-3-Clause
// Chunks that are written in parts. HDF5 decodes a chunk, puts new values between the decoded ones and has the whole
// encoded again. A bound that follows the range of the values would then move decoded values a second time. This
// encodes such a chunk beside the frame that it was decoded from: values that were not written again keep the error
// that they have, or one within the bound that the chunk has now. docs/reliability.md states the promise.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/status.hpp"
#include "core/types.hpp"

namespace pyfilter {

// Whether decoded values would move where a chunk is encoded again: the bound depends on the range of all values.
constexpr bool follows_range(Bound mode) { return mode == Bound::relative || mode == Bound::psnr; }

struct FrameBytes {
  const void* bytes;
  std::size_t size;
};

inline constexpr std::size_t kMostOrigins = 2;

// Encodes values of which any number come from one of `frames` (kMostOrigins at most), decoded, and stand where they
// stood. What holds for values of one frame holds for those of each. *kept is false, and nothing is encoded, where no
// value is from any (but zeros and fill values, which are exact everywhere): then encode() is the right call. Errors
// and buffers are those of encode().
Status encode_updated(const Request& request, const void* values, std::size_t value_bytes, const FrameBytes* frames,
                      std::size_t frame_count, void* out, std::size_t capacity, std::size_t* out_bytes,
                      bool* kept) noexcept;

}  // namespace pyfilter
