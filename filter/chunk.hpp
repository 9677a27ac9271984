// SPDX-License-Identifier: BSD-3-Clause
// A chunk as HDF5's filter callback gets it, and the frames from which its values may have been decoded.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>

#include "core/error_text.hpp"
#include "core/updated_chunk.hpp"
#include "filter/buffer.hpp"
#include "filter/decoded_chunks.hpp"

namespace pyfilter::filter {

// HDF5's buffer, of which `bytes` bytes are used. It is replaced only on success.
struct Chunk {
  std::size_t bytes;
  std::size_t* buffer_bytes;
  void** buffer;
};

// Checks that a chunk is as long as its frame.
inline Status check_chunk_bytes(std::uint64_t frame_bytes, const Chunk& chunk) {
  if (frame_bytes > chunk.bytes)
    return fail(Code::truncated, "truncated chunk: %zu of %llu bytes", chunk.bytes,
                static_cast<unsigned long long>(frame_bytes));
  if (frame_bytes < chunk.bytes)
    return fail(Code::corrupt, "corrupt chunk: %zu bytes, but its frame has %llu", chunk.bytes,
                static_cast<unsigned long long>(frame_bytes));
  return kOk;
}

// Replaces a chunk's values by their frame of at most `capacity` bytes; encode(memory, frame bytes) writes it.
template <class Encode>
Status encode_in_place(const Hdf5& hdf5, std::size_t capacity, Chunk& chunk, Encode&& encode) {
  if (capacity == 0) return fail(Code::unsupported, "the chunk is too large: use smaller chunks");
  ChunkBuffer frame(hdf5, capacity);
  if (frame.data() == nullptr) return fail(Code::no_memory, "no memory for a frame of up to %zu bytes", capacity);
  std::size_t frame_bytes = 0;
  PYF_TRY(encode(frame.data(), &frame_bytes));
  frame.shrink(frame_bytes);
  frame.replace(chunk.buffer, chunk.buffer_bytes);
  chunk.bytes = frame_bytes;
  return kOk;
}

// The frames of `origins`, which keeps their memory.
inline OldFrames frames_of(const Origins& origins) {
  static_assert(kMostOrigins == std::tuple_size_v<decltype(origins.cached)>);
  OldFrames found;
  for (const auto& origin : origins.cached)
    if (origin) found.cached[found.cached_count++] = {origin->bytes.get(), origin->size};
  if (origins.similar &&
      std::find(origins.cached.begin(), origins.cached.end(), origins.similar) == origins.cached.end())
    found.similar = {origins.similar->bytes.get(), origins.similar->size};
  return found;
}

}  // namespace pyfilter::filter
