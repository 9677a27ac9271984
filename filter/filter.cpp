// SPDX-License-Identifier: BSD-3-Clause
// The filter callback (callbacks.hpp): one chunk to one frame and back.
#include <algorithm>

#include "core/api.hpp"
#include "core/byte_order.hpp"
#include "core/error_text.hpp"
#include "core/updated_chunk.hpp"
#include "filter/buffer.hpp"
#include "filter/callbacks.hpp"
#include "filter/cd_values.hpp"
#include "filter/chunk.hpp"
#include "filter/decoded_chunks.hpp"
#include "filter/guard.hpp"
#include "filter/record_filter.hpp"
#include "filter/record_words.hpp"

namespace pyfilter::filter {
namespace {

// The product does not overflow: parse_stored() has checked it.
std::size_t value_bytes_of(const Request& request) {
  std::size_t bytes = dtype_bytes(request.dtype);
  for (int i = 0; i < request.shape.rank; ++i) bytes *= request.shape.dims[static_cast<std::size_t>(i)];
  return bytes;
}

// Describes a chunk of HDF5 for decoded_chunks.hpp.
struct ChunkOfValues {
  SampledPart part;
  CachedChunk chunk;

  ChunkOfValues(const Request& request, const Words& words, const void* values, std::size_t bytes)
      : part{0, dtype_bytes(base_dtype(request.dtype))},
        chunk{words.values.data(), words.count, values, bytes, part.bytes, {&part, 1}} {}
  ChunkOfValues(const ChunkOfValues&) = delete;
  ChunkOfValues& operator=(const ChunkOfValues&) = delete;
};

// Encodes values. Values decoded from one of `origins` must not move a second time if the bound depends on the range.
Status encode_values(const Hdf5& hdf5, const Request& request, const Origins& origins, const void* values,
                     Chunk& chunk) {
  const std::size_t capacity = max_frame_bytes(request);
  return encode_in_place(hdf5, capacity, chunk, [&](void* frame, std::size_t* frame_bytes) {
    return encode_beside_old(request, frames_of(origins), values, chunk.bytes, frame, capacity, frame_bytes);
  });
}

Status encode_chunk(const Hdf5& hdf5, const Request& request, const Words& words, Chunk& chunk) {
  if (chunk.bytes != value_bytes_of(request))
    return fail(Code::invalid_argument, "HDF5 gave a chunk of %zu bytes, the stored cd_values say %zu", chunk.bytes,
                value_bytes_of(request));
  Origins origins;
  if (may_move_values(request)) origins = find_origins(ChunkOfValues(request, words, *chunk.buffer, chunk.bytes).chunk);
  if (!needs_swap(request.source_big_endian)) return encode_values(hdf5, request, origins, *chunk.buffer, chunk);
  // Swaps in HDF5's buffer, which saves a copy: HDF5 does not use it during this call. If encoding fails, the values
  // are swapped back, since HDF5 may then store the buffer as it is.
  void* const values = *chunk.buffer;
  const std::size_t bytes = chunk.bytes, value_bytes = dtype_bytes(base_dtype(request.dtype));
  swap_values(values, values, bytes, value_bytes);
  const Status status = encode_values(hdf5, request, origins, values, chunk);
  if (!status.ok()) swap_values(values, values, bytes, value_bytes);
  return status;
}

// Checks that a frame fits the dataset (its size, dtype, shape), before memory is allocated for its values.
Status check_frame(const Request& request, const Chunk& chunk) {
  FrameInfo info;
  PYF_TRY(frame_info(*chunk.buffer, chunk.bytes, &info));
  PYF_TRY(check_chunk_bytes(info.frame_bytes, chunk));
  if (info.dtype != request.dtype || info.source_big_endian != request.source_big_endian)
    return fail(Code::corrupt, "corrupt chunk: its frame holds dtype %d%s, the dataset has %d%s",
                static_cast<int>(info.dtype), info.source_big_endian ? " (big-endian)" : "",
                static_cast<int>(request.dtype), request.source_big_endian ? " (big-endian)" : "");
  if (info.value_bytes != value_bytes_of(request))
    return fail(Code::corrupt, "corrupt chunk: its frame holds %llu bytes of values, the dataset's chunks have %zu",
                static_cast<unsigned long long>(info.value_bytes), value_bytes_of(request));
  return kOk;
}

Status decode_chunk(const Hdf5& hdf5, const Request& request, const Words& words, Chunk& chunk) {
  PYF_TRY(check_frame(request, chunk));
  const std::size_t bytes = value_bytes_of(request);
  ChunkBuffer values(hdf5, bytes);
  if (values.data() == nullptr) return fail(Code::no_memory, "no memory for %zu bytes of values", bytes);
  values.expect_all();
  PYF_TRY(decode(*chunk.buffer, chunk.bytes, values.data(), bytes));
  if (needs_swap(request.source_big_endian))
    swap_values(values.data(), values.data(), bytes, dtype_bytes(base_dtype(request.dtype)));
  if (may_move_values(request))
    remember_decoded(ChunkOfValues(request, words, values.data(), bytes).chunk, *chunk.buffer, chunk.bytes);
  values.replace(chunk.buffer, chunk.buffer_bytes);
  chunk.bytes = bytes;
  return kOk;
}

}  // namespace

extern "C" [[gnu::noinline]] std::size_t pyfilter_filter(unsigned flags, std::size_t word_count, const unsigned words[],
                                                         std::size_t bytes, std::size_t* buffer_bytes, void** buffer) {
  // HDF5 2.0 skips set_local for variable-length types but calls the filter on their heap references, which must pass
  // through unchanged.
  if (!is_stamped(words, word_count)) return bytes;
  const Hdf5& hdf5 = hdf5_of(PYF_RETURN_ADDRESS());
  Chunk chunk{bytes, buffer_bytes, buffer};
  const bool decoding = (flags & kFlagReverse) != 0;
  const bool ok = guarded_callback(hdf5, decoding ? "decode" : "encode", [&] {
    if (is_of_records(words, word_count))
      return decoding ? decode_records_chunk(hdf5, words, word_count, chunk)
                      : encode_records_chunk(hdf5, words, word_count, chunk);
    Request request;
    PYF_TRY(parse_stored(words, word_count, &request));
    Words given;
    given.count = std::min(word_count, given.values.size());
    std::copy_n(words, given.count, given.values.begin());
    return decoding ? decode_chunk(hdf5, request, given, chunk) : encode_chunk(hdf5, request, given, chunk);
  });
  return ok ? chunk.bytes : 0;
}

}  // namespace pyfilter::filter
