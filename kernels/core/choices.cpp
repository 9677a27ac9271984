// SPDX-License-Identifier: BSD-3-Clause
// Ranges and predictors of chunks (choices.hpp). Extremes and sums of integers are the same in any order, so threads
// change nothing.
#include "core/choices.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "core/cpu_driver.hpp"
#include "core/settings.hpp"
#include "core/threads.hpp"
#include "stages/packed/choose.hpp"

namespace pyfilter {
namespace {

constexpr std::uint64_t kRangeBytes = std::uint64_t{1} << 18;  // that a thread looks at together
constexpr std::uint64_t kThreadSamples = 2;  // of a thread at least: 40 us, as long as it takes to wake

template <class Number>
struct RangeJob {
  using Find = bool (*)(const Request&, const void*, std::uint64_t, Number*, Number*);
  const Request& request;
  const std::uint8_t* values;
  std::uint64_t count;
  Find find;
  std::mutex mutex;
  bool found = false;
  Number low{}, high{};

  std::uint64_t piece_values() const { return kRangeBytes / dtype_bytes(request.dtype); }
  void look(std::uint64_t piece) {
    const std::uint64_t first = piece * piece_values();
    Number own_low{}, own_high{};
    if (!find(request, values + first * dtype_bytes(request.dtype), std::min(piece_values(), count - first), &own_low,
              &own_high))
      return;
    const std::lock_guard<std::mutex> lock(mutex);
    low = found ? std::min(low, own_low) : own_low;
    high = found ? std::max(high, own_high) : own_high;
    found = true;
  }
  bool run(Number* lowest, Number* highest) {
    parallel_for(
        resolved_threads(), (count + piece_values() - 1) / piece_values(),
        [](void* context, std::uint64_t piece) { static_cast<RangeJob*>(context)->look(piece); }, this);
    *lowest = low;
    *highest = high;
    return found;
  }
};

struct ChoiceJob {
  const Request& request;
  const Plan& plan;
  const void* values;
  std::uint64_t count, samples;
  std::mutex mutex;
  std::uint64_t bits[kCandidates] = {};
  std::atomic<std::uint64_t> next{0};
  std::atomic<bool> out_of_memory{false};

  // What one thread does: samples, until there are none.
  void run() {
    void* const scratch = thread_scratch(kScratchBytes);
    if (scratch == nullptr) {
      out_of_memory = true;
      return;
    }
    PredictorCosts costs;
    for (std::uint64_t k = next++; k < samples; k = next++)
      level_table().sample_predictors(request, plan, values, count, k, scratch, &costs);
    const std::lock_guard<std::mutex> lock(mutex);
    for (int c = 0; c < kCandidates; ++c) bits[c] += costs.bits[c];
  }
};

}  // namespace

bool find_value_range(const Request& request, const void* values, std::uint64_t count, double* low,
                      double* high) noexcept {
  RangeJob<double> job{
      request, static_cast<const std::uint8_t*>(values), count, level_table().value_range, {}, false, 0, 0};
  const bool found = job.run(low, high);
  *low += 0.0;  // which of two zeros was met first says nothing
  *high += 0.0;
  return found;
}

bool find_integer_range(const Request& request, const void* values, std::uint64_t count, std::uint64_t* low,
                        std::uint64_t* high) noexcept {
  RangeJob<std::uint64_t> job{
      request, static_cast<const std::uint8_t*>(values), count, level_table().integer_range, {}, false, 0, 0};
  return job.run(low, high);
}

Predictor choose_predictor(const Request& request, const Plan& plan, const void* values, std::uint64_t count) noexcept {
  bool open[kCandidates];
  find_candidates(request, open);
  ChoiceJob job{request, plan, values, count, sample_count(count, plan.entropy), {}, {}, {}, {}};
  if (std::count(open, open + kCandidates, true) > 1) {
    const std::uint64_t wanted = std::max<std::uint64_t>(1, job.samples / kThreadSamples);
    const auto threads = static_cast<int>(std::min<std::uint64_t>(wanted, static_cast<unsigned>(resolved_threads())));
    parallel_for(
        threads, static_cast<std::uint64_t>(threads),
        [](void* context, std::uint64_t) { static_cast<ChoiceJob*>(context)->run(); }, &job);
    // without memory the first will do
    if (job.out_of_memory) std::fill_n(job.bits, kCandidates, 0);
  }
  return predictor_at(best_candidate(open, job.bits, request.parameters[0]));
}

}  // namespace pyfilter
