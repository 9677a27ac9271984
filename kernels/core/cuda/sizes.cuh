// SPDX-License-Identifier: BSD-3-Clause
// Sizes from which on batches are divided, or done in another way. Where kernels run on a CPU (tests/simt) they are
// small, so that a batch of a few tiles comes to every way.
#pragma once

#include <cstdint>

namespace pyfilter::cuda {

constexpr std::uint64_t usual_size(std::uint64_t usual, [[maybe_unused]] std::uint64_t small) {
#if defined(PYF_SIMT)
  return small;
#else
  return usual;
#endif
}

// Chunks or frames of a launch at most: the y and z dimensions of a grid have 16 bits.
inline constexpr std::uint32_t kMostOfLaunch = usual_size(32768, 40);

}  // namespace pyfilter::cuda
