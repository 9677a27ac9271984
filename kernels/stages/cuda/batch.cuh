// SPDX-License-Identifier: BSD-3-Clause
// The start and the end of encoding a batch of chunks in tiles, on the host. The start makes headers, value ranges (for
// relative bounds) and a plan for each chunk. Then the codecs launch passes over tiles; an empty pass costs a launch.
// The end copies the values of chunks that did not get smaller.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/cuda/driver.hpp"
#include "core/cuda/memory.cuh"
#include "core/cuda/sizes.cuh"
#include "core/types.hpp"
#include "stages/cuda/params.cuh"

namespace pyfilter::cuda {

inline constexpr int kMostPasses = 8;

// Headers of the frames of a batch: quantised, bit-exact.
struct BatchHeaders {
  FrameInfo quantised, exact;
};

class TileBatch {
 public:
  // `tiles`: of all chunks, in each pass. `candidates`: number of predictors to compare.
  TileBatch(const Request& request, const CudaEncodeBatch& batch, std::uint64_t count, const BatchHeaders& headers,
            const std::size_t (&tiles)[kMostPasses], std::size_t candidates);

  // Makes the plans of the chunks. `quantise`: false if all chunks are bit-exact.
  Status start(const Request& request, bool quantise);
  // Copies raw chunks. `all_raw`: every chunk is raw and has no header yet.
  Status finish(bool all_raw);

  [[nodiscard]] TileSums sums(int pass) const { return sums_[pass]; }
  // Memory for the costs of predictors, zeroed.
  [[nodiscard]] unsigned long long* costs() const { return costs_; }
  // Memory for the chunks of each pass, if predictors are compared.
  [[nodiscard]] std::uint32_t* listed() const { return listed_; }
  [[nodiscard]] ChunkPlan* plans() const { return plans_; }
  [[nodiscard]] cudaStream_t stream() const { return stream_; }
  // The OR of the chunks' addresses: its trailing zeros are their common alignment.
  [[nodiscard]] std::uint64_t address_bits() const { return address_bits_; }
  [[nodiscard]] std::uint64_t count() const { return count_; }

  EncodeParams job = {};

 private:
  const CudaEncodeBatch& batch_;
  std::uint64_t count_, address_bits_;
  cudaStream_t stream_;
  std::size_t tiles_[kMostPasses], candidates_;
  TileSums sums_[kMostPasses] = {};
  unsigned long long* costs_ = nullptr;
  std::uint32_t* listed_ = nullptr;
  ChunkPlan* plans_ = nullptr;
  Workspace workspace_;
};

// Whether a frame with this many tiles has no space for its directory, or none behind it: the rule of
// core/cpu_driver.cpp.
inline bool lacks_space(std::uint64_t tiles, std::uint64_t value_bytes) {
  return tiles >= value_bytes / 4 || 4 * (tiles + 1) >= value_bytes;
}

// Calls encode(part) for parts of a batch whose chunks and tiles fit the counters of one launch.
template <class Encode>
Status encode_in_parts(const CudaEncodeBatch& batch, std::uint64_t most_tiles, const Encode& encode) {
  const auto fitting = static_cast<std::size_t>(std::max<std::uint64_t>(1, (std::uint64_t{1} << 31) / most_tiles));
  for (std::size_t first = 0; first < batch.count;) {
    const std::size_t here = std::min({batch.count - first, std::size_t{kMostOfLaunch}, fitting});
    PYF_TRY(encode(slice(batch, first, here)));
    first += here;
  }
  return kOk;
}

}  // namespace pyfilter::cuda
