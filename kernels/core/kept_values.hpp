// SPDX-License-Identifier: BSD-3-Clause
// Which values of a chunk were kept from an old frame, and which bound certainly holds for them (updated_chunk.cpp,
// updated_halves.cpp).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "core/base_values.hpp"
#include "core/bound.hpp"
#include "core/integer_bound.hpp"
#include "core/status.hpp"
#include "core/types.hpp"
#include "core/updated_chunk.hpp"
#include "core/value_range.hpp"
#include "core/with_type.hpp"

namespace pyfilter {

struct Comparison {
  std::uint64_t kept = 0;  // values that were not written again; zeros and fill values, which do not move, do not count
  double low = std::numeric_limits<double>::infinity(), high = -low;  // of the old values
  bool keeps_extremes = true;  // no old value that may have been the lowest or the highest was written again
  int kept_ends = 0;           // ends of the present range (lowest, highest value) that only kept values reach: 0 to 2
};

template <class T>
T value_at(const void* values, std::uint64_t i) {
  T value;
  std::memcpy(&value, static_cast<const std::uint8_t*>(values) + i * sizeof(T), sizeof(T));
  return value;
}

// Calls visit(old value, whether it was kept) for each value that counts for the range: finite and not the fill value.
template <class T, class Visit>
void each_in_range(const Request& request, const void* old, const void* now, std::uint64_t count, Visit&& visit) {
  const auto fill = std::bit_cast<T>(static_cast<BitsOf<T>>(request.fill));
  for (std::uint64_t i = 0; i < count; ++i) {
    const T before = value_at<T>(old, i), after = value_at<T>(now, i);
    if (!std::isfinite(static_cast<double>(before)) || (request.has_fill && before == fill) ||
        (request.without_zeros && before == 0))
      continue;
    visit(before, std::bit_cast<BitsOf<T>>(before) == std::bit_cast<BitsOf<T>>(after));
  }
}

// How many ends of the range of `now` are reached only by values that `old` has at the same index.
template <class T>
int count_kept_ends(const Request& request, const void* old, const void* now, std::uint64_t count) {
  T low = std::numeric_limits<T>::max(), high = std::numeric_limits<T>::lowest(), new_low = low, new_high = high;
  each_in_range<T>(request, now, old, count, [&](T value, bool same) {
    low = std::min(low, value);
    high = std::max(high, value);
    if (same) return;
    new_low = std::min(new_low, value);
    new_high = std::max(new_high, value);
  });
  return (new_low > low ? 1 : 0) + (new_high < high ? 1 : 0);
}

template <class T>
Comparison compare(const Request& request, const void* old, const void* now, std::uint64_t count, double error) {
  Comparison found;
  bool keeps_zeros = false;
  each_in_range<T>(request, old, now, count, [&](T before, bool same) {
    found.kept += same && before != 0 ? 1 : 0;
    keeps_zeros |= same && before == 0;
    found.low = std::min(found.low, static_cast<double>(before));
    found.high = std::max(found.high, static_cast<double>(before));
  });
  if (found.kept == 0 && !keeps_zeros) return found;
  found.kept_ends = count_kept_ends<T>(request, old, now, count);
  if (found.kept == 0) return found;
  // the value whose original was the highest is decoded to at least the highest decoded value minus two errors
  const double largest = std::max(std::fabs(found.low), std::fabs(found.high));
  const double reach = 2 * error * (1 + 0x1p-20) + largest * 0x1p-50;
  each_in_range<T>(request, old, now, count, [&](T before, bool same) {
    const auto value = static_cast<double>(before);
    if (!same && (value <= found.low + reach || value >= found.high - reach)) found.keeps_extremes = false;
  });
  return found;
}

// Opens frames and leaves the kMostOrigins with the most kept values in `origins`, most first, earlier frames first.
template <class Origin, class Open>
Status open_origins(const FrameBytes* frames, std::size_t count, std::array<Origin, kMostOrigins>& origins,
                    Open&& open) {
  for (std::size_t i = 0; i < count; ++i) {
    Origin opened;
    PYF_TRY(open(frames[i], opened));
    auto* const known = origins.begin() + std::min(i, kMostOrigins);
    auto* const place =
        std::find_if(origins.begin(), known, [&](const Origin& other) { return other.found.kept < opened.found.kept; });
    if (place == origins.end()) continue;
    std::move_backward(place, origins.end() - 1, origins.end());
    *place = std::move(opened);
  }
  return kOk;
}

// Whether no kept value moved by more than `most`.
template <class T>
bool moved_within(const void* old, const void* now, const void* decoded, std::uint64_t count, double most) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const T before = value_at<T>(old, i), after = value_at<T>(decoded, i);
    const auto bits = std::bit_cast<BitsOf<T>>(before);
    if (bits != std::bit_cast<BitsOf<T>>(value_at<T>(now, i))) continue;
    if (before == after || bits == std::bit_cast<BitsOf<T>>(after)) continue;
    double distance = 0;
    if constexpr (std::is_integral_v<T>)  // modulo 2^64: the difference may not fit the type
      distance =
          static_cast<double>(before > after ? static_cast<std::uint64_t>(before) - static_cast<std::uint64_t>(after)
                                             : static_cast<std::uint64_t>(after) - static_cast<std::uint64_t>(before));
    else
      distance = std::fabs(static_cast<double>(before) - static_cast<double>(after));
    if (!(distance <= most)) return false;
  }
  return true;
}

