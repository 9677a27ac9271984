// SPDX-License-Identifier: BSD-3-Clause
// Counting the symbols of a chunk over threads (entropy_driver.hpp). Counts are integers, so their order is nothing.
#include "core/entropy_driver.hpp"

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

constexpr std::uint64_t kSegmentTiles = 16;

struct CountJob {
  const Plan& plan;
  const GroupCoder& coder;
  const void* values;
  TileSample sample;
  SymbolCounts* total;
  std::mutex mutex;
  std::atomic<bool> out_of_memory{false};

  void count_segment(std::uint64_t segment) {
    thread_local std::unique_ptr<SymbolCounts> counts;
    if (!counts) counts.reset(new (std::nothrow) SymbolCounts);
    std::uint8_t* const scratch = thread_scratch(group_scratch_bytes(1));
    if (!counts || scratch == nullptr) {
      out_of_memory = true;
      return;
    }
    *counts = {};
    const std::uint64_t from = segment * kSegmentTiles, to = std::min(from + kSegmentTiles, sample.count);
    for (std::uint64_t i = from; i < to; ++i) coder.count(plan, values, sample.tile(i), scratch, counts.get());
    const std::lock_guard<std::mutex> lock(mutex);
    total->add(*counts);
  }
};

}  // namespace

Status make_entropy_model(const Plan& plan, const GroupCoder& coder, const void* values, EntropyModel* model) noexcept {
  const std::unique_ptr<SymbolCounts> total(new (std::nothrow) SymbolCounts);
  const std::unique_ptr<ModelScratch> scratch(new (std::nothrow) ModelScratch);
  if (!total || !scratch) return fail(Code::no_memory, "no memory for the counts of symbols");
  CountJob job{plan, coder, values, TileSample(plan.grid.tiles), total.get(), {}, {}};
  parallel_for(
      resolved_threads(), (job.sample.count + kSegmentTiles - 1) / kSegmentTiles,
      [](void* context, std::uint64_t i) { static_cast<CountJob*>(context)->count_segment(i); }, &job);
  if (job.out_of_memory) return fail(Code::no_memory, "no memory for the counts of symbols");
  if (plan.coder == kRans)
    make_model(*total, *scratch, *model);
  else
    make_huffman_model(*total, *scratch, *model);
  return kOk;
}

}  // namespace pyfilter
