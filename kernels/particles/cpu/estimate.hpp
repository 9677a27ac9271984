// SPDX-License-Identifier: BSD-3-Clause
// The estimate of estimate.hpp on the CPU (particles/cuda/estimate.cuh is the same on a GPU).
#pragma once

#include <cstdint>
#include <cstring>

#include "core/target.hpp"
#include "particles/codes.hpp"
#include "particles/estimate.hpp"
#include "particles/plan.hpp"

PYF_BEGIN_TARGET

static_assert(kEstimateCounts * sizeof(std::uint32_t) <= kParticleScratchBytes);

// Codes of a run. A value without a code takes the code of the previous particle, or 0; returns the number of such
// values.
template <class T, int D>
inline std::uint32_t code_run(const Quantizer<T>& p, const T* x,
                              typename FloatTraits<T>::Code (&q)[kEstimateRun + 1][D]) {
  using Code = typename FloatTraits<T>::Code;
  std::uint32_t specials = 0;
  for (int d = 0; d < D; ++d) {
    Code before = 0;
    for (std::uint32_t i = 0; i <= kEstimateRun; ++i) {
      Code own;
      const bool fits = code_value<true>(p, x[i * D + static_cast<std::uint32_t>(d)], own);
      q[i][d] = fits ? own : before;
      before = fits ? own : 0;
      specials += fits ? 0 : 1;
    }
  }
  return specials;
}

template <class T, int D>
inline std::uint64_t estimate_lorenzo(const ParticlePlan& plan, const void* values, void* scratch) {
  using Code = typename FloatTraits<T>::Code;
  constexpr std::size_t kParticle = D * sizeof(T);
  const Quantizer<T> p = quantizer_of<T>(plan);
  const std::uint64_t particles = plan.grid.values / D;
  auto* const counts = static_cast<std::uint32_t*>(scratch);
  std::memset(counts, 0, kEstimateCounts * sizeof *counts);
  std::uint64_t specials = 0;
  for (std::uint32_t run = 0; run < kEstimateRuns; ++run) {
    T x[(kEstimateRun + 1) * D];
    std::memcpy(x, static_cast<const std::uint8_t*>(values) + estimate_run(particles, run) * kParticle, sizeof x);
    Code q[kEstimateRun + 1][D];
    specials += code_run<T, D>(p, x, q);
    for (int d = 0; d < D; ++d) {
      Code before = 0, second = 0;
      for (std::uint32_t i = 0; i < kEstimateRun; ++i) {
        const Code residual = zigzag(static_cast<Code>(q[i + 1][d] - q[i][d]));
        ++counts[estimate_index(residual, before, second, i)];
        second = before;
        before = residual;
      }
    }
  }
  std::uint64_t bits = 0;
  for (std::uint32_t table = 0; table <= kEstimateOctaves; ++table) {
    std::uint64_t inner = 0;
    std::uint32_t total = 0;
    for (std::uint32_t symbol = 0; symbol < kSymbols; ++symbol) {
      const std::uint32_t count = counts[table * kSymbols + symbol];
      total += count;
      inner += share_of(count);
      bits += raw_share(symbol, count);
    }
    bits += share_of(total) - inner;
  }
  return estimated_bytes(bits, specials * sizeof(T), particles);
}

PYF_END_TARGET
