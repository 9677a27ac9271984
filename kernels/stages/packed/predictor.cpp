// SPDX-License-Identifier: BSD-3-Clause
// The choice of a chunk's predictor (predictor.hpp). Costs are integer sums, so the number of threads changes nothing.
#include "stages/packed/predictor.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "core/cpu_driver.hpp"
#include "core/settings.hpp"
#include "core/threads.hpp"
#include "stages/packed/choose.hpp"

namespace pyfilter {
namespace {

constexpr std::uint64_t kThreadSamples = 2;  // fewest samples of a thread: 40 us of work, the time to wake a thread

struct ChoiceJob {
  const Request& request;
  const PackedPlan& plan;
  const void* values;
  std::uint64_t count, samples;
  std::mutex mutex;
  std::uint64_t bits[kCandidates] = {};
  std::atomic<std::uint64_t> next{0};
  std::atomic<bool> out_of_memory{false};

  // A thread's work: takes samples until none is left.
  void run() {
    void* const scratch = thread_scratch(kScratchBytes);
    if (scratch == nullptr) {
      out_of_memory = true;
      return;
    }
    PredictorCosts costs;
    for (std::uint64_t k = next++; k < samples; k = next++)
      predictor_stages().sample(request, plan, values, count, k, scratch, &costs);
    const std::lock_guard<std::mutex> lock(mutex);
    for (int c = 0; c < kCandidates; ++c) bits[c] += costs.bits[c];
  }
};

}  // namespace

void choose_predictor(const Request& request, const PackedPlan& plan, const void* values, FrameInfo& info) noexcept {
  const std::uint64_t count = info.value_count;
  if (count == 0) return;
  bool open[kCandidates];
  find_candidates(request, open);
  ChoiceJob job{request, plan, values, count, sample_count(count, plan.entropy), {}, {}, {}, {}};
  if (std::count(open, open + kCandidates, true) > 1) {
    const std::uint64_t wanted = std::max<std::uint64_t>(1, job.samples / kThreadSamples);
    const auto threads = static_cast<int>(std::min<std::uint64_t>(wanted, static_cast<unsigned>(resolved_threads())));
    parallel_for(
        threads, static_cast<std::uint64_t>(threads),
        [](void* context, std::uint64_t) { static_cast<ChoiceJob*>(context)->run(); }, &job);
    // without scratch memory all costs are 0, so the first candidate is chosen
    if (job.out_of_memory) std::fill_n(job.bits, kCandidates, 0);
  }
  const Predictor best = predictor_at(best_candidate(open, job.bits, plan.entropy, request.parameters[0]));
  info.parameters[0] = best.tile_shape;
  info.parameters[2] = best.order;
}

}  // namespace pyfilter
