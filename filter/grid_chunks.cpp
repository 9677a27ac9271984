// SPDX-License-Identifier: BSD-3-Clause
// Many chunks between a file and an array in one call (c_api.h), shared by the library's threads: for small ones,
// Python takes longer for each than the codecs. What is unusual with a chunk is left to whoever calls.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "core/api.hpp"
#include "core/error_text.hpp"
#include "core/prefetch.hpp"
#include "core/request.hpp"
#include "core/threads.hpp"
#include "filter/c_api.h"
#include "filter/c_request.hpp"
#include "filter/guard.hpp"
#include "filter/stored_chunks.hpp"

namespace pyfilter::filter {
namespace {

constexpr std::uint64_t kPieceBytes = 1 << 20;   // of values, that a thread takes at a time
constexpr std::uint64_t kRowsAskedAhead = 2048;  // bytes

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<std::uint8_t, Free>;

Memory allocate(std::size_t bytes) {
  return Memory(static_cast<std::uint8_t*>(std::malloc(std::max(bytes, sizeof(int)))));
}

void copy_items(std::uint8_t* to, std::int64_t to_stride, const std::uint8_t* from, std::int64_t from_stride,
                std::uint64_t count, std::size_t item) {
  const auto each = [&](auto bytes) {
    for (std::uint64_t i = 0; i < count; ++i)
      std::memcpy(to + static_cast<std::int64_t>(i) * to_stride, from + static_cast<std::int64_t>(i) * from_stride,
                  bytes);
  };
  const auto whole = static_cast<std::int64_t>(item);
  if (to_stride == whole && from_stride == whole)
    std::memcpy(to, from, count * item);
  else if (item == 4)
    each(std::integral_constant<std::size_t, 4>{});
  else if (item == 8)
    each(std::integral_constant<std::size_t, 8>{});
  else
    each(item);
}

// The chunks of an array, by number in C order of their grid.
class Chunks {
 public:
  explicit Chunks(const pyf_grid& grid) : grid_(grid) {
    bytes_ = grid.item_bytes;
    for (int axis = rank() - 1; axis >= 0; --axis) {
      inner_[axis] = bytes_;
      bytes_ *= grid.chunk[axis];
      count_[axis] = (grid.begin[axis] + grid.extents[axis] + grid.chunk[axis] - 1) / grid.chunk[axis];
    }
  }

  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }  // of a chunk
  [[nodiscard]] std::uint64_t count() const {
    std::uint64_t all = 1;
    for (int axis = 0; axis < rank(); ++axis) all *= count_[axis];
    return all;
  }

  // What the array has of a chunk.
  struct Part {
    std::uint8_t* first;  // in the array
    std::uint64_t low[kMaxRank], extent[kMaxRank];
    bool whole = true;
  };
  [[nodiscard]] Part part(std::uint64_t number) const {
    Part part;
    part.first = static_cast<std::uint8_t*>(grid_.values);
    for (int axis = rank() - 1; axis >= 0; --axis) {
      const std::uint64_t chunk = grid_.chunk[axis], begin = grid_.begin[axis], start = number % count_[axis] * chunk,
                          stop = std::min(start + chunk, begin + grid_.extents[axis]);
      number /= count_[axis];
      part.low[axis] = start < begin ? begin - start : 0;
      part.extent[axis] = stop - start - part.low[axis];
      part.first += static_cast<std::int64_t>(start + part.low[axis] - begin) * grid_.strides[axis];
      part.whole = part.whole && part.extent[axis] == chunk;
    }
    return part;
  }

  // Whether a part lies in the array as the whole chunk is, one value behind the other.
  [[nodiscard]] bool in_place(const Part& part) const {
    if (!part.whole || reinterpret_cast<std::uintptr_t>(part.first) % grid_.item_bytes != 0) return false;
    for (int axis = 0; axis < rank(); ++axis)
      if (grid_.chunk[axis] != 1 && grid_.strides[axis] != static_cast<std::int64_t>(inner_[axis])) return false;
    return true;
  }

  // Between the array and a whole chunk's values.
  void gather(const Part& part, std::uint8_t* block) const { copy<false>(part, 0, part.first, block + offset(part)); }
  void scatter(const Part& part, std::uint8_t* block) const { copy<true>(part, 0, part.first, block + offset(part)); }

