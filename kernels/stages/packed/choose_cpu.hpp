// SPDX-License-Identifier: BSD-3-Clause
// The cost of predictors for a sampled tile (choose.hpp), on the CPU.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>

#include "core/target.hpp"
#include "stages/packed/any_map.hpp"
#include "stages/packed/choose.hpp"
#include "stages/packed/choose_narrow.hpp"
#include "stages/packed/differences.hpp"
#include "stages/packed/plan.hpp"
#include "stages/packed/tile_bits.hpp"
#include "stages/packed/tile_values.hpp"

PYF_BEGIN_TARGET

template <class Code>
struct SampleScratch {
  alignas(64) std::uint8_t values[4096 * sizeof(Code)];  // at the width of the values
  PaddedCodes<Code, 4096> codes;
  alignas(64) Code differences[4096];
};

template <class Code>
KFN Code larger(Code a, Code b) {
  return a < b ? b : a;
}
template <class Code>
KFN Code smaller(Code a, Code b) {
  return a < b ? a : b;
}

// The two widest residuals of several values.
template <class Code, int N>
struct WidestTwo {
  alignas(64) Code first[N], second[N];
};

// Reduces pairs of neighbours: halves the number of entries.
template <class Code, int N, int M>
KFN void join_widest(const WidestTwo<Code, N>& from, int count, WidestTwo<Code, M>& to) {
  for (int k = 0; k < count; ++k) {
    const Code a = from.first[2 * k], b = from.first[2 * k + 1];
    to.first[k] = larger(a, b);
    to.second[k] = larger(larger(from.second[2 * k], from.second[2 * k + 1]), smaller(a, b));
  }
}

// Blocks of a tile shape as rows of kLanes lanes. Blocks of chains and columns are consecutive runs, in rows of eight.
template <int S>
struct LaneShape {
  using Tile = TileShape<S>;
  static constexpr bool kTogether = S == kChain || S == kColumns;
  static constexpr int kRows = S == kChain ? 4 : S == kColumns ? 16 : 32 / static_cast<int>(Tile::kBlockX);
  static constexpr int kLanes = S == kChain     ? 8
                                : S == kColumns ? 1
                                                : static_cast<int>(Tile::kBlockX);  // lanes of a block
  static constexpr int kAll = 4096 / kRows;
  // index in the tile of the first of a group's eight lanes, and the stride of its blocks' rows
  static constexpr std::uint32_t first_of(std::uint32_t group) {
    if (kTogether) return group * 8 * kRows;
    constexpr std::uint32_t kGroups = Tile::kX / 8;
    const std::uint32_t strip = group / kGroups;
    return (strip / Tile::kBlocksY * Tile::kBlockZ * Tile::kY + strip % Tile::kBlocksY * Tile::kBlockY) * Tile::kX +
           group % kGroups * 8;
  }
  static constexpr std::uint32_t row_of(std::uint32_t row) {
    return kTogether ? 8 * row : Tile::within(row * Tile::kBlockX);
  }
};

// The two widest residuals of each block of a tile of differences; blocks in the order of their rows.
template <int S, class Code>
KFN void find_widest(const Code* d, WidestTwo<Code, 1024>& found) {
  using Lanes = LaneShape<S>;
  WidestTwo<Code, 1024> other;
  WidestTwo<Code, 1024>& start = Lanes::kLanes == 1 || Lanes::kLanes == 4 ? found : other;
  for (std::uint32_t group = 0; group < Lanes::kAll / 8; ++group) {
    const Code* const from = d + Lanes::first_of(group);
    alignas(64) Code first[8] = {}, second[8] = {};
#pragma GCC unroll 16
    for (std::uint32_t i = 0; i < Lanes::kRows; ++i) {
      const Code* row = from + Lanes::row_of(i);
      asm("" : "+r"(row));  // keeps the address out of an index that may wrap: the values would be loaded one by one
      for (int k = 0; k < 8; ++k) {
        const Code z = zigzag(row[k]);
        second[k] = larger(second[k], smaller(first[k], z));
        first[k] = larger(first[k], z);
      }
    }
    std::memcpy(start.first + 8 * group, first, sizeof first);
    std::memcpy(start.second + 8 * group, second, sizeof second);
  }
  if constexpr (Lanes::kLanes == 8) {
    join_widest(other, 512, found);
    join_widest(found, 256, other);
    join_widest(other, 128, found);
  } else if constexpr (Lanes::kLanes == 4) {
    join_widest(found, 256, other);
    join_widest(other, 128, found);
  } else {  // the two halves of columns, four lanes apart
    for (int b = 0; b < kPackedBlocks; ++b) {
      const int k = b / 4 * 8 + b % 4;
      const Code x = found.first[k], y = found.first[k + 4];
      other.first[b] = larger(x, y);
      other.second[b] = larger(larger(found.second[k], found.second[k + 4]), smaller(x, y));
    }
    std::memcpy(found.first, other.first, kPackedBlocks * sizeof(Code));
    std::memcpy(found.second, other.second, kPackedBlocks * sizeof(Code));
  }
}

