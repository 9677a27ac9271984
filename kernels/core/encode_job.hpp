// SPDX-License-Identifier: BSD-3-Clause
// Encodes the units of a chunk with several threads, for cpu_driver.cpp. Threads take segments of neighbouring units.
// A segment's offset in the frame is known once all segments before it have their size.
//
//   the first segment whose size is not known    its units are encoded straight into the frame
//   any other segment                            its units are encoded into a buffer of the thread ("parked"); the
//                                                thread goes on, and copies them when their offset is known
//
// A segment may become the first while it is encoded: its parked units are copied, the rest go straight into the frame.
// So the bytes do not depend on the number of threads, and threads wait for each other only at the end.
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

#include "core/fresh_pages.hpp"
#include "core/plan.hpp"
#include "core/prefetch.hpp"
#include "core/threads.hpp"
#include "core/wire.hpp"

namespace pyfilter {

inline constexpr std::uint32_t kUniformBit = 0x80000000u;
// Tiles of a segment, or one unit. Threads take turns at a lock for each segment, so large chunks have longer ones. The
// longest wait at the end is for one segment.
inline constexpr std::uint64_t kSegmentTiles = 8, kMostSegmentTiles = 64;  // 128 KiB to 1 MiB of f32
inline constexpr std::uint64_t kSegmentsOfThread = 64;                     // at least, where segments are longer
inline constexpr std::size_t kMostParked = 4;  // segments parked by one thread: a sixteenth of such a chunk in all

inline std::uint64_t units_of_tiles(const Plan& plan, std::uint64_t tiles) {
  return std::max<std::uint64_t>(1, tiles / plan.unit_tiles);
}
inline std::uint64_t segment_units(const Plan& plan, int threads) {
  const std::uint64_t fair = plan.units() * plan.unit_tiles / (kSegmentsOfThread * static_cast<unsigned>(threads));
  return units_of_tiles(plan, std::clamp(fair, kSegmentTiles, kMostSegmentTiles));
}
inline std::uint64_t segments_of(const Plan& plan, std::uint64_t units_of_segment) {
  return (plan.units() + units_of_segment - 1) / units_of_segment;
}
// Segments that a thread may park: one where units are long, to limit memory.
inline std::size_t parked_segments(const Plan& plan) {
  return static_cast<std::size_t>(
      std::clamp<std::uint64_t>(kMostParked * kSegmentTiles / plan.unit_tiles, 1, kMostParked));
}
inline std::size_t parked_bytes(const Plan& plan, std::uint64_t units) {
  return units * plan.unit_bytes + kTileSlackBytes;
}

class EncodeJob {
 public:
  static constexpr std::size_t kUnknown = ~std::size_t{0};
  static constexpr std::size_t kMostAsked = 8192;  // larger units push their values out of the cache

  // `limit`: bytes for tiles.
  EncodeJob(const Plan& plan, const TileCoder& coder, const void* values, std::uint8_t* directory, std::uint8_t* tiles,
            std::size_t limit, std::uint64_t units_of_segment, int threads)
      : plan_(plan),
        coder_(coder),
        values_(values),
        directory_(directory),
        tiles_(tiles),
        limit_(limit),
        of_segment_(units_of_segment),
        segments_(segments_of(plan, units_of_segment)),
        pages_(tiles, limit, threads),
        known_count_(static_cast<std::size_t>(threads) * (kMostParked + 1)),
        known_(new(std::nothrow) Known[known_count_]) {
    if (!known_) out_of_memory_ = true;
  }

  // Bytes of a thread's buffer.
  [[nodiscard]] std::size_t buffer_bytes() const { return parked_segments(plan_) * parked_bytes(plan_, of_segment_); }

