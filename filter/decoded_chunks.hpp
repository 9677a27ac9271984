// SPDX-License-Identifier: BSD-3-Clause
// What HDF5's chunk caches hold, as far as the filter can know: chunks that it decoded, by the address of their values,
// with the frames that they came from. HDF5 decodes a chunk before it writes a part of it, in the same process, and
// hands over either that memory or, where the chunk stays cached, a copy of it. So the frame that a buffer's values
// came from is found again, and values that were not written stay where they are (core/updated_chunk.hpp).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace pyfilter::filter {

struct DecodedFrame {
  std::unique_ptr<std::uint8_t[]> bytes;
  std::size_t size = 0;
};

// Frames that the values of a chunk may have come from.
struct Origins {
  // Of chunks that HDF5 may have in its cache: the one whose memory is equal, and the one in the same place. Values of
  // one of them are values that nobody wrote again.
  std::array<std::shared_ptr<const DecodedFrame>, 2> cached;
  // A frame that samples are of. Where neither of the others is it, a program writes what it read.
  std::shared_ptr<const DecodedFrame> similar;
};

// A chunk as HDF5 has it: cd_values in their stored form, and values in the dataset's byte order.
struct CachedChunk {
  const unsigned* words;
  std::size_t word_count;
  const void* values;
  std::size_t bytes, value_bytes;  // value_bytes: of one
};

// Remembers that `frame` was decoded to memory that HDF5 now caches. Where there is no memory for that it is not.
void remember_decoded(const CachedChunk& chunk, const void* frame, std::size_t frame_bytes) noexcept;

// Finds what a chunk that is to be encoded may have been decoded from.
Origins find_origins(const CachedChunk& chunk) noexcept;

}  // namespace pyfilter::filter
