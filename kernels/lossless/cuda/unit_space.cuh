// SPDX-License-Identifier: BSD-3-Clause
// The shared memory of thread blocks that encode units of effort "ratio".
#pragma once

#include <cstdint>

#include "lossless/cuda/encode_params.cuh"
#include "lossless/cuda/offset_writer.cuh"

namespace pyfilter::cuda {

// What a warp leaves of its part of a stream: the bits of offsets, the symbol that all values have if any is, or none.
struct CodedPart {
  static constexpr std::uint32_t kNoSymbol = ~0u;

  std::uint32_t bits, same;
};

template <class U>
struct UnitSpace {
  EncodedBins<U> bins;
  CodedPart parts[kUnitWarps];
  std::uint32_t staged[kUnitWarps][kStagedWords<U> + 3];  // a lane may add zeros behind its bits
};
// The shared memory of a thread block; called where it is used, as team_space() is.
template <class U>
__device__ __forceinline__ UnitSpace<U>& unit_space() {
  extern __shared__ uint4 shared_memory[];
  return *reinterpret_cast<UnitSpace<U>*>(shared_memory);
}

}  // namespace pyfilter::cuda