// Calls add(index) for each present block; `index` counts in the order of rows.
template <int S, class Add>
KFN void for_present(const TileBox& box, Add&& add) {
  using Tile = TileShape<S>;
  for (std::uint32_t z = 0; z * Tile::kBlockZ < box.inz; ++z)
    for (std::uint32_t y = 0; y * Tile::kBlockY < box.iny; ++y)
      for (std::uint32_t x = 0; x * Tile::kBlockX < box.inx; ++x) add((z * Tile::kBlocksY + y) * Tile::kBlocksX + x);
}

// Bits of a tile's present blocks from its codes: as bit planes, or as an entropy coder's cost.
template <int S, class Code>
[[gnu::noinline]] inline std::uint64_t sampled_bits(const PackedPlan& plan, const TileBox& box, int order,
                                                    SampleScratch<Code>& s) {
  const std::uint32_t inside = box.inz * box.iny * box.inx;
  if constexpr (S == kChain) {
    s.codes[-1] = s.codes[0];
    if (order != 0)
      for (int i = 0; i < 4096; ++i) s.differences[i] = static_cast<Code>(s.codes[i] - s.codes[i - 1]);
    else
      std::memcpy(s.differences, s.codes, sizeof s.differences);
  } else {
    if (inside != 4096) std::memset(s.differences, 0, sizeof s.differences);  // absent rows are read, too
    tile_differences<S>(order, present_rows<S>(box), s.codes.data(), s.differences);
  }
  s.differences[0] = 0;
  if (plan.entropy) {
    CodedSums sums;
    for (const std::uint32_t b : present_blocks<S>(box)) {
      alignas(64) Code d[32];
      take_block<S>(s.differences, b, d);
      sums.add(width_notes(d));
    }
    return sums.cost(inside);
  }
  std::uint32_t bits = 0;
  std::uint32_t narrowest = 255, widest = 0;
  WidestTwo<Code, 1024> found;
  const int shift = wrap_shift(plan);
  if (sizeof(Code) == 4 && shift != 0)
    for (Code& d : s.differences) d = wrapped(d, shift);
  find_widest<S>(s.differences, found);
  for_present<S>(box, [&](std::uint32_t b) {
    const std::uint32_t cost = block_cost(found.first[b], found.second[b], plan.exceptions), width = cost / 32;
    bits += cost;
    narrowest = std::min(narrowest, width);
    widest = std::max(widest, width);
  });
  return tile_cost(bits, narrowest, widest, inside);
}

// Adds the bits of the sampled value's tile to each candidate of a tile shape.
template <int S, class Code>
inline void sample_shape(const Request& request, const PackedPlan& plan, const AnyMap<Code>& map, const void* values,
                         std::uint64_t count, std::uint64_t sampled, const std::uint8_t* next_tile,
                         SampleScratch<Code>& s, PredictorCosts& costs) {
  const Grid grid = make_packed_grid(request.shape, count, S);
  const TileBox box = tile_box_of_value<S>(grid, sampled);
  std::uint64_t by_order[4];
  if (plan.entropy && map.of.narrow_rows != nullptr &&
      narrow_costs<S>(map, grid, values, box, next_tile, s.values, costs.small[S], by_order)) {
    for (int c = 0; c < kCandidates; ++c)
      if (predictor_at(c).tile_shape == S) costs.bits[c] += by_order[predictor_at(c).order];
    return;
  }
  const void* const x = load_values<S>({map.of.value_bytes, grid, box, values, nullptr}, s.values);
  map.of.sample_runs(map.memory, x, kPackedBlocks, s.codes);
  for (int c = 0; c < kCandidates; ++c)
    if (predictor_at(c).tile_shape == S) costs.bits[c] += sampled_bits<S>(plan, box, predictor_at(c).order, s);
}

// Calls run.operator()<S>() for a tile shape known at run time.
template <class Run>
KFN void with_shape(int shape, const Run& run) {
  if (shape == kChain) return run.template operator()<kChain>();
  if (shape == kColumns) return run.template operator()<kColumns>();
  if (shape == kPlane) return run.template operator()<kPlane>();
  return run.template operator()<kVolume>();
}

template <class Code>
inline void sample_predictors(const Request& request, const PackedPlan& plan, const void* values, std::uint64_t count,
                              std::uint64_t k, void* scratch, PredictorCosts& costs) {
  static_assert(sizeof(SampleScratch<Code>) <= kScratchBytes);
  auto& own = *new (scratch) SampleScratch<Code>;
  const AnyMap<Code> map(plan);
  bool open[kCandidates], tried[5] = {};
  find_candidates(request, open);
  for (int c = 0; c < kCandidates; ++c) tried[predictor_at(c).tile_shape] |= open[c];
  int shapes[4], used = 0;
  for (const int shape : {kChain, kColumns, kPlane, kVolume})
    if (tried[shape]) shapes[used++] = shape;
  for (int i = 0; i < used; ++i) {
    const bool last = i + 1 == used;
    const std::uint8_t* next_tile = nullptr;
    with_shape(shapes[last ? 0 : i + 1], [&]<int S>() {
      const Grid grid = make_packed_grid(request.shape, count, S);
      const std::uint64_t first = tile_box_of_value<S>(grid, sampled_value(count, last ? k + 1 : k)).first;
      next_tile = static_cast<const std::uint8_t*>(values) + first * map.of.value_bytes;
    });
    with_shape(shapes[i], [&]<int S>() {
      sample_shape<S>(request, plan, map, values, count, sampled_value(count, k), next_tile, own, costs);
    });
  }
}

PYF_END_TARGET
