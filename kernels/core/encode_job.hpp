// SPDX-License-Identifier: BSD-3-Clause
// Encoding the units of a chunk with several threads, for cpu_driver.cpp. Work is handed out in segments of
// neighbouring units. The first segment without a place in the frame is encoded right there, from the unit on at which
// it comes to be the first; others are parked in memory of their thread, which goes on with the next one, until the
// sizes of all before them are known. So the bytes do not depend on the number of threads, and threads wait for each
// other at the end only.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>

#include "core/plan.hpp"
#include "core/prefetch.hpp"
#include "core/threads.hpp"
#include "core/wire.hpp"

namespace pyfilter {

inline constexpr std::uint32_t kUniformBit = 0x80000000u;
inline constexpr std::uint64_t kSegmentTiles = 8;  // 128 KiB of f32: what threads wait for each other at the end
inline constexpr std::uint64_t kParkedTiles = 32;  // of a thread, mostly
inline constexpr std::size_t kMostParked = kParkedTiles / kSegmentTiles;

inline std::uint64_t segment_units(const Plan& plan) {
  return std::max<std::uint64_t>(1, kSegmentTiles / plan.unit_tiles);
}
inline std::uint64_t segments_of(const Plan& plan, std::uint64_t units) {
  const std::uint64_t of_segment = segment_units(plan);
  return (units + of_segment - 1) / of_segment;
}
// Segments that a thread may park: of long units one, for its memory.
inline std::size_t parked_segments(const Plan& plan) {
  const std::uint64_t tiles = segment_units(plan) * plan.unit_tiles;
  return static_cast<std::size_t>(std::clamp<std::uint64_t>(kParkedTiles / tiles, 1, kMostParked));
}
inline std::size_t parked_bytes(const Plan& plan) { return segment_units(plan) * plan.unit_bytes + kTileSlackBytes; }

class EncodeJob {
 public:
  static constexpr std::size_t kUnknown = ~std::size_t{0};
  static constexpr std::size_t kMostAsked = 8192;  // larger units push their values out of the cache

  // `limit`: bytes for tiles.
  EncodeJob(const Plan& plan, const TileCoder& coder, const void* values, std::uint8_t* directory, std::uint8_t* tiles,
            std::size_t limit, int threads)
      : plan_(plan),
        coder_(coder),
        values_(values),
        directory_(directory),
        tiles_(tiles),
        limit_(limit),
        segments_(segments_of(plan, plan.units())),
        known_count_(static_cast<std::size_t>(threads) * (kMostParked + 1)),
        known_(new(std::nothrow) Known[known_count_]) {
    if (!known_) out_of_memory_ = true;
  }

  // What one thread does: segments, until there are none. `scratch` for a unit, `room` for parked_segments() times
  // parked_bytes(); nullptr where there is no memory.
  void run(std::uint8_t* scratch, std::uint8_t* room) {
    if (scratch == nullptr || room == nullptr) {
      const std::lock_guard<std::mutex> lock(mutex_);
      out_of_memory_ = true;
      placed_.notify_all();
      return;
    }
    const std::size_t slots = parked_segments(plan_);
    Parked parked[kMostParked];  // the oldest is the first to get a place
    for (std::size_t i = 0; i < slots; ++i) parked[i].bytes = room + i * parked_bytes(plan_);
    std::size_t oldest = 0, held = 0;
    std::unique_lock<std::mutex> lock(mutex_);
    while (!stopped()) {
      Parked& waiting = parked[oldest];
      if (held != 0 && waiting.from != kUnknown) {
        lock.unlock();
        place(waiting, waiting.from, last_unit(waiting.segment));
        oldest = (oldest + 1) % slots;
        --held;
        lock_soon(lock);
      } else if (taken_ < segments_ && held < slots) {
        const std::uint64_t segment = taken_++;
        Known& known = known_[segment % known_count_];
        known = {};
        lock.unlock();
        Parked& next = parked[(oldest + held) % slots];
        bool in_place = false;
        const std::size_t bytes = encode(segment, next, scratch, in_place);
        lock_soon(lock);
        known.bytes = bytes;
        if (!in_place) {
          next.from = kUnknown;
          known.parked = &next;
          ++held;
        }
        give_places();
      } else if (held != 0) {
        wait_for_place(lock, waiting);
      } else {
        return;
      }
    }
  }

  [[nodiscard]] const Plan& plan() const { return plan_; }
  [[nodiscard]] bool full() const { return full_; }
  [[nodiscard]] bool out_of_memory() const { return out_of_memory_; }
  [[nodiscard]] std::size_t used() const { return used_; }

 private:
  // A segment that is encoded and waits for its place.
  struct Parked {
    std::uint8_t* bytes;
    std::uint64_t segment;
    std::size_t size;
    std::atomic<std::size_t> from;
    std::uint32_t offsets[kSegmentTiles];  // bytes from the segment's start, and the uniform bit
  };
  // What is known of a segment without a place, by its number modulo as many as there can be.
  struct Known {
    std::size_t bytes = kUnknown;
    Parked* parked = nullptr;
  };

