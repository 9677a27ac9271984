// SPDX-License-Identifier: BSD-3-Clause
// The order of a chunk of particles (particles/driver.hpp). The sort is stable, so the number of threads changes
// nothing.
#include "particles/driver.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <memory>
#include <new>

#include "core/cpu_driver.hpp"
#include "core/error_text.hpp"
#include "core/request.hpp"
#include "core/settings.hpp"
#include "core/threads.hpp"
#include "core/wire.hpp"
#include "particles/key.hpp"

namespace pyfilter {
namespace {

constexpr std::uint64_t kSampledTiles = 8;
// The most scratch memory of sorting besides its entries; more would exceed the memory allowed for large chunks.
constexpr std::size_t kMostExtra = std::size_t{4} << 20;

std::size_t particle_bytes(const ParticlePlan& plan) {
  return static_cast<std::size_t>(plan.grid.block_dims) * dtype_bytes(plan.dtype);
}

std::uint64_t count_particles(const ParticlePlan& plan) {
  return plan.grid.values / static_cast<std::uint64_t>(plan.grid.block_dims);
}

// The number of particles before the padding.
std::uint32_t before_padding(const ParticlePlan& plan, const void* values) {
  const std::size_t size = dtype_bytes(plan.dtype), bytes = particle_bytes(plan);
  const auto* const from = static_cast<const std::uint8_t*>(values);
  const auto is_padding = [&](std::uint32_t particle) {
    for (std::size_t at = 0; at < bytes; at += size) {
      const std::uint8_t* const value = from + particle * bytes + at;
      const std::uint64_t bits = size == 4 ? load_le<std::uint32_t>(value) : load_le<std::uint64_t>(value);
      if (bits != 0 && !(plan.has_sentinel && bits == plan.sentinel)) return false;
    }
    return true;
  };
  auto count = static_cast<std::uint32_t>(count_particles(plan));
  while (count != 0 && is_padding(count - 1)) --count;
  return count;
}

struct TileJob {
  const ParticlePlan& plan;
  const ParticleCoder& coder;
  const void* values;
  std::uint32_t* particles;
  std::uint32_t count;
  std::atomic<bool> out_of_memory{false};

  void order_tile(std::uint64_t tile) {
    std::uint8_t* const scratch = thread_scratch(kParticleScratchBytes);
    if (scratch == nullptr) {
      out_of_memory = true;
      return;
    }
    const auto first = static_cast<std::uint32_t>(tile * kTileParticles);
    coder.order_tile(plan, values, particles + first, std::min(kTileParticles, count - first), scratch);
  }
};

Status no_memory() { return fail(Code::no_memory, "no memory to sort the particles of a chunk"); }

// Sorts entries (key, index) by all their bits. In place if there is no scratch memory. For a chunk of pairs of f32,
// entries are as large as values: a second array would exceed a filter's memory. A pass over the keys' highest bits
// moves each entry into its bucket; then threads sort the buckets, by digits if scratch memory suffices.
class EntrySort {
 public:
  static constexpr std::uint32_t kSortedBucket = 16384, kTileBucket = 256;  // entries of a bucket: in place, for tiles

  // Entries differ only in the bits below `top`; they are divided into buckets of about `bucket` entries.
  EntrySort(const ParticleCoder& coder, std::uint64_t* entries, std::uint32_t count, int top,
            std::uint32_t bucket_entries)
      : coder_(coder), entries_(entries), top_(top) {
    const int digit_bits = std::clamp(static_cast<int>(std::bit_width(count / bucket_entries)), 1, kMostDigit);
    shift_ = std::max(32, top - digit_bits);
    // two counters: neighbours often have the same digit, and would wait for each other's counter
    const std::uint32_t half = count / 2;
    for (std::uint32_t i = 0; i < half; ++i) {
      ++end_[digit(entries[i])];
      ++end_[digit(entries[half + i])];
    }
    if (count % 2 != 0) ++end_[digit(entries[count - 1])];
    for (std::uint32_t part = 1; part < kParts; ++part) end_[part] += end_[part - 1];
  }
  static int bits_of(const std::uint64_t* entries, std::uint32_t count) {
    std::uint64_t any = 0;
    for (std::uint32_t i = 0; i < count; ++i) any |= entries[i];
    return static_cast<int>(std::bit_width(any));
  }