  // Work of one thread: takes segments until none are left. `scratch` has plan.scratch_bytes, `buffer` has
  // buffer_bytes(); either is nullptr if its allocation failed.
  void run(std::uint8_t* scratch, std::uint8_t* buffer) {
    if (scratch == nullptr || buffer == nullptr) {
      const std::lock_guard<std::mutex> lock(mutex_);
      out_of_memory_ = true;
      offset_known_.notify_all();
      return;
    }
    const std::size_t slots = parked_segments(plan_);
    Parked parked[kMostParked];  // a ring; the oldest gets its offset first
    for (std::size_t i = 0; i < slots; ++i) parked[i].bytes = buffer + i * parked_bytes(plan_, of_segment_);
    std::size_t oldest = 0, held = 0;
    std::unique_lock<std::mutex> lock(mutex_);
    while (!stopped()) {
      Parked& waiting = parked[oldest];
      if (held != 0 && waiting.offset != kUnknown) {
        lock.unlock();
        copy_to_frame(waiting, waiting.offset, last_unit(waiting.segment));
        oldest = (oldest + 1) % slots;
        --held;
        lock_soon(lock);
      } else if (taken_ < segments_ && held < slots) {
        const std::uint64_t segment = taken_++;
        Known& known = known_[segment % known_count_];
        known = {};
        const std::size_t used = used_;
        lock.unlock();
        pages_.prepare(used);
        Parked& next = parked[(oldest + held) % slots];
        bool in_place = false;
        const std::size_t bytes = encode(segment, next, scratch, in_place);
        lock_soon(lock);
        known.bytes = bytes;
        if (!in_place) {
          next.offset = kUnknown;
          known.parked = &next;
          ++held;
        }
        assign_offsets();
      } else if (held != 0) {
        wait_for_offset(lock, waiting);
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
  // A segment that is encoded and waits for its offset.
  struct Parked {
    std::uint8_t* bytes;
    std::uint64_t segment;
    std::size_t size;
    std::atomic<std::size_t> offset;           // in the frame; kUnknown until all segments before it have their size
    std::uint32_t offsets[kMostSegmentTiles];  // of units, in bytes from the segment's start; with the uniform bit
  };
  // State of a segment without an offset, in a ring indexed by segment number modulo known_count_.
  struct Known {
    std::size_t bytes = kUnknown;
    Parked* parked = nullptr;
  };

  bool stopped() const { return full_ || out_of_memory_; }

  std::uint64_t first_unit(std::uint64_t segment) const { return segment * of_segment_; }
  std::uint64_t last_unit(std::uint64_t segment) const {
    return std::min(first_unit(segment) + of_segment_, plan_.units());
  }
  void store_entry(std::uint64_t unit, std::size_t offset, bool uniform) {
    store_le(directory_ + 4 * unit, static_cast<std::uint32_t>(offset / 4) | (uniform ? kUniformBit : 0));
  }

  // Encodes units [unit, last) of the first segment without an offset, to `from` in the frame. Returns their bytes.
  std::size_t encode_in_place(std::uint64_t unit, std::uint64_t last, std::size_t from, std::uint8_t* scratch,
                              std::uint8_t* buffer) {
    const std::size_t most = plan_.unit_bytes + kTileSlackBytes;
    std::size_t at = from, expected = 0;  // size of this unit, guessed from the unit before
    for (; unit < last && !stopped(); ++unit) {
      const bool fits = limit_ - at >= most;
      if (expected <= kMostAsked) ask_for_stores(tiles_ + at, 0, expected);
      const EncodedTile encoded = coder_.encode(plan_, values_, unit, scratch, fits ? tiles_ + at : buffer);
      if (encoded.bytes >= limit_ - at) {
        full_ = true;
        break;
      }
      if (!fits) std::memcpy(tiles_ + at, buffer, encoded.bytes);
      store_entry(unit, at, encoded.uniform);
      at += encoded.bytes;
      expected = encoded.bytes;
    }
    return at - from;
  }

  // Encodes a segment into the frame or into `parked`, and returns its bytes.
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
    const std::size_t from = used_;  // offset of the first segment: no thread changes used_ before that segment is done
    if (parked.size >= limit_ - from) {
      full_ = true;
      return parked.size;
    }
    copy_to_frame(parked, from, unit);
    return parked.size + encode_in_place(unit, last, from + parked.size, scratch, parked.bytes);
  }

  // Copies the parked units, those before `last`, to offset `from` of the frame.
  void copy_to_frame(const Parked& parked, std::size_t from, std::uint64_t last) {
    std::memcpy(tiles_ + from, parked.bytes, parked.size);
    const std::uint64_t first = first_unit(parked.segment);
    for (std::uint64_t unit = first; unit < last; ++unit) {
      const std::uint32_t offset = parked.offsets[unit - first];
      store_entry(unit, from + (offset & ~kUniformBit), (offset & kUniformBit) != 0);
    }
  }

  // Sets the offset of every segment for which it is known by now. The caller holds the mutex.
  void assign_offsets() {
    bool any = false;
    for (; first_ < taken_ && !stopped(); ++first_) {
      const Known& known = known_[first_ % known_count_];
      if (known.bytes == kUnknown) break;
      if (known.bytes >= limit_ - used_) {
        full_ = true;
        break;
      }
      if (known.parked != nullptr) {
        known.parked->offset = used_;
        any = true;
      }
      used_ += known.bytes;
    }
    if (any || stopped()) offset_known_.notify_all();
  }

  // Spins first: the other threads usually finish sooner than this thread could sleep and wake up.
  void wait_for_offset(std::unique_lock<std::mutex>& lock, const Parked& parked) {
    lock.unlock();
    spin_while([&] { return parked.offset == kUnknown && !stopped(); });
    lock.lock();
    offset_known_.wait(lock, [&] { return parked.offset != kUnknown || stopped(); });
  }

  const Plan& plan_;
  const TileCoder& coder_;
  const void* values_;
  std::uint8_t* directory_;
  std::uint8_t* tiles_;
  std::size_t limit_;
  std::uint64_t of_segment_, segments_;  // units of a segment; number of segments

  FreshPages pages_;
  std::mutex mutex_;
  std::condition_variable offset_known_;
  std::uint64_t taken_ = 0;              // segments below are taken by a thread
  std::atomic<std::uint64_t> first_{0};  // segments below have their offset
  std::size_t used_ = 0;                 // bytes of the segments below first_; written before first_ is
  std::size_t known_count_;
  std::unique_ptr<Known[]> known_;
  std::atomic<bool> full_{false}, out_of_memory_{false};
};

}  // namespace pyfilter
