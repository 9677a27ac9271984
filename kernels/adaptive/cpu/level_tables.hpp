// SPDX-License-Identifier: BSD-3-Clause
// Symbols of a chunk by level of context, from which its tables are made (stages/entropy/level_tables.hpp). Not part of
// the format.
#pragma once

#include <cstdint>

#include "adaptive/model.hpp"
#include "stages/entropy/level_tables.hpp"

PYF_BEGIN_TARGET

struct LevelCounts {
  std::uint32_t of[kContextLevels][kSymbols];
  double raw_bits, stored_bytes;
};
using JoinedContexts = JoinedLevels<kContextLevels>;

PYF_END_TARGET