  // Sorts with scratch memory for as many entries, and only as far as tiles need it: each tile gets the right set of
  // entries. Within a bucket they keep their particles' order, or the keys' order if tiles share the bucket.
  void run_through(std::uint64_t* extra, int threads) {
    extra_ = extra;
    std::uint32_t next[kParts];
    for (std::uint32_t part = 0; part < kParts; ++part) next[part] = first(part);
    const std::uint32_t count = end_[kParts - 1];
    for (std::uint32_t i = 0; i < count; ++i) extra[next[digit(entries_[i])]++] = entries_[i];
    parallel_for(
        threads, kParts,
        [](void* context, std::uint64_t i) {
          static_cast<EntrySort*>(context)->put_back(static_cast<std::uint32_t>(i));
        },
        this);
  }

  void run(int threads) {
    std::uint32_t next[kParts];
    for (std::uint32_t part = 0; part < kParts; ++part) next[part] = first(part);
    for (std::uint32_t part = 0; part < kParts; ++part) {
      while (next[part] < end_[part]) {
        std::uint64_t& entry = entries_[next[part]];
        const std::uint32_t own = digit(entry);
        if (own == part)
          ++next[part];
        else
          std::swap(entry, entries_[next[own]++]);
      }
    }
    parallel_for(
        threads, kParts,
        [](void* context, std::uint64_t i) {
          static_cast<EntrySort*>(context)->sort_bucket(static_cast<std::uint32_t>(i));
        },
        this);
  }

 private:
  static constexpr int kMostDigit = 10;
  static constexpr std::uint32_t kParts = 1u << kMostDigit;
  static constexpr std::uint32_t kFew = 64;  // sorted as fast without digits
  static constexpr std::size_t kMostSorted = kParticleScratchBytes / sizeof(std::uint64_t);

  std::uint32_t digit(std::uint64_t entry) const {
    return static_cast<std::uint32_t>(entry >> shift_) & ((1u << (top_ - shift_)) - 1);
  }
  std::uint32_t first(std::uint32_t part) const { return part == 0 ? 0 : end_[part - 1]; }
  void sort_bucket(std::uint32_t part) {
    std::uint64_t* const from = entries_ + first(part);
    const std::uint32_t count = end_[part] - first(part);
    if (count > kMostSorted && shift_ > 32) {  // particles are scattered in memory
      EntrySort(coder_, from, count, shift_, kSortedBucket).run(1);
      return;
    }
    std::uint8_t* const scratch =
        count >= kFew && count <= kMostSorted ? thread_scratch(kParticleScratchBytes) : nullptr;
    if (scratch == nullptr) {
      if (!std::is_sorted(from, from + count)) std::sort(from, from + count);
      return;
    }
    coder_.sort_entries(from, reinterpret_cast<std::uint64_t*>(scratch), count, static_cast<unsigned>(shift_ - 32));
    for (std::uint32_t i = 0, same; i < count; i = same) {  // the bucket pass has mixed equal keys
      for (same = i + 1; same < count && from[same] >> 32 == from[i] >> 32;) ++same;
      if (same - i > 1) std::sort(from + i, from + same);
    }
  }

  // Whether entries at these positions belong to more than one tile.
  static bool shared(std::uint32_t from, std::uint32_t count) {
    return count != 0 && from / kTileParticles != (from + count - 1) / kTileParticles;
  }

  // Copies a bucket back from the scratch memory. If tiles share it, it is divided again: few entries are near the
  // tiles' borders.
  void put_back(std::uint32_t part) {
    const std::uint32_t from = first(part), count = end_[part] - from;
    std::uint64_t *const in = extra_ + from, *const out = entries_ + from;
    if (!shared(from, count)) {
      std::memcpy(out, in, count * sizeof *out);
      return;
    }
    constexpr std::uint32_t kValues = 256;
    const int low = std::max(32, shift_ - 8);
    const auto value_of = [low](std::uint64_t entry) { return static_cast<std::uint32_t>(entry >> low) % kValues; };
    std::uint32_t next[kValues + 1] = {};  // positions, and the end of the previous value's entries
    for (std::uint32_t i = 0; i < count; ++i) ++next[value_of(in[i]) + 1];
    for (std::uint32_t value = 1; value < kValues; ++value) next[value] += next[value - 1];
    for (std::uint32_t i = 0; i < count; ++i) out[next[value_of(in[i])]++] = in[i];
    for (std::uint32_t value = 0, start = 0; value < kValues; start = next[value++]) {
      if (shared(from + start, next[value] - start))
        coder_.sort_entries(out + start, in + start, next[value] - start, static_cast<unsigned>(low - 32));
    }
  }

