// SPDX-License-Identifier: BSD-3-Clause
// Copies and conversions of many arrays by one launch. Lists are copied to device memory that the caller gives.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/status.hpp"
#include "core/types.hpp"

namespace pyfilter::cuda {

struct ArrayCopy {
  const std::uint8_t* from;
  std::uint8_t* to;
  std::uint64_t bytes;
};

// From values of derived types to values of base types, or back (core/base_values.hpp, core/half_values.hpp).
enum class Conversion : std::uint32_t {
  split_c64,   // pairs of f32 to two planes
  split_c128,  // pairs of f64
  join_c64,    // two planes to pairs
  join_c128,
  order,       // 16-bit floats to integers in the order of the values, or back
  narrow_f16,  // f32 to 16-bit floats
  narrow_bf16
};
struct ArrayConversion {
  const std::uint8_t* from;
  std::uint8_t* to;
  Conversion kind;
};

// From values of `dtype` to the base type; of 16-bit floats that are encoded bit for bit.
Conversion conversion_to_base(Dtype dtype) noexcept;
// The other way round. `wide`: the base type of a 16-bit float is f32.
Conversion conversion_from_base(Dtype dtype, bool wide) noexcept;

// `on_device`: memory for the list.
Status copy_arrays(const std::vector<ArrayCopy>& list, ArrayCopy* on_device, cudaStream_t stream) noexcept;
// Each array has `count` values of the derived type.
Status convert_arrays(const std::vector<ArrayConversion>& list, std::uint64_t count, ArrayConversion* on_device,
                      cudaStream_t stream) noexcept;

}  // namespace pyfilter::cuda
