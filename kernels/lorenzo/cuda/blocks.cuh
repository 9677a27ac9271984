// SPDX-License-Identifier: BSD-3-Clause
// The number of thread blocks of lorenzo's kernels.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "stages/cuda/launch.cuh"

namespace pyfilter::cuda {

// Thread blocks for each chunk or frame, such that all chunks together have about as many as run at once.
inline unsigned blocks_each(unsigned resident, std::uint64_t wanted, std::uint32_t count) {
  return static_cast<unsigned>(std::clamp<std::uint64_t>(wanted, 1, (resident + count - 1) / count));
}
// The same, but not more than run at once: the last would run alone.
inline unsigned blocks_at_once(unsigned resident, std::uint64_t wanted, std::uint32_t count) {
  return static_cast<unsigned>(std::clamp<std::uint64_t>(wanted, 1, std::max(1u, resident / count)));
}

}  // namespace pyfilter::cuda
