// SPDX-License-Identifier: BSD-3-Clause
// The axes that the parts of a batch may have, and the memory that their tiles need.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "adaptive/cuda/encode_params.cuh"
#include "core/cuda/driver.hpp"
#include "core/status.hpp"
#include "core/types.hpp"

namespace pyfilter::cuda {

class BatchAxes {
 public:
  // Finds folds of the lines of a batch; waits.
  Status find(const Shape& shape, std::uint64_t count, const CudaEncodeBatch& batch, const AdaptiveEncoders& encoders);
  // Sets the orders of a job, and how much memory of its arrays a part takes.
  void set_orders(std::size_t value_bytes, AdaptiveEncode& job) const;
  // Copies the grids of `count` chunks from `first` on to the device: of each order those of all parts.
  Status upload(std::size_t first, std::size_t count, AdaptiveGrid* on_device, AdaptiveEncode& job,
                cudaStream_t stream);

 private:
  AdaptiveGrid grid_of(std::uint32_t order, std::size_t part) const;

  PartGrids grids_;
  std::uint32_t parts_ = 1, orders_ = 1;
  std::vector<Folds> folds_;  // of each part, if one has any
  std::vector<AdaptiveGrid> uploaded_;
};

}  // namespace pyfilter::cuda