  bool stopped() const { return full_ || out_of_memory_; }

  std::uint64_t first_unit(std::uint64_t segment) const { return segment * segment_units(plan_); }
  std::uint64_t last_unit(std::uint64_t segment) const {
    return std::min(first_unit(segment) + segment_units(plan_), plan_.units());
  }
  void store_entry(std::uint64_t unit, std::size_t offset, bool uniform) {
    store_le(directory_ + 4 * unit, static_cast<std::uint32_t>(offset / 4) | (uniform ? kUniformBit : 0));
  }

  // Units from `unit` on of the first segment without a place, to `from`. Returns their bytes.
  std::size_t encode_in_place(std::uint64_t unit, std::uint64_t last, std::size_t from, std::uint8_t* scratch,
                              std::uint8_t* room) {
    const std::size_t most = plan_.unit_bytes + kTileSlackBytes;
    std::size_t at = from, expected = 0;  // bytes of this unit: those of the one before
    for (; unit < last && !stopped(); ++unit) {
      const bool fits = limit_ - at >= most;
      if (expected <= kMostAsked) ask_for_stores(tiles_ + at, 0, expected);
      const EncodedTile encoded = coder_.encode(plan_, values_, unit, scratch, fits ? tiles_ + at : room);
      if (encoded.bytes >= limit_ - at) {
        full_ = true;
        break;
      }
      if (!fits) std::memcpy(tiles_ + at, room, encoded.bytes);
      store_entry(unit, at, encoded.uniform);
      at += encoded.bytes;
      expected = encoded.bytes;
    }
    return at - from;
  }

  // Returns the bytes of a segment: in their place, or parked.
  std::size_t encode(std::uint64_t segment, Parked& parked, std::uint8_t* scratch, bool& in_place) {
    parked.segment = segment;
    parked.size = 0;
    const std::uint64_t first = first_unit(segment), last = last_unit(segment);
    std::uint64_t unit = first;
    for (; unit < last && !stopped() && first_ != segment; ++unit) {
      const EncodedTile encoded = coder_.encode(plan_, values_, unit, scratch, parked.bytes + parked.size);
      parked.offsets[unit - first] = static_cast<std::uint32_t>(parked.size) | (encoded.uniform ? kUniformBit : 0);
      parked.size += encoded.bytes;
    }
    in_place = unit < last;
    if (!in_place || stopped()) return parked.size;
    const std::size_t from = used_;  // of the first segment: nobody changes it before this one is done
    if (parked.size >= limit_ - from) {
      full_ = true;
      return parked.size;
    }
    place(parked, from, unit);
    return parked.size + encode_in_place(unit, last, from + parked.size, scratch, parked.bytes);
  }

  // What is parked of a segment, which are the units before `last`.
  void place(const Parked& parked, std::size_t from, std::uint64_t last) {
    std::memcpy(tiles_ + from, parked.bytes, parked.size);
    const std::uint64_t first = first_unit(parked.segment);
    for (std::uint64_t unit = first; unit < last; ++unit) {
      const std::uint32_t offset = parked.offsets[unit - first];
      store_entry(unit, from + (offset & ~kUniformBit), (offset & kUniformBit) != 0);
    }
  }

  // To all segments whose place is known by now. With the mutex held.
  void give_places() {
    bool any = false;
    for (; first_ < taken_ && !stopped(); ++first_) {
      const Known& known = known_[first_ % known_count_];
      if (known.bytes == kUnknown) break;
      if (known.bytes >= limit_ - used_) {
        full_ = true;
        break;
      }
      if (known.parked != nullptr) {
        known.parked->from = used_;
        any = true;
      }
      used_ += known.bytes;
    }
    if (any || stopped()) placed_.notify_all();
  }

  // Other threads take less than a wake-up for what they are at: most times there is no need to sleep.
  void wait_for_place(std::unique_lock<std::mutex>& lock, const Parked& parked) {
    lock.unlock();
    spin_while([&] { return parked.from == kUnknown && !stopped(); });
    lock.lock();
    placed_.wait(lock, [&] { return parked.from != kUnknown || stopped(); });
  }

  const Plan& plan_;
  const TileCoder& coder_;
  const void* values_;
  std::uint8_t* directory_;
  std::uint8_t* tiles_;
  std::size_t limit_;
  std::uint64_t segments_;

  std::mutex mutex_;
  std::condition_variable placed_;
  std::uint64_t taken_ = 0;              // segments before it are taken
  std::atomic<std::uint64_t> first_{0};  // and those before it have their place
  std::size_t used_ = 0;                 // bytes of these, set before it
  std::size_t known_count_;
  std::unique_ptr<Known[]> known_;
  std::atomic<bool> full_{false}, out_of_memory_{false};
};

}  // namespace pyfilter
