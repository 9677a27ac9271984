// SPDX-License-Identifier: BSD-3-Clause
// What all encoders on a device start from: headers without what the device decides, and a plan for each chunk.
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

// What the plans of a batch are made from; where they go is set by the caller.
PlanParams plan_params(const Request& request, std::uint64_t count, bool quantise, const EncodeParams& job);

// Value ranges, where the bound is relative; what is at `ranges` must be 0.
Status find_ranges(Dtype dtype, const PlanParams& job, std::uint32_t chunks, cudaStream_t stream);
// These, then the plans.
Status make_plans(Dtype dtype, const PlanParams& job, std::uint32_t chunks, cudaStream_t stream);

}  // namespace pyfilter::cuda
