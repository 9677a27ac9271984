// SPDX-License-Identifier: BSD-3-Clause
// A chunk as HDF5's filter callback gets it, and the frames from which its values may have been decoded.
#pragma once

#include <cstddef>
#include <tuple>

#include "core/updated_chunk.hpp"
#include "filter/decoded_chunks.hpp"

namespace pyfilter::filter {

// HDF5's buffer, of which `bytes` bytes are used. It is replaced only on success.
struct Chunk {
  std::size_t bytes;
  std::size_t* buffer_bytes;
  void** buffer;
};

// The frames of `origins`, which keeps their memory.
inline OldFrames frames_of(const Origins& origins) {
  static_assert(kMostOrigins == std::tuple_size_v<decltype(origins.cached)>);
  OldFrames found;
  for (const auto& origin : origins.cached)
    if (origin) found.cached[found.cached_count++] = {origin->bytes.get(), origin->size};
  if (origins.similar) found.similar = {origins.similar->bytes.get(), origins.similar->size};
  return found;
}

}  // namespace pyfilter::filter
