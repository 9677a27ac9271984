// SPDX-License-Identifier: BSD-3-Clause
// Finds the lags at which lines resemble themselves: particles that are stored row by row of a lattice, tides, planes
// that were stored as lines. At a lag, second differences of the values have the same sign more often than by chance.
// Signs are bits, so 64 values take one comparison. By a team of threads (stages/team.hpp). Not part of the format.
#pragma once

#include <cstdint>

#include "adaptive/grid.hpp"
#include "core/target.hpp"
#include "stages/team.hpp"

PYF_BEGIN_TARGET

inline constexpr std::uint32_t kFoldWindow = 1 << 18;  // values whose signs are compared
inline constexpr std::uint32_t kLeastFoldLine = 4096;
// Words of signs that are compared at each lag, then at the lags that are kept.
inline constexpr std::uint32_t kFirstWords = 32, kSecondWords = 256, kMostKeptLags = 128;

struct FoldSpace {
  std::uint64_t signs[kFoldWindow / 64 + 1];
  std::uint32_t agree[kMostFoldLag + 2];  // signs that are equal at a lag
  std::uint32_t kept[kMostKeptLags], rated[kMostKeptLags];
};

KFN std::uint32_t equal_signs(std::uint64_t a, std::uint64_t b) {
#if defined(__CUDA_ARCH__)
  return static_cast<std::uint32_t>(__popcll(static_cast<long long>(~(a ^ b))));
#else
  return static_cast<std::uint32_t>(__builtin_popcountll(~(a ^ b)));
#endif
}

template <class Team>
class FoldSearch {
 public:
  KFN FoldSearch(const Team& team, FoldSpace& space, const AdaptiveGrid& lines)
      : team_(team), space_(space), apart_(lines.stride) {
    const std::uint64_t length = lines.values / lines.stride;
    window_ = static_cast<std::uint32_t>(length < kFoldWindow ? length : kFoldWindow);
    first_ = lines.first + (length - window_) / 2 * apart_;
    lags_ = window_ / 4 < kMostFoldLag ? window_ / 4 : kMostFoldLag;
  }

  template <class ValueAt>
  PYF_ON_TEAM Folds find(const ValueAt& value_at) {
    take_signs(value_at);
    const std::uint64_t sum = compare_all();
    const std::uint32_t count = keep_peaks(sum), tested = lags_ - kLeastFoldRow + 1;
    // a lag's margin over the mean of all lags, of 64 * kSecondWords signs
    const auto mean = static_cast<std::uint32_t>(sum * (kSecondWords / kFirstWords) / tested);
    each(team_, count, [&](std::uint32_t i) {
      const std::uint32_t equal = compare(space_.kept[i], kSecondWords);
      space_.rated[i] = equal < mean ? 0 : equal - mean;
    });
    team_.wait();
    return choose(count);
  }

 private:
  // Signs more than the mean: of a lag that is kept, one of 28 (a correlation of 0.07, three standard deviations); of
  // the best one in the end, one of 20.
  static constexpr std::uint32_t kFirstMargin = 64 * kFirstWords / 28, kLeastMargin = 64 * kSecondWords / 20;

