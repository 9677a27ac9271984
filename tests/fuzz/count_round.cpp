// SPDX-License-Identifier: BSD-3-Clause
// What fuzzing found in the counts of a model, by itself: residuals of 32 bits in a round whose others are narrow. The
// counts are those of one value at a time, and none lies outside of them (test_replay.py builds this with sanitizers).
// Then the symbols of narrow residuals, which have ways of their own: all of them.
#include <bit>
#include <cstdio>
#include <cstring>
#include <memory>

#include "lorenzo/cpu/rounds.hpp"
#include "lorenzo/model.hpp"

using namespace pyfilter;
using namespace pyfilter::baseline;

int main() {
  const auto counts = std::make_unique<SymbolCounts>(), expected = std::make_unique<SymbolCounts>();
  const auto rows = std::make_unique<RoundRows>();
  std::memset(rows.get(), 0, sizeof *rows);
  constexpr std::uint32_t kValues[] = {0, 5, 100, 0x7FFFFFFFu, 0x80000000u, 0x80000001u, 0xC0000000u, 0xFFFFFFFFu};
  for (std::uint32_t i = 0; i < 32; ++i)
    for (std::uint32_t l = 0; l < kLaneCount; ++l) rows->low[i][l] = kValues[(i * 7 + l) % 8];
  const Neighbours& near = kNeighbours<kPlane>;
  count_round(near, kLaneCount, *rows, *counts);
  for (std::uint32_t i = 0; i < 32; ++i) {
    for (std::uint32_t l = 0; l < kLaneCount; ++l) {
      const std::uint32_t sum = capped(rows->value(near.first[i], l)) + capped(rows->value(near.second[i], l));
      ++expected->of[(i == 0 ? kLevels : level_of(sum)) * kSymbols + symbol_of(rows->value(i, l))];
    }
  }
  const bool same = std::memcmp(counts->of, expected->of, sizeof counts->of) == 0;
  std::puts(same ? "the same counts" : "other counts");
  for (std::uint32_t z = 0; z < 1u << 23; ++z) {
    if (symbol_of_small(z) == symbol_of(z) && symbol_of_narrow(z) == symbol_of(z) && symbol_of_word(z) == symbol_of(z))
      continue;
    std::printf("another symbol of %u\n", z);
    return 1;
  }
  return same ? 0 : 1;
}
