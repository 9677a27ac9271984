// SPDX-License-Identifier: BSD-3-Clause
// The choice of a predictor (choose.hpp) on the CPU.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>

#include "core/plan.hpp"
#include "core/target.hpp"
#include "stages/packed/choose.hpp"
#include "stages/packed/choose_narrow.hpp"
#include "stages/packed/encode.hpp"
#include "stages/packed/lorenzo.hpp"
#include "stages/packed/sampled_code.hpp"
#include "stages/packed/values.hpp"

PYF_BEGIN_TARGET

// Codes of a run of 32 values for the sample. Values without one take that of the value before them in the run, those
// at its start the first one that there is, or 0.
template <class Map>
inline void sample_codes(const Map& map, const Loose<typename Map::Value>* x, typename Map::Code* q) {
  using T = typename Map::Value;
  using Code = typename Map::Code;
  if (encode_block<Map, 32>(map, x, q) == 0) return;
  if constexpr (Map::kHasSpecial) {
    std::uint32_t plain = 0;
    for (int i = 0; i < 32; ++i)
      plain |= static_cast<std::uint32_t>(sampled_code(map.quantizer, static_cast<T>(x[i]), q[i])) << i;
    if (plain == ~0u) return;
    Code last = plain != 0 ? q[__builtin_ctz(plain)] : Code{0};
    for (int i = 0; i < 32; ++i) {
      if ((plain >> i & 1) != 0)
        last = q[i];
      else
        q[i] = last;
    }
  }
}

// coded_block_cost() of a block's differences.
template <class Code>
KFN std::uint64_t coded_cost(const Code (&difference)[32]) {
  std::uint32_t bits = 0;
  for (const Code d : difference) bits += coded_width(zigzag(d));
  return coded_block_cost(bits);
}

template <class Map>
struct SampleScratch {
  using Code = typename Map::Code;
  alignas(64) typename Map::Value values[4096];
  PaddedCodes<Code, 4096> codes;
  alignas(64) Code differences[4096];
};

// Bits of the present blocks of a tile whose codes are there: as bit planes, or as an entropy coder may take them.
template <int S, class Map>
inline std::uint64_t sampled_bits(const Map& map, const Plan& plan, const TileBox& box, int order,
                                  SampleScratch<Map>& s) {
  using Code = typename Map::Code;
  if constexpr (S == kChain) {
    s.codes[-1] = s.codes[0];
    for (int i = 0; i < 4096; ++i) s.differences[i] = static_cast<Code>(s.codes[i] - (order != 0 ? s.codes[i - 1] : 0));
    s.differences[0] = 0;
  } else {
    tile_differences<S>(order, s.codes.data(), s.differences);
    s.differences[0] = 0;
  }
  std::uint64_t bits = 0;
  std::uint32_t narrowest = 255, widest = 0;
  for (std::uint32_t b = 0; b < kPackedBlocks; ++b) {
    if (!is_present<S>(box, b)) continue;
    alignas(64) Code d[32];
    take_block<S>(s.differences, b, d);
    if (plan.entropy) {
      bits += coded_cost(d);
      continue;
    }
    // the two widest: of every kTogether-th value, then of all
    constexpr int kTogether = 8;
    alignas(64) Code first[kTogether] = {}, second[kTogether] = {};
    for (int i = 0; i < 32; i += kTogether) {
      for (int k = 0; k < kTogether; ++k) {
        const Code z = zigzag(map.wrap(d[i + k]));
        second[k] = std::max(second[k], std::min(first[k], z));
        first[k] = std::max(first[k], z);
      }
    }
    for (int half = kTogether / 2; half > 0; half /= 2) {
      for (int k = 0; k < half; ++k) {
        second[k] = std::max(std::max(second[k], second[k + half]), std::min(first[k], first[k + half]));
        first[k] = std::max(first[k], first[k + half]);
      }
    }
    const std::uint32_t cost = block_cost(first[0], second[0], plan.exceptions), width = cost / 32;
    bits += cost;
    narrowest = std::min(narrowest, width);
    widest = std::max(widest, width);
  }
  const std::uint32_t inside = box.inz * box.iny * box.inx;
  return plan.entropy ? bits * 4096 / inside : tile_cost(bits, narrowest, widest, inside);
}

// Adds to each open candidate of a tile shape the bits of the sample.
template <int S, class Map>
inline void sample_shape(const Request& request, const Plan& plan, const void* values, std::uint64_t count,
                         const bool (&open)[kCandidates], SampleScratch<Map>& s, std::uint64_t (&bits)[kCandidates]) {
  bool any = false;
  for (int c = 0; c < kCandidates; ++c) any = any || (open[c] && predictor_at(c).tile_shape == S);
  if (!any) return;
  const Map map(plan);
  const Grid grid = make_packed_grid(request.shape, count, S);
  for (std::uint64_t k = 0; k < sample_count(count, plan.entropy); ++k) {
    const TileBox box = tile_box<S>(grid, tile_of_value<S>(grid, sampled_value(count, k)));
    if constexpr (Map::kHasSpecial) {
      std::uint64_t costs[4];
      if (plan.entropy && narrow_costs<S>(map, grid, values, box, s.values, costs)) {
        const std::uint32_t inside = box.inz * box.iny * box.inx;
        for (int c = 0; c < kCandidates; ++c)
          if (predictor_at(c).tile_shape == S) bits[c] += costs[predictor_at(c).order] * 4096 / inside;
        continue;
      }
    }
    const Loose<typename Map::Value>* x = load_tile<S>(grid, values, box, s.values);
    for (int i = 0; i < 4096; i += 32) sample_codes(map, x + i, s.codes + i);
    for (int c = 0; c < kCandidates; ++c)
      if (predictor_at(c).tile_shape == S) bits[c] += sampled_bits<S>(map, plan, box, predictor_at(c).order, s);
  }
}

template <class Map>
inline Predictor choose_predictor(const Request& request, const Plan& plan, const void* values, std::uint64_t count) {
  const int asked = request.parameters[0], rank = request.shape.rank;
  if (asked == kChain || asked == kColumns) return {static_cast<std::uint8_t>(asked), 1};
  const std::uint64_t columns = rank == 0 ? 1 : request.shape.dims[static_cast<std::size_t>(rank - 1)];
  bool open[kCandidates];
  for (int c = 0; c < kCandidates; ++c) open[c] = is_candidate(predictor_at(c), asked, rank, columns);
  std::uint64_t bits[kCandidates] = {};
  const std::unique_ptr<SampleScratch<Map>> scratch(new (std::nothrow) SampleScratch<Map>);
  if (scratch != nullptr) {  // else the first: any predictor will do
    sample_shape<kChain, Map>(request, plan, values, count, open, *scratch, bits);
    sample_shape<kColumns, Map>(request, plan, values, count, open, *scratch, bits);
    sample_shape<kPlane, Map>(request, plan, values, count, open, *scratch, bits);
    sample_shape<kVolume, Map>(request, plan, values, count, open, *scratch, bits);
  }
  return predictor_at(best_candidate(open, bits, asked));
}

PYF_END_TARGET
