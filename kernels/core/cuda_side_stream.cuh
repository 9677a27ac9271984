// SPDX-License-Identifier: BSD-3-Clause
// Work beside that of a caller's stream.
#pragma once

#include <cuda_runtime.h>

#include "core/cuda_memory.cuh"
#include "core/status.hpp"

namespace pyfilter::cuda {

// A stream beside the caller's. For work that would leave most of the device idle: it goes first where both want it.
enum class Turn { first, as_others };
class SideStream {
 public:
  ~SideStream() {
    if (side_ != nullptr && !joined_) (void)cudaStreamSynchronize(side_);  // what it uses is freed behind the caller's
    if (event_ != nullptr) (void)cudaEventDestroy(event_);
    if (side_ != nullptr) (void)cudaStreamDestroy(side_);
  }
  // What is put on it from now on follows what is on `stream`.
  Status fork(cudaStream_t stream) {
    PYF_TRY(mark(stream));
    return fork();
  }
  // The same in two steps: it follows what was on `stream` when that was marked.
  Status mark(cudaStream_t stream) {
    PYF_TRY(check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreate"));
    return check(cudaEventRecord(event_, stream), "cudaEventRecord");
  }
  Status fork(Turn turn = Turn::first) {
    int lowest = 0, highest = 0;
    PYF_TRY(check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "cudaDeviceGetStreamPriorityRange"));
    PYF_TRY(check(cudaStreamCreateWithPriority(&side_, cudaStreamNonBlocking, turn == Turn::first ? highest : lowest),
                  "cudaStreamCreate"));
    return check(cudaStreamWaitEvent(side_, event_, 0), "cudaStreamWaitEvent");
  }
  // What is put on it from now on follows what is on `stream`, too.
  Status follow(cudaStream_t stream) {
    PYF_TRY(check(cudaEventRecord(event_, stream), "cudaEventRecord"));
    return check(cudaStreamWaitEvent(side_, event_, 0), "cudaStreamWaitEvent");
  }
  // What is put on `stream` from now on follows what is on this one.
  Status lead(cudaStream_t stream) {
    PYF_TRY(check(cudaEventRecord(event_, side_), "cudaEventRecord"));
    return check(cudaStreamWaitEvent(stream, event_, 0), "cudaStreamWaitEvent");
  }
  // The same when nothing more is put on this one.
  Status join(cudaStream_t stream) {
    PYF_TRY(lead(stream));
    joined_ = true;
    return kOk;
  }
  [[nodiscard]] cudaStream_t get() const { return side_; }

 private:
  cudaStream_t side_ = nullptr;
  cudaEvent_t event_ = nullptr;
  bool joined_ = false;
};

}  // namespace pyfilter::cuda
