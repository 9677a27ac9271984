// SPDX-License-Identifier: BSD-3-Clause
// Process-wide settings as the drivers see them; set through api.hpp or the environment (PYFILTER_NUM_THREADS,
// PYFILTER_CPU, PYFILTER_BACKEND), which programs like h5dump use.
#pragma once

namespace pyfilter {

int resolved_threads() noexcept;  // threads of a call that this thread makes now, >= 1

enum class Backend { automatic, cpu, cuda };
Backend backend() noexcept;
// Whether a call on values in host memory tries the GPU first. Backend auto uses the CPU, which is faster
// than copies to the device and back (docs/architecture.md, "Backends"; benchmarks/gpu_pipeline.py).
bool prefers_cuda() noexcept;

}  // namespace pyfilter
