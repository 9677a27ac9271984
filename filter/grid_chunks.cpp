// SPDX-License-Identifier: BSD-3-Clause
// Reads or encodes many chunks in one call (c_api.h), with the library's threads. For each small chunk Python would
// take longer than the codec. Unusual chunks (never written, damaged) are left to the caller.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "core/api.hpp"
#include "core/error_text.hpp"
#include "core/request.hpp"
#include "core/threads.hpp"
#include "filter/c_api.h"
#include "filter/c_request.hpp"
#include "filter/chunk_grid.hpp"
#include "filter/guard.hpp"
#include "filter/stored_chunks.hpp"

namespace pyfilter::filter {
namespace {

constexpr std::uint64_t kPieceBytes = 1 << 20;  // of values that a thread takes at a time

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<std::uint8_t, Free>;

Memory allocate(std::size_t bytes) {
  return Memory(static_cast<std::uint8_t*>(std::malloc(std::max(bytes, sizeof(int)))));
}

// The arguments of a call; a thread takes `a_piece` chunks at a time.
struct Work {
  const ChunkGrid& chunks;
  std::size_t count;
  std::uint64_t a_piece;
  // reading
  int file = -1;
  pyf_range* ranges = nullptr;
  Dtype dtype = {};
  // encoding
  const Request* request = nullptr;
  const void* padding = nullptr;
  std::size_t frame_stride = 0;
  std::uint8_t* frames = nullptr;
  std::uint64_t* frame_bytes = nullptr;
};

Status read_chunk(const Work& all, std::size_t number, const std::uint8_t* frame, std::uint8_t* block) {
  const std::size_t size = all.ranges[number].bytes;
  FrameInfo info;
  PYF_TRY(frame_info(frame, size, &info));
  if (info.value_bytes != all.chunks.bytes() || info.dtype != all.dtype)
    return fail(Code::corrupt, "the frame's shape or dtype is not the chunk's");
  const ChunkGrid::Part part = all.chunks.part(number);
  if (all.chunks.in_place(part)) return decode(frame, size, part.first, all.chunks.bytes());
  PYF_TRY(decode(frame, size, block, all.chunks.bytes()));
  all.chunks.scatter(part, block);
  return kOk;
}

void read_piece(void* context, std::uint64_t piece) noexcept {
  const Work& all = *static_cast<Work*>(context);
  const std::size_t begin = piece * all.a_piece, end = std::min<std::size_t>(begin + all.a_piece, all.count);
  std::uint64_t longest = 0;
  for (std::size_t i = begin; i < end; ++i) longest = std::max(longest, all.ranges[i].bytes);
  const Memory frame = allocate(longest), block = allocate(all.chunks.bytes());
  for (std::size_t i = begin; i < end; ++i) {
    pyf_range range = all.ranges[i];
    all.ranges[i].done = 0;
    if (!frame || !block || range.bytes == 0) continue;
    range.to = frame.get();
    read_range(all.file, range);
    const bool here = range.done == range.bytes;
    if (here && guarded([&] { return read_chunk(all, i, frame.get(), block.get()); }).ok())
      all.ranges[i].done = range.bytes;
  }
}

void encode_piece(void* context, std::uint64_t piece) noexcept {
  const Work& all = *static_cast<Work*>(context);
  const std::size_t begin = piece * all.a_piece, end = std::min<std::size_t>(begin + all.a_piece, all.count);
  const Memory block = allocate(all.chunks.bytes());
  for (std::size_t i = begin; i < end; ++i) {
    all.frame_bytes[i] = 0;
    const ChunkGrid::Part part = all.chunks.part(i);
    const std::uint8_t* values = part.first;
    if (!all.chunks.in_place(part)) {
      if (!block) continue;
      all.chunks.gather(part, all.padding, block.get());
      values = block.get();
    }
    std::size_t made = 0;
    const Status status = guarded([&] {
      return encode(*all.request, values, all.chunks.bytes(), all.frames + i * all.frame_stride, all.frame_stride,
                    &made);
    });
    if (status.ok()) all.frame_bytes[i] = made;
  }
}

void share(Work& work, int threads, void (*piece)(void*, std::uint64_t) noexcept) {
  work.a_piece = std::max<std::uint64_t>(kPieceBytes / std::max<std::uint64_t>(work.chunks.bytes(), 1), 1);
  parallel_for(threads, (work.count + work.a_piece - 1) / work.a_piece, piece, &work);
}

}  // namespace
}  // namespace pyfilter::filter

using namespace pyfilter;
using namespace pyfilter::filter;

int pyf_read_grid(const pyf_grid* grid, uint8_t dtype, int file, pyf_range* ranges, size_t count, int threads) {
  return static_cast<int>(guarded([&] {
                            PYF_TRY(check_grid(grid, count));
                            const ChunkGrid chunks(*grid);
                            Work work{chunks, count, 1};
                            work.file = file;
                            work.ranges = ranges;
                            work.dtype = static_cast<Dtype>(dtype);
                            share(work, threads, read_piece);
                            return kOk;
                          }).code);
}

int pyf_encode_grid(const pyf_request* request, const pyf_grid* grid, const void* padding, void* frames,
                    size_t frame_stride, uint64_t* frame_bytes, size_t count, int threads) {
  return static_cast<int>(guarded([&] {
                            Request checked;
                            PYF_TRY(to_request(request, &checked));
                            PYF_TRY(check_grid(grid, count));
                            const ChunkGrid chunks(*grid);
                            Work work{chunks, count, 1};
                            work.request = &checked;
                            work.padding = padding;
                            work.frame_stride = frame_stride;
                            work.frames = static_cast<std::uint8_t*>(frames);
                            work.frame_bytes = frame_bytes;
                            share(work, threads, encode_piece);
                            return kOk;
                          }).code);
}
