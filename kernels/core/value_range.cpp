// SPDX-License-Identifier: BSD-3-Clause
// Finds the range of values with several threads (value_range.hpp). Extremes do not depend on the order.
#include "core/value_range.hpp"

#include <algorithm>
#include <mutex>

#include "core/level.hpp"
#include "core/settings.hpp"
#include "core/threads.hpp"

namespace pyfilter {
namespace {

constexpr std::uint64_t kRangeBytes = std::uint64_t{1} << 18;  // of values that a thread takes at a time

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

}  // namespace

bool find_value_range(const Request& request, const void* values, std::uint64_t count, double* low,
                      double* high) noexcept {
  RangeJob<double> job{
      request, static_cast<const std::uint8_t*>(values), count, value_stages().value_range, {}, false, 0, 0};
  const bool found = job.run(low, high);
  *low += 0.0;  // -0 becomes +0: which of the two was found depends on the order
  *high += 0.0;
  return found;
}

bool find_integer_range(const Request& request, const void* values, std::uint64_t count, std::uint64_t* low,
                        std::uint64_t* high) noexcept {
  RangeJob<std::uint64_t> job{
      request, static_cast<const std::uint8_t*>(values), count, value_stages().integer_range, {}, false, 0, 0};
  return job.run(low, high);
}

}  // namespace pyfilter
