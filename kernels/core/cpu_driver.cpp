// SPDX-License-Identifier: BSD-3-Clause
// Shares the units of a chunk among threads (cpu_driver.hpp): decoding is here, encoding in encode_job.hpp.
#include "core/cpu_driver.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>

#include "core/encode_job.hpp"
#include "core/error_text.hpp"
#include "core/settings.hpp"
#include "core/threads.hpp"
#include "core/tile_shape.hpp"
#include "core/wire.hpp"

namespace pyfilter {
namespace {

struct Free {
  void operator()(void* p) const { std::free(p); }
};
using Buffer = std::unique_ptr<std::uint8_t, Free>;

Buffer allocate(std::size_t bytes) {
  return Buffer(static_cast<std::uint8_t*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64)));
}

// Memory of one thread, kept from call to call; it grows and never shrinks.
struct ThreadBuffer {
  Buffer buffer;
  std::size_t bytes = 0;

  std::uint8_t* get(std::size_t wanted) {
    if (bytes < wanted) {
      buffer = allocate(wanted);
      bytes = buffer ? wanted : 0;
    }
    return buffer.get();
  }
};
thread_local ThreadBuffer scratch_buffer, segment_buffer, keeping_buffer;

Status no_memory() { return fail(Code::no_memory, "no memory for the codec's scratch buffers"); }

// Returns how many units a thread decodes together, of `units` in all. Where several tiles share a row of values, that
// is whole rows of tiles, if every thread gets enough of them. Otherwise two threads would write to the cache lines at
// the border of two tiles.
std::uint64_t decoded_together(const Plan& plan, std::uint64_t units, int threads) {
  const std::uint64_t least = units_of_tiles(plan, kSegmentTiles), row = plan.grid.gx;
  if (!plan.grid.packed || plan.grid.block_dims == kChain || plan.unit_tiles != 1 || row >= units) return least;
  const std::uint64_t rows = (least + row - 1) / row * row;
  return units / rows >= 4 * static_cast<std::uint64_t>(threads) ? rows : least;
}

struct DecodeJob {
  const Plan& plan;
  const TileCoder& coder;
  const std::uint8_t* directory;
  const std::uint8_t* tiles;
  std::uint64_t first_unit, last_unit, of_segment, start, stop;
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
    const std::uint64_t from = first_unit + segment * of_segment, to = std::min(from + of_segment, last_unit);
    for (std::uint64_t unit = from; unit < to && !failed; ++unit) {
      const auto entry = load_le<std::uint32_t>(directory + 4 * unit);
      const auto next = load_le<std::uint32_t>(directory + 4 * (unit + 1));
      const std::size_t begin = 4 * static_cast<std::size_t>(entry & ~kUniformBit);
      const std::size_t end = 4 * static_cast<std::size_t>(next & ~kUniformBit);
      const Status s =
          coder.decode(plan, tiles + begin, end - begin, (entry & kUniformBit) != 0, unit, start, stop, out);
      if (!s.ok()) report(s);
    }
  }
};

}  // namespace

std::uint8_t* thread_scratch(std::size_t bytes) noexcept { return scratch_buffer.get(bytes); }
std::uint8_t* thread_keeping(std::size_t bytes) noexcept { return keeping_buffer.get(bytes); }

Status encode_tiles(const Plan& plan, const TileCoder& coder, const void* values, std::uint8_t* out, std::size_t limit,
                    std::size_t* bytes) noexcept {
  *bytes = 0;
  if (plan.units() >= limit / 4) return kOk;
  const std::size_t directory_bytes = 4 * static_cast<std::size_t>(plan.units() + 1);
  if (directory_bytes >= limit) return kOk;
  const int most = resolved_threads();
  const std::uint64_t of_segment = segment_units(plan, most);
  const auto threads =
      static_cast<int>(std::min<std::uint64_t>(segments_of(plan, of_segment), static_cast<unsigned>(most)));
  EncodeJob job(plan, coder, values, out, out + directory_bytes, limit - directory_bytes, of_segment, threads);
  parallel_for(
      threads, static_cast<std::uint64_t>(threads),
      [](void* context, std::uint64_t) {
        auto& own = *static_cast<EncodeJob*>(context);
        own.run(scratch_buffer.get(own.plan().scratch_bytes), segment_buffer.get(own.buffer_bytes()));
      },
      &job);
  if (job.out_of_memory()) return no_memory();
  if (job.full()) return kOk;
  store_le(out + 4 * plan.units(), static_cast<std::uint32_t>(job.used() / 4));
  *bytes = directory_bytes + job.used();
  return kOk;
}

Status encoded_bytes(const Plan& plan, const TileCoder& coder, const void* values, std::size_t* bytes) noexcept {
  std::uint8_t* const scratch = scratch_buffer.get(kScratchBytes);
  std::uint8_t* const tile = segment_buffer.get(kMaxTileBytes + kTileSlackBytes);
  if (scratch == nullptr || tile == nullptr) return no_memory();
  *bytes = 4 * static_cast<std::size_t>(plan.units() + 1);
  for (std::uint64_t unit = 0; unit < plan.units(); ++unit)
    *bytes += coder.encode(plan, values, unit, scratch, tile).bytes;
  return kOk;
}

Status decode_tiles(const Plan& plan, const TileCoder& coder, const std::uint8_t* payload, std::size_t payload_bytes,
                    std::uint64_t start, std::uint64_t stop, void* out) noexcept {
  const std::uint64_t units = plan.units();
  if (units >= payload_bytes / 4)
    return fail(Code::corrupt, "corrupt frame: too short for a directory of %llu entries",
                static_cast<unsigned long long>(units));
  const std::size_t directory_bytes = 4 * static_cast<std::size_t>(units + 1);
  std::uint32_t before = 0;
  for (std::uint64_t t = 0; t <= units; ++t) {
    const auto entry = load_le<std::uint32_t>(payload + 4 * t);
    const std::uint32_t offset = entry & ~kUniformBit;
    if (offset < before || (t == 0 && offset != 0) || (t == units && entry != offset))
      return fail(Code::corrupt, "corrupt frame: directory entry %llu is invalid", static_cast<unsigned long long>(t));
    before = offset;
  }
  if (directory_bytes + 4 * std::size_t{before} != payload_bytes)
    return fail(Code::corrupt, "corrupt frame: the tiles do not fill the frame");
  if (start >= stop) return kOk;
  DecodeJob job{plan, coder, payload, payload + directory_bytes, 0, 0, 0, start, stop, out, {}, {}, {}};
  tiles_of_range(plan.grid, start, stop, &job.first_unit, &job.last_unit);
  job.first_unit /= plan.unit_tiles;
  job.last_unit = (job.last_unit - 1) / plan.unit_tiles + 1;
  const std::uint64_t wanted = job.last_unit - job.first_unit;
  const int threads = resolved_threads();
  job.of_segment = decoded_together(plan, wanted, threads);
  parallel_for(
      threads, (wanted + job.of_segment - 1) / job.of_segment,
      [](void* context, std::uint64_t i) { static_cast<DecodeJob*>(context)->decode_segment(i); }, &job);
  if (!job.status.ok()) return fail(job.status.code, "%s", job.status.text);
  return kOk;
}

}  // namespace pyfilter
