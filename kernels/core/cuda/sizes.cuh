// SPDX-License-Identifier: BSD-3-Clause
// Sizes at which a batch is divided or handled in another way. They are small where kernels run on a CPU (tests/simt),
// so that a batch of a few tiles tests every way.
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

// Largest number of chunks or frames in one launch: the y and z dimensions of a grid have 16 bits.
inline constexpr std::uint32_t kMostOfLaunch = usual_size(32768, 40);

}  // namespace pyfilter::cuda