 private:
  [[nodiscard]] int rank() const { return static_cast<int>(grid_.rank); }
  [[nodiscard]] std::uint64_t offset(const Part& part) const {
    std::uint64_t at = 0;
    for (int axis = 0; axis < rank(); ++axis) at += part.low[axis] * inner_[axis];
    return at;
  }
  template <bool kToArray>
  void copy(const Part& part, int axis, std::uint8_t* array, std::uint8_t* block) const {
    const std::int64_t stride = grid_.strides[axis];
    const auto inner = static_cast<std::int64_t>(inner_[axis]);
    if (axis == rank() - 1) {
      if constexpr (kToArray)
        copy_items(array, stride, block, inner, part.extent[axis], grid_.item_bytes);
      else
        copy_items(block, inner, array, stride, part.extent[axis], grid_.item_bytes);
      return;
    }
    const std::uint64_t row = part.extent[rank() - 1] * grid_.item_bytes,
                        ahead = std::clamp<std::uint64_t>(kRowsAskedAhead / std::max<std::uint64_t>(row, 1), 1, 32);
    for (std::uint64_t i = 0; i < part.extent[axis]; ++i, array += stride, block += inner) {
      // rows lie in pages of their own, so that the processor does not find the next by itself
      if (axis == rank() - 2) {
        if (i + ahead < part.extent[axis]) ask<kToArray>(array + static_cast<std::int64_t>(ahead) * stride, row);
      } else if (axis == rank() - 3 && i + 1 < part.extent[axis]) {
        for (std::uint64_t k = 0; k < std::min(ahead, part.extent[axis + 1]); ++k)
          ask<kToArray>(array + stride + static_cast<std::int64_t>(k) * grid_.strides[axis + 1], row);
      }
      copy<kToArray>(part, axis + 1, array, block);
    }
  }
  template <bool kToArray>
  static void ask(const std::uint8_t* at, std::uint64_t bytes) {
    bytes = std::min(bytes, kRowsAskedAhead);
    if constexpr (kToArray) {
      ask_for_stores(at, 0, bytes);
    } else {
      for (std::uint64_t line = 0; line < bytes; line += 64) __builtin_prefetch(at + line);
    }
  }

  const pyf_grid& grid_;
  std::uint64_t bytes_;
  std::uint64_t inner_[kMaxRank], count_[kMaxRank];
};

// What a call does with its chunks, a piece of them at a time.
struct Work {
  const Chunks& chunks;
  std::size_t count;
  std::uint64_t a_piece;
  // reading
  int file = -1;
  pyf_range* ranges = nullptr;
  Dtype dtype = {};
  // encoding
  const Request* request = nullptr;
  const void* padding = nullptr;
  std::size_t item_bytes = 0, frame_stride = 0;
  std::uint8_t* frames = nullptr;
  std::uint64_t* frame_bytes = nullptr;
};

Status read_chunk(const Work& all, std::size_t number, const std::uint8_t* frame, std::uint8_t* block) {
  const std::size_t size = all.ranges[number].bytes;
  FrameInfo info;
  PYF_TRY(frame_info(frame, size, &info));
  if (info.value_bytes != all.chunks.bytes() || info.dtype != all.dtype)
    return fail(Code::corrupt, "a frame of another array than the chunk");
  const Chunks::Part part = all.chunks.part(number);
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
    const Chunks::Part part = all.chunks.part(i);
    const std::uint8_t* values = part.first;
    if (!all.chunks.in_place(part)) {
      if (!block) continue;
      if (!part.whole)
        copy_items(block.get(), static_cast<std::int64_t>(all.item_bytes),
                   static_cast<const std::uint8_t*>(all.padding), 0, all.chunks.bytes() / all.item_bytes,
                   all.item_bytes);
      all.chunks.gather(part, block.get());
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

Status check(const pyf_grid* grid, std::size_t count) {
  if (grid == nullptr) return fail(Code::invalid_argument, "grid is NULL");
  if (grid->rank < 1 || grid->rank > static_cast<std::uint32_t>(kMaxRank))
    return fail(Code::invalid_argument, "the grid has %u dimensions, allowed: 1 to %d", grid->rank, kMaxRank);
  for (std::uint32_t axis = 0; axis < grid->rank; ++axis)
    if (grid->chunk[axis] == 0 || grid->begin[axis] >= grid->chunk[axis])
      return fail(Code::invalid_argument, "the first chunk begins %llu values before the array, chunks have %llu",
                  static_cast<unsigned long long>(grid->begin[axis]),
                  static_cast<unsigned long long>(grid->chunk[axis]));
  const std::uint64_t chunks = Chunks(*grid).count();
  if (chunks != count)
    return fail(Code::invalid_argument, "the grid has %llu chunks, not %zu", static_cast<unsigned long long>(chunks),
                count);
  return kOk;
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
                            PYF_TRY(check(grid, count));
                            const Chunks chunks(*grid);
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
                            PYF_TRY(check(grid, count));
                            const Chunks chunks(*grid);
                            Work work{chunks, count, 1};
                            work.request = &checked;
                            work.padding = padding;
                            work.item_bytes = grid->item_bytes;
                            work.frame_stride = frame_stride;
                            work.frames = static_cast<std::uint8_t*>(frames);
                            work.frame_bytes = frame_bytes;
                            share(work, threads, encode_piece);
                            return kOk;
                          }).code);
}
