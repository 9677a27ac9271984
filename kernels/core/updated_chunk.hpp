// SPDX-License-Identifier: BSD-3-Clause
// Encodes chunks that are written in parts. HDF5 decodes a chunk, replaces some of its values, and has the whole chunk
// encoded again. A bound that depends on the range of values would then move decoded values a second time. So would a
// codec that predicts from reconstructed values. So such a chunk is encoded together with the frame that it was decoded
// from. Values that were not written again keep their error, or get one within the chunk's present bound.
// docs/reliability.md states the promise.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/status.hpp"
#include "core/types.hpp"

namespace pyfilter {

constexpr bool follows_range(Bound mode) { return mode == Bound::relative || mode == Bound::psnr; }

// Whether encoding a chunk again may move decoded values. The bound may depend on the range of all values, or the
// codec's model on all values.
bool may_move_values(const Request& request) noexcept;

struct FrameBytes {
  const void* bytes;
  std::size_t size;
};

inline constexpr std::size_t kMostFrames = 3;   // that may be given
inline constexpr std::size_t kMostOrigins = 2;  // those of them from which most values come: others match by chance

// Frames from which values may have been decoded: of chunks that HDF5 held at the same address, and one that resembles
// the values (bytes: nullptr if there is none).
struct OldFrames {
  std::array<FrameBytes, kMostOrigins> cached{};
  std::size_t cached_count = 0;
  FrameBytes similar{nullptr, 0};
};

// Encodes values of which some were decoded from `frames` (kMostFrames at most) and have the same index as there.
// If no value comes from a frame, *kept is false and nothing is encoded. Zeros and fill values do not count, since they
// are always exact. The caller then uses encode(). Errors and buffers are the same as for encode().
Status encode_updated(const Request& request, const void* values, std::size_t value_bytes, const FrameBytes* frames,
                      std::size_t frame_count, void* out, std::size_t capacity, std::size_t* out_bytes,
                      bool* kept) noexcept;

// encode_updated(), or encode() if no value comes from an old frame.
Status encode_beside_old(const Request& request, const OldFrames& old, const void* values, std::size_t value_bytes,
                         void* out, std::size_t capacity, std::size_t* out_bytes) noexcept;

}  // namespace pyfilter