  const ParticleCoder& coder_;
  std::uint64_t* entries_;
  std::uint64_t* extra_ = nullptr;
  int top_, shift_;
  std::uint32_t end_[kParts] = {};
};

}  // namespace

Request lorenzo_request(const Request& request) noexcept {
  Request other = request;
  other.codec = registry::kCodecLorenzo;
  other.parameters = {};
  return other;
}

Request tried_request(const Request& request, double bound, std::uint64_t particles, int coordinates) noexcept {
  Request part = request;
  part.bound_mode = Bound::absolute;
  part.bound = bound;
  part.shape.rank = 2;
  part.shape.dims[0] = particles;
  part.shape.dims[1] = static_cast<std::uint64_t>(coordinates);
  return part;
}

Status plan_order(const ParticleCoder& coder, std::uint8_t order, const void* values, ParticlePlan& plan,
                  std::unique_ptr<std::uint64_t[]>& entries, void* extra, std::size_t extra_bytes) noexcept {
  if (order == kOrderKept) return kOk;
  const std::uint32_t count = before_padding(plan, values);
  plan.sorted_particles = count;
  plan.tiles_alone = order == kOrderTile;
  if (order != kOrderChunk || count <= kTileParticles) return kOk;
  entries.reset(new (std::nothrow) std::uint64_t[count]);
  std::uint8_t* const scratch = thread_scratch(kParticleScratchBytes);
  if (!entries || scratch == nullptr) return no_memory();
  coder.order_chunk(plan, values, count, entries.get(), scratch);
  const int bits = std::max(32, EntrySort::bits_of(entries.get(), count));
  const std::size_t bytes = count * sizeof(std::uint64_t);
  if (extra != nullptr && bytes <= kMostExtra &&
      std::align(alignof(std::uint64_t), bytes, extra, extra_bytes) != nullptr)
    EntrySort(coder, entries.get(), count, bits, EntrySort::kTileBucket)
        .run_through(static_cast<std::uint64_t*>(extra), resolved_threads());
  else
    EntrySort(coder, entries.get(), count, bits, EntrySort::kSortedBucket).run(resolved_threads());
  plan.entries = entries.get();
  return kOk;
}

Status order_particles(const ParticlePlan& given, const ParticleCoder& coder, std::uint8_t order, const void* values,
                       std::uint32_t* particles) noexcept {
  ParticlePlan plan = given;
  std::unique_ptr<std::uint64_t[]> entries;
  PYF_TRY(plan_order(coder, order, values, plan, entries, nullptr, 0));
  const auto all = static_cast<std::uint32_t>(count_particles(plan)),
             count = static_cast<std::uint32_t>(plan.sorted_particles);
  for (std::uint32_t i = 0; i < all; ++i) particles[i] = i;
  for (std::uint32_t i = 0; entries && i < count; ++i) particles[i] = static_cast<std::uint32_t>(entries[i]);
  TileJob job{plan, coder, values, particles, count, {}};
  parallel_for(
      resolved_threads(), (count + kTileParticles - 1) / kTileParticles,
      [](void* context, std::uint64_t i) { static_cast<TileJob*>(context)->order_tile(i); }, &job);
  return job.out_of_memory ? no_memory() : kOk;
}

Status estimate_lorenzo(const ParticlePlan& plan, const ParticleCoder& coder, const void* values,
                        std::uint64_t* bytes) noexcept {
  std::uint8_t* const scratch = thread_scratch(kParticleScratchBytes);
  if (scratch == nullptr) return fail(Code::no_memory, "no memory to estimate the size of a frame");
  *bytes = coder.estimate_lorenzo(plan, values, scratch);
  return kOk;
}

Status is_ordered(const ParticlePlan& plan, const ParticleCoder& coder, const void* values, bool* ordered) noexcept {
  const std::uint64_t tiles = plan.grid.tiles, sampled = std::min(tiles, kSampledTiles);
  std::uint8_t* const scratch = thread_scratch(kParticleScratchBytes);
  if (scratch == nullptr) return no_memory();
  std::uint64_t found = 0;
  for (std::uint64_t i = 0; i < sampled; ++i)
    found += coder.is_ordered(plan, values, i * tiles / sampled, scratch) ? 1 : 0;
  *ordered = 2 * found >= sampled && found != 0;
  return kOk;
}

}  // namespace pyfilter