  template <class ValueAt>
  PYF_ON_TEAM void take_signs(const ValueAt& value_at) {
    const std::uint32_t words = window_ / 64 + 1;
    each(team_, words, [&](std::uint32_t word) {
      const auto at = [&](std::uint32_t i) { return value_at(first_ + i * apart_); };
      std::uint64_t bits = 0;
      const std::uint32_t from = word == 0 ? 2 : 64 * word, end = 64 * word + 64 < window_ ? 64 * word + 64 : window_;
      if (from < end) {
        auto before = at(from - 1);
        auto difference = before - at(from - 2);
        for (std::uint32_t i = from; i < end; ++i) {
          const auto own = at(i);
          const auto next = own - before;
          bits |= std::uint64_t{next > difference ? 1u : 0u} << i % 64;
          before = own;
          difference = next;
        }
      }
      space_.signs[word] = bits;
    });
    team_.wait();
  }
  KFN std::uint64_t word_at(std::uint32_t at) const {
    return space_.signs[at / 64] >> at % 64 | space_.signs[at / 64 + 1] << 1 << (63 - at % 64);
  }
  // The number of equal signs at a lag, of `words` words.
  KFN std::uint32_t compare(std::uint32_t lag, std::uint32_t words) const {
    const std::uint32_t from = lags_ + 2, room = window_ - 64 - from;
    std::uint32_t equal = 0;
    for (std::uint32_t i = 0; i < words; ++i) {
      const std::uint32_t at = from + static_cast<std::uint32_t>(std::uint64_t{room} * i / words);
      equal += equal_signs(word_at(at), word_at(at - lag));
    }
    return equal;
  }
  // Rates all lags; returns the sum.
  PYF_ON_TEAM std::uint64_t compare_all() {
    std::uint64_t own = 0;
    each(team_, lags_ + 1 - kLeastFoldRow, [&](std::uint32_t i) {
      const std::uint32_t lag = kLeastFoldRow + i, equal = compare(lag, kFirstWords);
      space_.agree[lag] = equal;
      own += equal;
    });
    return sum_of(team_, own);
  }
  // Keeps lags whose signs agree more often than at most lags, and than at the lags beside them: the best ones, if they
  // are too many.
  PYF_ON_TEAM std::uint32_t keep_peaks(std::uint64_t sum) {
    const auto mean = static_cast<std::uint32_t>(sum / (lags_ + 1 - kLeastFoldRow));
    for (std::uint32_t margin = kFirstMargin;; margin += kFirstMargin / 2) {
      const std::uint32_t count = keep_above(mean + margin);
      team_.wait();
      if (count <= kMostKeptLags) return count;
    }
  }
  PYF_ON_TEAM std::uint32_t keep_above(std::uint32_t least) {
    return place_chosen(
        team_, lags_ + 1 - kLeastFoldRow,
        [&](std::uint32_t begin, std::uint32_t end, const auto& note) {
          for (std::uint32_t i = begin; i < end; ++i) {
            const std::uint32_t lag = kLeastFoldRow + i, own = space_.agree[lag];
            if (own < least || (i != 0 && space_.agree[lag - 1] > own)) continue;
            if (lag != lags_ && space_.agree[lag + 1] >= own) continue;
            note(lag);
          }
        },
        [&](std::uint32_t lag, std::uint32_t place) {
          if (place < kMostKeptLags) space_.kept[place] = lag;
        });
  }
  // The best lag makes rows of a plane. Two lags, one a multiple of the other, make rows and planes of a volume.
  PYF_ON_TEAM Folds choose(std::uint32_t count) const {
    Folds folds;
    std::uint32_t best = 0, most = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (space_.rated[i] <= most) continue;
      most = space_.rated[i];
      best = space_.kept[i];
    }
    if (most < kLeastMargin) return folds;
    const std::uint32_t found = best;  // 2 to 4 times a lag are about as good as the lag
    for (std::uint32_t i = count; i-- > 0;)
      if (found % space_.kept[i] == 0 && found / space_.kept[i] <= 4 && 20 * space_.rated[i] >= 19 * most)
        best = space_.kept[i];
    folds.of[folds.count++] = {best, 0};
    TileAxes volume;
    std::uint32_t of_both = 0;
    for (std::uint32_t i = 0; i < count; ++i)
      for (std::uint32_t k = i + 1; k < count; ++k) {
        const std::uint32_t row = space_.kept[i], lag = space_.kept[k], one = space_.rated[i], other = space_.rated[k];
        if (10 * one < 4 * most || 10 * other < 4 * most || one + other <= of_both) continue;
        if (lag % row != 0 || lag / row < kLeastFoldRows) continue;
        of_both = one + other;
        volume = {row, lag / row};
      }
    if (of_both != 0) folds.of[folds.count++] = volume;
    return folds;
  }

  const Team& team_;
  FoldSpace& space_;
  std::uint32_t window_, lags_;
  std::uint64_t apart_, first_;
};

// Finds folds of a line, if the grid is one; value_at(i) is a value of the array.
template <class Team, class ValueAt>
PYF_ON_TEAM Folds find_folds(const Team& team, FoldSpace& space, const AdaptiveGrid& lines, const ValueAt& value_at) {
  if (lines.kind != TileKind::line || lines.values / lines.stride < kLeastFoldLine) return {};
  return FoldSearch<Team>(team, space, lines).find(value_at);
}

PYF_END_TARGET
