// SPDX-License-Identifier: BSD-3-Clause
// Rows of a block and differences along its axes, portable. blocks_avx2.hpp and blocks_avx512.hpp do the same in
// registers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/target.hpp"

PYF_BEGIN_TARGET

// Rows of this many bytes that join_rows() takes at once, and puts one after another.
template <int kRowBytes>
inline constexpr int kJoinedRows = 1;

template <int kRowBytes>
KFN void join_rows(const std::uint8_t* const (&rows)[1], std::uint8_t* to) {
  std::memcpy(to, rows[0], kRowBytes);
}

// to[i] = from[i] - its neighbour along one axis, for `blocks` blocks one after another.
template <int kStride, int kRun, class Code>
KFN void difference(const Code* from, Code* to, int blocks) {
  for (int b = 0; b < blocks; ++b, from += 64, to += 64)
    for (int i = 0; i < 64; ++i)
      to[i] = static_cast<Code>(from[i] - (from[i - kStride] & kNeighbour<Code, kStride, kRun, 64>.mask[i]));
}

// Differences of whole 2-D or 3-D blocks along all their axes, q -> d, through t; all three have kDifferencePad
// readable values before them. One axis is done for all blocks before the next, so no load waits for the store of its
// neighbour.
template <int D, class Code>
KFN void differences(const Code* q, Code* t, Code* d, int blocks) {
  if constexpr (D == 2) {
    difference<1, 8>(q, t, blocks);
    difference<8, 64>(t, d, blocks);
  } else {
    difference<1, 4>(q, d, blocks);
    difference<4, 16>(d, t, blocks);
    difference<16, 64>(t, d, blocks);
  }
}

PYF_END_TARGET
