// SPDX-License-Identifier: BSD-3-Clause
// The start of all encoders on a device: headers without the device's choices, and a plan for each chunk.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/request.hpp"
#include "core/status.hpp"
#include "core/types.hpp"
#include "stages/cuda/params.cuh"

namespace pyfilter::cuda {

struct PlanParams;

HeaderTemplate header_template(const FrameInfo& info);

// Inputs of a batch's plans; the caller sets their destination.
PlanParams plan_params(const Request& request, std::uint64_t count, bool quantise, const EncodeParams& job);

// Value ranges, for relative bounds; the memory at `ranges` must be 0.
Status find_ranges(Dtype dtype, const PlanParams& job, std::uint32_t chunks, cudaStream_t stream);
// find_ranges(), then the plans.
Status make_plans(Dtype dtype, const PlanParams& job, std::uint32_t chunks, cudaStream_t stream);

}  // namespace pyfilter::cuda