// The absolute bound of the request for a range that is smaller by `less` than the range of `values`.
inline double bound_of_range(const Request& request, const void* values, std::uint64_t count, double less) {
  if (!is_float(request.dtype)) {
    std::uint64_t low = 0, high = 0;
    if (!find_integer_range(request, values, count, &low, &high)) return 0;
    const std::uint64_t range = high - low, part = static_cast<std::uint64_t>(std::min(less, 0x1p63));
    return range > part ? resolve_integer_relative(request.bound, range - part) : 0;
  }
  double low = 0, high = 0;
  if (!find_value_range(request, values, count, &low, &high)) return 0;
  const double slack = less * (1 + 0x1p-20);
  return high - low > slack ? resolve_relative(request.bound, low, high - slack) : 0;
}

// The largest bound that certainly holds for the range of the original values. Kept values are known to within `error`,
// so the range may be smaller by one error for each end that only kept values reach. If the extremes were kept, the
// range did not shrink, and `before`, the old bound, holds too. The bound is never larger than for values that are all
// new: a frame that resembles them by chance must not loosen it.
inline double certain_bound(const Request& request, const void* values, std::uint64_t count, double error,
                            double before, bool keeps_extremes, int kept_ends) {
  if (!follows_range(request.bound_mode)) return request.bound;
  const double least = bound_of_range(request, values, count, kept_ends * error);
  const double most = bound_of_range(request, values, count, 0);
  return std::min(most, keeps_extremes ? std::max(least, before) : least);
}

// Where none but zeros were kept: they stay zeros, but if one is an end of the range, it may have been another value
// before, and the range may be smaller by its error. Returns whether that is so, and the bound for that range.
template <class Origins>
bool zeros_are_ends(const Request& request, const void* values, std::uint64_t count, const Origins& origins,
                    double* bound) {
  double error = 0;
  int kept_ends = 0;
  for (const auto& origin : origins) {
    if (origin.found.kept_ends == 0) continue;
    error = std::max(error, origin.info.error_bound());
    kept_ends = std::max(kept_ends, origin.found.kept_ends);
  }
  if (kept_ends == 0 || !follows_range(request.bound_mode)) return false;
  *bound = certain_bound(request, values, count, error, 0, false, kept_ends);
  return true;
}

// The request with an absolute bound, bit for bit if that is 0.
inline Request with_bound(const Request& request, double bound) {
  if (!(bound > 0)) return exact_request(request);
  Request absolute = request;
  absolute.bound_mode = Bound::absolute;
  absolute.bound = bound;
  return absolute;
}

}  // namespace pyfilter
