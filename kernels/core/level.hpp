// SPDX-License-Identifier: BSD-3-Clause
// CPU levels. Code that is compiled once for each level (target.hpp) exports tables of functions; callers use the table
// of the level in use (settings.hpp).
#pragma once

#include <cstdint>

#include "core/plan.hpp"
#include "core/types.hpp"

namespace pyfilter {

// The level in use: the best one of the machine, or the one that was set, as its place in PYF_EACH_LEVEL.
int level_in_use() noexcept;

#if defined(PYF_HAVE_X86_LEVELS)
#define PYF_EACH_LEVEL(F, ...) F(baseline, __VA_ARGS__) F(avx2, __VA_ARGS__) F(avx512, __VA_ARGS__)
#elif !defined(PYF_EACH_LEVEL)  // a build for one machine (PYF_LEVELS=native) has its own
#define PYF_EACH_LEVEL(F, ...) F(baseline, __VA_ARGS__)
#endif
#define PYF_DECLARE_TABLE(level, Type, table) \
  namespace level {                           \
  extern const Type table;                    \
  }
#define PYF_TABLE_ADDRESS(level, Type, table) &level::table,

// Declares `table` for every level, and `function`, which returns the table of the level in use.
#define PYF_LEVEL_TABLE(Type, table, function)                                                 \
  PYF_EACH_LEVEL(PYF_DECLARE_TABLE, Type, table)                                               \
  inline const Type& function() {                                                              \
    static constexpr const Type* kTables[] = {PYF_EACH_LEVEL(PYF_TABLE_ADDRESS, Type, table)}; \
    return *kTables[level_in_use()];                                                           \
  }

// Functions that look at a chunk's values before they are encoded (stages/cpu/values.cpp).
struct ValueStages {
  // `bound` is the absolute bound of the request, or its pointwise relative bound.
  StepChoice (*choose_step)(const Request& request, double bound, const void* values, std::uint64_t count);
  // Smallest and largest finite value, without the fill value; false if there is none.
  bool (*value_range)(const Request& request, const void* values, std::uint64_t count, double* low, double* high);
  // The same for integers, as differences from the lowest value of the type.
  bool (*integer_range)(const Request& request, const void* values, std::uint64_t count, std::uint64_t* low,
                        std::uint64_t* high);
};
PYF_LEVEL_TABLE(ValueStages, kValueStages, value_stages)

}  // namespace pyfilter
