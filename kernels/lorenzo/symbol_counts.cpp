// SPDX-License-Identifier: BSD-3-Clause
// Counting the symbols of a chunk over threads (lorenzo/symbol_counts.hpp). Integer counts do not depend on the order
// of threads.
#include "lorenzo/symbol_counts.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <new>

#include "core/cpu_driver.hpp"
#include "core/error_text.hpp"
#include "core/settings.hpp"
#include "core/threads.hpp"

namespace pyfilter {
namespace {

constexpr std::uint64_t kSegmentTiles = 16;  // fewest tiles of a thread

struct CountJob {
  const StreamPlan& plan;
  const GroupCoder& coder;
  const void* values;
  TileSample sample;
  SymbolCounts* total;
  int threads;
  std::mutex mutex;
  std::atomic<std::uint64_t> next{0};
  std::atomic<bool> out_of_memory{false};

  void count_segments(SymbolCounts* counts, std::uint8_t* scratch) {
    for (std::uint64_t from = kSegmentTiles * next++; from < sample.count; from = kSegmentTiles * next++) {
      const std::uint64_t to = std::min(from + kSegmentTiles, sample.count);
      for (std::uint64_t i = from; i < to; ++i) coder.count(plan, values, sample.tile(i), scratch, counts);
    }
  }
  // A thread's work: takes segments until none is left.
  void run() {
    thread_local std::unique_ptr<SymbolCounts> counts;
    std::uint8_t* const scratch = thread_scratch(group_scratch_bytes(1));
    if (!counts && threads != 1) counts.reset(new (std::nothrow) SymbolCounts);
    if ((!counts && threads != 1) || scratch == nullptr) {
      out_of_memory = true;
      return;
    }
    if (threads == 1) {
      count_segments(total, scratch);
      return;
    }
    *counts = {};
    count_segments(counts.get(), scratch);
    const std::lock_guard<std::mutex> lock(mutex);
    total->add(*counts);
  }
};

}  // namespace

Status make_entropy_model(const StreamPlan& plan, const GroupCoder& coder, const void* values,
                          EntropyModel* model) noexcept {
  const std::unique_ptr<SymbolCounts> total(new (std::nothrow) SymbolCounts);
  const std::unique_ptr<ModelScratch> scratch(new (std::nothrow) ModelScratch);
  if (!total || !scratch) return fail(Code::no_memory, "no memory for the counts of symbols");
  const TileSample sample(plan.grid.tiles);
  const std::uint64_t segments = std::max<std::uint64_t>(1, (sample.count + kSegmentTiles - 1) / kSegmentTiles);
  const auto threads = static_cast<int>(std::min<std::uint64_t>(segments, static_cast<unsigned>(resolved_threads())));
  CountJob job{plan, coder, values, sample, total.get(), threads, {}, {}, {}};
  parallel_for(
      threads, static_cast<std::uint64_t>(threads),
      [](void* context, std::uint64_t) { static_cast<CountJob*>(context)->run(); }, &job);
  if (job.out_of_memory) return fail(Code::no_memory, "no memory for the counts of symbols");
  if (is_rans(plan.coder))
    make_model(*total, *scratch, *model);
  else
    make_huffman_model(*total, *scratch, *model);
  return kOk;
}

}  // namespace pyfilter
