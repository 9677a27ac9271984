// SPDX-License-Identifier: BSD-3-Clause
// Process-wide settings as the drivers see them; set through api.hpp or the environment (PYFILTER_NUM_THREADS,
// PYFILTER_CPU), which programs like h5dump use.
#pragma once

#include "core/plan.hpp"

namespace pyfilter {

const LevelTable& level_table() noexcept;
int resolved_threads() noexcept;  // for a call made now on this thread, >= 1

}  // namespace pyfilter
