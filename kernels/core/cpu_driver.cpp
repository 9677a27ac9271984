// SPDX-License-Identifier: BSD-3-Clause
// Tiles over threads (cpu_driver.hpp). Work is handed out in segments of neighbouring tiles. An encoded segment goes
// to its place as soon as the one before it is there, so the bytes do not depend on the number of threads.
#include "core/cpu_driver.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>

#include "core/error_text.hpp"
#include "core/settings.hpp"
#include "core/threads.hpp"
#include "core/wire.hpp"

namespace pyfilter {
namespace {

constexpr std::uint64_t kSegmentTiles = 32;  // half a megabyte of f32
constexpr std::uint32_t kUniformBit = 0x80000000u;

struct Free {
  void operator()(void* p) const { std::free(p); }
};
using Buffer = std::unique_ptr<std::uint8_t, Free>;

Buffer allocate(std::size_t bytes) {
  return Buffer(static_cast<std::uint8_t*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64)));
}

// What a thread needs to encode, kept between calls: scratch for a tile, and a segment.
struct ThreadMemory {
  Buffer scratch, segment;

  bool ready() {
    if (!scratch) scratch = allocate(kScratchBytes);
    if (!segment) segment = allocate(kSegmentTiles * kMaxTileBytes + kTileSlackBytes);
    return scratch && segment;
  }
};
thread_local ThreadMemory memory;

std::uint64_t segments_of(std::uint64_t tiles) { return (tiles + kSegmentTiles - 1) / kSegmentTiles; }

Status no_memory() { return fail(Code::no_memory, "no memory for the codec's scratch buffers"); }

struct EncodeJob {
  const Plan& plan;
  const TileCoder& coder;
  const void* values;
  std::uint8_t* directory;
  std::uint8_t* tiles;
  std::size_t limit;  // bytes for tiles

  std::mutex mutex;
  std::condition_variable placed;
  std::uint64_t next_segment = 0;  // segments before it have their place
  std::size_t used = 0;
  std::atomic<bool> full{false}, out_of_memory{false};

  void encode_segment(std::uint64_t segment) {
    const std::uint64_t first = segment * kSegmentTiles, last = std::min(first + kSegmentTiles, plan.grid.tiles);
    std::uint32_t offsets[kSegmentTiles];  // bytes from the segment's start, and the uniform bit
    std::uint32_t size = 0;
    if (!memory.ready()) out_of_memory = true;
    if (!full && !out_of_memory) {
      for (std::uint64_t tile = first; tile < last; ++tile) {
        const EncodedTile encoded = coder.encode(plan, values, tile, memory.scratch.get(), memory.segment.get() + size);
        offsets[tile - first] = size | (encoded.uniform ? kUniformBit : 0);
        size += encoded.bytes;
      }
    }
    std::unique_lock<std::mutex> lock(mutex);
    placed.wait(lock, [&] { return next_segment == segment; });
    const std::size_t from = used;
    if (size >= limit - from) full = true;
    const bool write = !full && !out_of_memory;
    if (write) used = from + size;
    ++next_segment;
    lock.unlock();
    placed.notify_all();
    if (!write) return;
    std::memcpy(tiles + from, memory.segment.get(), size);
    for (std::uint64_t tile = first; tile < last; ++tile) {
      const std::uint32_t offset = offsets[tile - first];
      const std::uint32_t words = static_cast<std::uint32_t>((from + (offset & ~kUniformBit)) / 4);
      store_le(directory + 4 * tile, words | (offset & kUniformBit));
    }
  }
};

struct DecodeJob {
  const Plan& plan;
  const TileCoder& coder;
  const std::uint8_t* directory;
  const std::uint8_t* tiles;
  std::uint64_t first_tile, last_tile, start, stop;
  void* out;

  std::atomic<bool> failed{false};
  std::mutex mutex;
  Status status;

  void report(Status s) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (status.ok()) status = s;
    failed = true;
  }

  void decode_segment(std::uint64_t segment) {
    const std::uint64_t from = first_tile + segment * kSegmentTiles, to = std::min(from + kSegmentTiles, last_tile);
    for (std::uint64_t tile = from; tile < to && !failed; ++tile) {
      const auto entry = load_le<std::uint32_t>(directory + 4 * tile);
      const auto next = load_le<std::uint32_t>(directory + 4 * (tile + 1));
      const std::size_t begin = 4 * static_cast<std::size_t>(entry & ~kUniformBit);
      const std::size_t end = 4 * static_cast<std::size_t>(next & ~kUniformBit);
      const Status s =
          coder.decode(plan, tiles + begin, end - begin, (entry & kUniformBit) != 0, tile, start, stop, out);
      if (!s.ok()) report(s);
    }
  }
};

}  // namespace

Status encode_tiles(const Plan& plan, const TileCoder& coder, const void* values, std::uint8_t* out, std::size_t limit,
                    std::size_t* bytes) noexcept {
  *bytes = 0;
  const std::uint64_t entries = plan.grid.tiles + 1;
  if (plan.grid.tiles >= limit / 4) return kOk;
  const std::size_t directory_bytes = 4 * static_cast<std::size_t>(entries);
  if (directory_bytes >= limit) return kOk;
  EncodeJob job{plan, coder, values, out, out + directory_bytes, limit - directory_bytes, {}, {}, 0, 0, {}, {}};
  parallel_for(
      resolved_threads(), segments_of(plan.grid.tiles),
      [](void* context, std::uint64_t i) { static_cast<EncodeJob*>(context)->encode_segment(i); }, &job);
  if (job.out_of_memory) return no_memory();
  if (job.full) return kOk;
  store_le(out + 4 * plan.grid.tiles, static_cast<std::uint32_t>(job.used / 4));
  *bytes = directory_bytes + job.used;
  return kOk;
}

Status decode_tiles(const Plan& plan, const TileCoder& coder, const std::uint8_t* payload, std::size_t payload_bytes,
                    std::uint64_t start, std::uint64_t stop, void* out) noexcept {
  const std::uint64_t tiles = plan.grid.tiles;
  if (tiles >= payload_bytes / 4)
    return fail(Code::corrupt, "corrupt frame: no room for the directory of %llu tiles",
                static_cast<unsigned long long>(tiles));
  const std::size_t directory_bytes = 4 * static_cast<std::size_t>(tiles + 1);
  std::uint32_t before = 0;
  for (std::uint64_t t = 0; t <= tiles; ++t) {
    const auto entry = load_le<std::uint32_t>(payload + 4 * t);
    const std::uint32_t offset = entry & ~kUniformBit;
    if (offset < before || (t == 0 && offset != 0) || (t == tiles && entry != offset))
      return fail(Code::corrupt, "corrupt frame: directory entry %llu", static_cast<unsigned long long>(t));
    before = offset;
  }
  if (directory_bytes + 4 * std::size_t{before} != payload_bytes)
    return fail(Code::corrupt, "corrupt frame: the tiles do not fill the frame");
  if (start >= stop) return kOk;
  DecodeJob job{plan, coder, payload, payload + directory_bytes, 0, 0, start, stop, out, {}, {}, {}};
  tiles_of_range(plan.grid, start, stop, &job.first_tile, &job.last_tile);
  parallel_for(
      resolved_threads(), segments_of(job.last_tile - job.first_tile),
      [](void* context, std::uint64_t i) { static_cast<DecodeJob*>(context)->decode_segment(i); }, &job);
  if (!job.status.ok()) return fail(job.status.code, "%s", job.status.text);
  return kOk;
}

}  // namespace pyfilter
