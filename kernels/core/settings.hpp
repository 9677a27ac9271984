// SPDX-License-Identifier: BSD-3-Clause
// Process-wide settings as the drivers see them; set through api.hpp or the environment (PYFILTER_NUM_THREADS,
// PYFILTER_CPU, PYFILTER_BACKEND), which programs like h5dump use.
#pragma once

#include "core/plan.hpp"

namespace pyfilter {

const LevelTable& level_table() noexcept;
int resolved_threads() noexcept;  // for a call made now on this thread, >= 1

enum class Backend { automatic, cpu, cuda };
Backend backend() noexcept;
// Whether a call on values in host memory is worth trying on the GPU first.
bool prefers_cuda(std::size_t value_bytes) noexcept;

}  // namespace pyfilter
