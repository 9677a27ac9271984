// SPDX-License-Identifier: BSD-3-Clause
// Steps of 32 lanes of a stream without vector instructions (lorenzo/cpu/lanes.hpp); what the other rans_*.hpp do.
#pragma once

#include "lorenzo/cpu/lanes.hpp"

PYF_BEGIN_TARGET

// Bytes of a stream that a step may read, what is too much included; a step by lanes needs none.
inline constexpr std::ptrdiff_t kStepBytes = 0;

KFN void decode_step(const DecodeTables& tables, const Neighbours& near, std::uint32_t code_bits, std::uint32_t lanes,
                     std::uint32_t i, RoundRows& rows, LaneStates& states, WordReader& words) {
  decode_step_by_lane(tables, near, code_bits, lanes, i, rows, states, words);
}

KFN void encode_step(const EncodeTables& tables, const Neighbours& near, std::uint32_t lanes, std::uint32_t i,
                     const RoundRows& rows, LaneStates& states, WordWriter& words) {
  encode_step_by_lane(tables, near, lanes, i, rows, states, words);
}

// Rows of 32 words to columns, both of 32 words.
KFN void transpose_words(const std::uint32_t* from, std::uint32_t* to) {
  for (int row = 0; row < 32; ++row)
    for (int column = 0; column < 32; ++column) to[32 * column + row] = from[32 * row + column];
}

PYF_END_TARGET
