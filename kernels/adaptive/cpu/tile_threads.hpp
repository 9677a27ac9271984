// SPDX-License-Identifier: BSD-3-Clause
// Threads that share a trainer's tiles, each with memory of its own. Not part of the format.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <new>
#include <thread>
#include <vector>

#include "adaptive/cpu/sample.hpp"
#include "adaptive/cpu/unit.hpp"
#include "adaptive/train/trial.hpp"
#include "core/cpu_driver.hpp"
#include "core/settings.hpp"
#include "core/threads.hpp"

PYF_BEGIN_TARGET

using ContextsOfPasses = std::array<std::vector<ContextSample>, kMostLevels + 1>;

// Memory of a thread that trains models, kept from chunk to chunk: pages of new memory would take a tenth of the time.
struct TrainMemory {
  std::vector<Sample> samples;
  ContextsOfPasses contexts;                // of the model that is trained
  std::vector<std::uint32_t> keys, orders;  // for the solvers
  std::vector<float> numbers;
  std::vector<std::uint8_t> records, stored;  // of the tile being counted
  std::vector<SymbolCounts> counts;           // of the tile being counted, where others count for the same model
};
inline TrainMemory& train_memory() {
  thread_local TrainMemory memory;
  return memory;
}

// What a thread needs to code a tile.
struct TileWorker {
  Work work;
  TrainMemory& memory = train_memory();
};

// The threads that share the tiles of a trainer; their number stays the same, whatever other threads set meanwhile.
class TileThreads {
 public:
  explicit TileThreads(TileWorker& own) : own_(own) {}

  std::uint64_t most() const { return most_; }
  // Whether work on so many tiles is shared.
  bool share(std::uint64_t tiles) const { return tiles > 1 && most_ > 1; }

  // Calls work(i, worker) for all i below `count`: in any order if it is shared, else in ascending order by `own`.
  template <class Do>
  void each(std::uint64_t count, const Do& work) const {
    if (!share(count)) {
      for (std::uint64_t i = 0; i < count; ++i) work(i, own_);
      return;
    }
    struct Turns {
      const Do& work;
      TileWorker& own;
      std::uint64_t count;
      std::thread::id caller = std::this_thread::get_id();
      std::atomic<std::uint64_t> next{0};
      std::atomic<bool> no_memory{false};

      void run(TileWorker& worker) {
        for (std::uint64_t i = next++; i < count && !no_memory; i = next++) work(i, worker);
      }
    } turns{work, own_, count};
    const std::uint64_t threads = std::min(count, most_);
    parallel_for(
        static_cast<int>(threads), threads,
        [](void* context, std::uint64_t) noexcept {
          Turns& all = *static_cast<Turns*>(context);
          try {
            if (std::this_thread::get_id() == all.caller) {
              all.run(all.own);
            } else if (std::uint8_t* const scratch = thread_scratch(unit_scratch_bytes(0)); scratch != nullptr) {
              TileWorker worker{Work(scratch)};
              all.run(worker);
            }  // else others do it
          } catch (const std::bad_alloc&) {
            all.no_memory = true;
          }
        },
        &turns);
    turns.run(own_);  // what is left if no thread had memory
    if (turns.no_memory) throw std::bad_alloc();
  }

 private:
  TileWorker& own_;
  const std::uint64_t most_ = static_cast<unsigned>(resolved_threads());
};

PYF_END_TARGET
