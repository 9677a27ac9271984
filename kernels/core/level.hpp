// SPDX-License-Identifier: BSD-3-Clause
// CPU levels: code that is compiled once for each (target.hpp) exports tables of functions, and callers take the one of
// the level in use (settings.hpp).
#pragma once

#include <cstdint>

#include "core/plan.hpp"
#include "core/types.hpp"

namespace pyfilter {

// The best level that the machine has, or the one that was asked for: 0 baseline, 1 avx2, 2 avx512.
int level_in_use() noexcept;

#if defined(PYF_HAVE_X86_LEVELS)
#define PYF_EACH_LEVEL(F, ...) F(baseline, __VA_ARGS__) F(avx2, __VA_ARGS__) F(avx512, __VA_ARGS__)
#else
#define PYF_EACH_LEVEL(F, ...) F(baseline, __VA_ARGS__)
#endif
#define PYF_DECLARE_TABLE(level, Type, table) \
  namespace level {                           \
  extern const Type table;                    \
  }
#define PYF_TABLE_ADDRESS(level, Type, table) &level::table,

// Declares `table`, of which every level has one, and `function`, which returns that of the level in use.
#define PYF_LEVEL_TABLE(Type, table, function)                                                 \
  PYF_EACH_LEVEL(PYF_DECLARE_TABLE, Type, table)                                               \
  inline const Type& function() {                                                              \
    static constexpr const Type* kTables[] = {PYF_EACH_LEVEL(PYF_TABLE_ADDRESS, Type, table)}; \
    return *kTables[level_in_use()];                                                           \
  }

// What a chunk's values are asked before they are encoded (stages/cpu/values.cpp).
struct ValueStages {
  // `bound` is the absolute one that the request means, or its own where that is relative to each value.
  StepChoice (*choose_step)(const Request& request, double bound, const void* values, std::uint64_t count);
  // Smallest and largest finite value but the fill's; false when there is none.
  bool (*value_range)(const Request& request, const void* values, std::uint64_t count, double* low, double* high);
  // The same of integers, as numbers above the lowest one of their type.
  bool (*integer_range)(const Request& request, const void* values, std::uint64_t count, std::uint64_t* low,
                        std::uint64_t* high);
};
PYF_LEVEL_TABLE(ValueStages, kValueStages, value_stages)

}  // namespace pyfilter
