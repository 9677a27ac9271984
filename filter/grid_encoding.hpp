// SPDX-License-Identifier: BSD-3-Clause
// Encodes a chunk of an array in memory (grid_chunks.cpp, grid_writing.cpp), and how threads share many chunks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "core/api.hpp"
#include "core/error_text.hpp"
#include "filter/chunk_grid.hpp"
#include "filter/guard.hpp"

namespace pyfilter::filter {

constexpr std::uint64_t kPieceBytes = 1 << 20;  // of values that a thread takes at a time

// Chunks that a thread takes at a time.
inline std::uint64_t chunks_of_piece(std::uint64_t chunk_bytes) {
  return std::max<std::uint64_t>(kPieceBytes / std::max<std::uint64_t>(chunk_bytes, 1), 1);
}
// Whether threads take different chunks. Few large chunks come one after the other, each shared by all threads.
inline bool are_side_by_side(std::uint64_t count, std::uint64_t chunk_bytes, int threads) {
  return chunk_bytes <= kPieceBytes || count >= static_cast<std::uint64_t>(std::max(threads, 1));
}

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<std::uint8_t, Free>;

inline Memory allocate(std::size_t bytes) {
  return Memory(static_cast<std::uint8_t*>(std::malloc(std::max(bytes, sizeof(int)))));
}

// What is encoded: the chunks of an array, in which way, and the value outside of the array.
struct Encoding {
  const ChunkGrid& chunks;
  const Request& request;
  const void* padding;

  // Encodes a chunk; returns the frame's bytes, 0 if that failed. `block`: memory of the thread, made when it is
  // needed.
  std::size_t encode_chunk(std::uint64_t number, Memory& block, std::uint8_t* frame, std::size_t capacity) const {
    const ChunkGrid::Part part = chunks.part(number);
    const std::uint8_t* values = part.first;
    if (!chunks.in_place(part)) {
      if (!block) block = allocate(chunks.bytes());
      if (!block) return 0;
      chunks.gather(part, padding, block.get());
      values = block.get();
    }
    std::size_t made = 0;
    const Status status = guarded([&] { return encode(request, values, chunks.bytes(), frame, capacity, &made); });
    return status.ok() ? made : 0;
  }
};

}  // namespace pyfilter::filter
