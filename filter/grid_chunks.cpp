// SPDX-License-Identifier: BSD-3-Clause
// Reads or encodes many chunks in one call (c_api.h), with the library's threads. For each small chunk Python would
// take longer than the codec. Unusual chunks (never written, damaged) are left to the caller.
#include <algorithm>
#include <atomic>

#include "core/api.hpp"
#include "core/error_text.hpp"
#include "core/request.hpp"
#include "core/threads.hpp"
#include "filter/c_api.h"
#include "filter/c_request.hpp"
#include "filter/chunk_grid.hpp"
#include "filter/grid_encoding.hpp"
#include "filter/guard.hpp"
#include "filter/stored_chunks.hpp"

namespace pyfilter::filter {
namespace {

// Calls work.take(chunk, memory) for all chunks, some at a time, by threads with memory of their own.
template <class Work>
void share(const Work& work, std::uint64_t count, std::uint64_t chunk_bytes, int threads) {
  struct Turns {
    const Work& work;
    const std::uint64_t count, each;
    std::atomic<std::uint64_t> next{0};
  } turns{work, count, chunks_of_piece(chunk_bytes)};
  const auto turn = [](void* context, std::uint64_t) noexcept {
    Turns& all = *static_cast<Turns*>(context);
    typename Work::ThreadMemory memory;
    for (;;) {
      const std::uint64_t begin = all.next.fetch_add(all.each), end = std::min(begin + all.each, all.count);
      if (begin >= all.count) return;
      for (std::uint64_t i = begin; i < end; ++i) all.work.take(i, memory);
    }
  };
  const std::uint64_t pieces = (count + turns.each - 1) / turns.each;
  if (!are_side_by_side(count, chunk_bytes, threads)) threads = 1;
  parallel_for(threads, std::min(pieces, static_cast<std::uint64_t>(std::max(threads, 1))), turn, &turns);
}

struct GridReading {
  struct ThreadMemory {
    Memory frame, block;
    std::uint64_t frame_bytes = 0;
  };
  const ChunkGrid& chunks;
  Dtype dtype;
  int file;
  pyf_range* ranges;

  void take(std::size_t number, ThreadMemory& memory) const noexcept {
    pyf_range range = ranges[number];
    ranges[number].done = 0;
    if (range.bytes == 0) return;
    if (range.bytes > memory.frame_bytes) {
      memory.frame.reset();
      memory.frame_bytes = 0;
      memory.frame = allocate(range.bytes);
      if (!memory.frame) return;
      memory.frame_bytes = range.bytes;
    }
    range.to = memory.frame.get();
    read_range(file, range);
    if (range.done != range.bytes) return;
    if (guarded([&] { return place(number, memory); }).ok()) ranges[number].done = range.bytes;
  }

 private:
  // Decodes a frame to its place in the array.
  Status place(std::size_t number, ThreadMemory& memory) const {
    const std::size_t size = ranges[number].bytes, bytes = chunks.bytes();
    const std::uint8_t* const frame = memory.frame.get();
    FrameInfo info;
    PYF_TRY(frame_info(frame, size, &info));
    if (info.value_bytes != bytes || info.dtype != dtype)
      return fail(Code::corrupt, "the frame's shape or dtype is not the chunk's");
    const ChunkGrid::Part part = chunks.part(number);
    if (chunks.in_place(part)) return decode(frame, size, part.first, bytes);
    if (!memory.block) memory.block = allocate(bytes);
    if (!memory.block) return fail(Code::no_memory, "no memory for the %zu bytes of a chunk", bytes);
    PYF_TRY(decode(frame, size, memory.block.get(), bytes));
    chunks.scatter(part, memory.block.get());
    return kOk;
  }
};

struct GridEncoding {
  using ThreadMemory = Memory;
  Encoding encoding;
  std::uint8_t* frames;
  std::size_t stride;
  std::uint64_t* frame_bytes;

  void take(std::size_t number, Memory& block) const noexcept {
    frame_bytes[number] = encoding.encode_chunk(number, block, frames + number * stride, stride);
  }
};

}  // namespace
}  // namespace pyfilter::filter

using namespace pyfilter;
using namespace pyfilter::filter;

int pyf_read_grid(const pyf_grid* grid, uint8_t dtype, int file, pyf_range* ranges, size_t count, int threads) {
  return static_cast<int>(guarded([&] {
                            PYF_TRY(check_grid(grid, count));
                            const ChunkGrid chunks(*grid);
                            const GridReading reading{chunks, static_cast<Dtype>(dtype), file, ranges};
                            share(reading, count, chunks.bytes(), threads);
                            return kOk;
                          }).code);
}

int pyf_encode_grid(const pyf_request* request, const pyf_grid* grid, const void* padding, void* frames,
                    size_t frame_stride, uint64_t* frame_bytes, size_t count, int threads) {
  return static_cast<int>(
      guarded([&] {
        Request checked;
        PYF_TRY(to_request(request, &checked));
        PYF_TRY(check_grid(grid, count));
        const ChunkGrid chunks(*grid);
        const GridEncoding encoding{
            {chunks, checked, padding}, static_cast<std::uint8_t*>(frames), frame_stride, frame_bytes};
        share(encoding, count, chunks.bytes(), threads);
        return kOk;
      }).code);
}
