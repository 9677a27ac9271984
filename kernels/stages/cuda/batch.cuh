// SPDX-License-Identifier: BSD-3-Clause
// What encoding a batch of chunks in tiles starts from and ends with, from the host's side: headers, value ranges where
// the bound is relative, one plan a chunk; passes over tiles, which the rooms launch; copies of the chunks that did not
// get smaller. A pass that finds nothing to do costs a launch.
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
  // `tiles`: of all chunks, in each pass. `candidates`: among predictors.
  TileBatch(const Request& request, const CudaEncodeBatch& batch, std::uint64_t count, const BatchHeaders& headers,
            const std::size_t (&tiles)[kMostPasses], std::size_t candidates);

  // Plans of the chunks. `quantise`: false where all of them are bit-exact.
  Status start(const Request& request, bool quantise);
  // The copies. `all_raw`: every chunk is raw and has no header yet.
  Status finish(bool all_raw);

  [[nodiscard]] TileSums sums(int pass) const;
  // Room for the costs of predictors, zeroed.
  [[nodiscard]] unsigned long long* costs() const;
  [[nodiscard]] ChunkPlan* plans() const;
  [[nodiscard]] cudaStream_t stream() const { return stream_; }
  // Addresses of chunks, put together: what they are multiples of.
  [[nodiscard]] std::uint64_t places() const { return places_; }
  [[nodiscard]] std::uint64_t count() const { return count_; }

  EncodeParams job = {};

 private:
  const CudaEncodeBatch& batch_;
  std::uint64_t count_, places_;
  cudaStream_t stream_;
  std::size_t tiles_[kMostPasses];
  // offsets in the workspace
  std::size_t bytes_ = 0, counters_, ranges_, sums_[kMostPasses], costs_, zeroed_, plans_, raw_;
  Workspace workspace_;
};

// Whether a frame with so many tiles has no room for its directory, or for anything else (as core/cpu_driver.cpp).
inline bool has_no_room(std::uint64_t tiles, std::uint64_t value_bytes) {
  return tiles >= value_bytes / 4 || 4 * (tiles + 1) >= value_bytes;
}

// Calls encode(part) for parts of a batch whose chunks and tiles fit the counters of one launch.
template <class Encode>
Status encode_in_parts(const CudaEncodeBatch& batch, std::uint64_t most_tiles, const Encode& encode) {
  const auto fitting = static_cast<std::size_t>(std::max<std::uint64_t>(1, (std::uint64_t{1} << 31) / most_tiles));
  for (std::size_t first = 0; first < batch.count;) {
    CudaEncodeBatch part = batch;
    part.count = std::min({batch.count - first, std::size_t{kMostOfLaunch}, fitting});
    part.values = static_cast<const std::uint8_t*>(batch.values) + first * batch.value_stride;
    part.frames = static_cast<std::uint8_t*>(batch.frames) + first * batch.frame_stride;
    part.frame_bytes = batch.frame_bytes + first;
    part.bounds = batch.bounds != nullptr ? batch.bounds + first : nullptr;
    PYF_TRY(encode(part));
    first += part.count;
  }
  return kOk;
}

}  // namespace pyfilter::cuda
