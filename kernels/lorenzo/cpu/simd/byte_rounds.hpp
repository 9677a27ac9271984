// SPDX-License-Identifier: BSD-3-Clause
// Indices of narrow rounds (encode_rounds.hpp), by bytes: residuals of one position or two a vector.
#pragma once

#include <cstdint>

#include "lorenzo/cpu/simd/encode_rounds.hpp"
#if defined(PYF_LEVEL_AVX512)
#include "lorenzo/cpu/simd/bytes_avx512.hpp"
#else
#include "lorenzo/cpu/simd/bytes_avx2.hpp"
#endif

PYF_BEGIN_TARGET

// Indices of a narrow round.
template <const IndexOf& kOf>
[[gnu::noinline]] inline void index_bytes(const Neighbours& near, const Contexts& contexts, std::uint32_t lanes,
                                          const ByteRows& rows, RoundIndices& indices) {
  constexpr std::uint32_t kPositions = kVectorBytes / kLaneCount;
  const TableBytes tables(contexts);
  for (std::uint32_t i = 0; i < 32; i += kPositions) {
    const auto value = (decltype(every_byte(0)))load<std::uint8_t>(rows.of[i]);
    auto table = tables.of(rows_at(rows, near.first + i), rows_at(rows, near.second + i));
    if (i == 0) table = with_first_row(table, contexts.count);
    decltype(table) joined[2];
    join_bytes(kOf.symbols ? symbols_of_bytes(value) : value, table, joined);
    if constexpr (kOf.symbols)
      for (auto& half : joined) half = weighted(half, 1, 1 << kOf.bits);
    if (lanes < kLaneCount) set_others(joined, lanes, kOf.neutral);
    store_joined(indices.of + i, joined);
  }
}

PYF_END_TARGET
