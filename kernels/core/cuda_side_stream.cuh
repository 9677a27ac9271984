// SPDX-License-Identifier: BSD-3-Clause
// Work beside that of a caller's stream.
#pragma once

#include <cuda_runtime.h>

#include "core/cuda_memory.cuh"
#include "core/status.hpp"

namespace pyfilter::cuda {

// A stream beside the caller's, for work that would leave most of the device idle: it goes first where both want it.
class SideStream {
 public:
  ~SideStream() {
    if (side_ != nullptr && !joined_) (void)cudaStreamSynchronize(side_);  // what it uses is freed behind the caller's
    if (event_ != nullptr) (void)cudaEventDestroy(event_);
    if (side_ != nullptr) (void)cudaStreamDestroy(side_);
  }
  // What is put on it from now on follows what is on `stream`.
  Status fork(cudaStream_t stream) {
    int lowest = 0, highest = 0;
    PYF_TRY(check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "cudaDeviceGetStreamPriorityRange"));
    PYF_TRY(check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreate"));
    PYF_TRY(check(cudaStreamCreateWithPriority(&side_, cudaStreamNonBlocking, highest), "cudaStreamCreate"));
    return follow(side_, stream);
  }
  // What is put on `stream` from now on follows what is on this one.
  Status join(cudaStream_t stream) {
    PYF_TRY(follow(stream, side_));
    joined_ = true;
    return kOk;
  }
  [[nodiscard]] cudaStream_t get() const { return side_; }

 private:
  Status follow(cudaStream_t behind, cudaStream_t ahead) {
    PYF_TRY(check(cudaEventRecord(event_, ahead), "cudaEventRecord"));
    return check(cudaStreamWaitEvent(behind, event_, 0), "cudaStreamWaitEvent");
  }

  cudaStream_t side_ = nullptr;
  cudaEvent_t event_ = nullptr;
  bool joined_ = false;
};

}  // namespace pyfilter::cuda
