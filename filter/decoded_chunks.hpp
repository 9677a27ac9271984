// SPDX-License-Identifier: BSD-3-Clause
// Remembers the chunks that the filter decoded and HDF5's chunk caches may hold: the address of their values, and their
// frames. Before HDF5 writes a part of a chunk, it decodes the chunk in the same process. It then hands the filter that
// memory or, if the chunk stays cached, a copy of it. So the frame of a buffer's values can be found, and values that
// were not written again keep their error (core/updated_chunk.hpp).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace pyfilter::filter {

struct DecodedFrame {
  std::unique_ptr<std::uint8_t[]> bytes;
  std::size_t size = 0;
};

// Frames from which the values of a chunk may have been decoded.
struct Origins {
  // Frames of chunks that HDF5 may have in its cache: [0] a chunk whose values are equal, [1] the chunk at the same
  // address. Values that are equal to values of one of them were not written again.
  std::array<std::shared_ptr<const DecodedFrame>, 2> cached;
  // The frame that shares the most samples. If it is neither of the others, a program writes values that it read.
  std::shared_ptr<const DecodedFrame> similar;
};

// The part of an element by which chunks are recognised: a value, or a field of a record whose values may move.
struct SampledPart {
  std::size_t offset, bytes;  // at most 8 bytes
};

// A chunk as HDF5 passes it: cd_values in the stored form, values in the dataset's byte order.
struct CachedChunk {
  const unsigned* words;
  std::size_t word_count;
  const void* values;
  std::size_t bytes, value_bytes;  // value_bytes: size of one value, or of one record
  std::span<const SampledPart> parts;
};

// Remembers that `frame` was decoded to memory that HDF5 now caches. Does nothing if there is no memory for this.
void remember_decoded(const CachedChunk& chunk, const void* frame, std::size_t frame_bytes) noexcept;

// Finds the frames from which the values of a chunk, about to be encoded, may have been decoded.
Origins find_origins(const CachedChunk& chunk) noexcept;

}  // namespace pyfilter::filter
