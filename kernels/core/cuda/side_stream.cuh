// SPDX-License-Identifier: BSD-3-Clause
// Work beside that of a caller's stream.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "core/cuda/memory.cuh"
#include "core/status.hpp"

namespace pyfilter::cuda {

// For work that would leave most of the device idle: it goes first where both want it.
enum class Turn { first, as_others };
// What becomes of a side stream behind its call. Kept for the next call: of calls that wait for the device, so that it
// has next to nothing left to do; what it costs to make one would be time in which the device waits.
enum class Life { call, kept };

// What a side stream is made of.
struct SideParts {
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  std::uint32_t* words = nullptr;  // in host memory that the device writes to
  std::size_t most_words = 0;
  Turn turn = Turn::first;
  int device = 0;
};
Status make_side(SideParts& parts) noexcept;
void destroy_side(const SideParts& parts) noexcept;
// Parts that were kept for the current device, or new ones.
Status take_side(SideParts& parts) noexcept;
void keep_side(const SideParts& parts) noexcept;
// Destroys all that are kept; of a process that has used CUDA.
void release_sides() noexcept;

// A stream beside the caller's.
class SideStream {
 public:
  explicit SideStream(Turn turn = Turn::first, Life life = Life::call) noexcept : life_(life) { parts_.turn = turn; }
  ~SideStream() {
    // what it uses is freed behind the caller's
    const bool idle = parts_.stream == nullptr || joined_ || cudaStreamSynchronize(parts_.stream) == cudaSuccess;
    if (life_ == Life::kept && idle && parts_.stream != nullptr)
      keep_side(parts_);
    else
      destroy_side(parts_);
  }
  SideStream(const SideStream&) = delete;
  SideStream& operator=(const SideStream&) = delete;

  // What is put on it from now on follows what is on `stream`.
  Status fork(cudaStream_t stream) {
    PYF_TRY(mark(stream));
    return fork();
  }
  // The same in two steps: it follows what was on `stream` when that was marked.
  Status mark(cudaStream_t stream) {
    PYF_TRY(make());
    return check(cudaEventRecord(parts_.event, stream), "cudaEventRecord");
  }
  Status fork() { return fork(*this); }
  // What is put on it from now on follows what another one was marked for.
  Status fork(const SideStream& other) {
    PYF_TRY(make());
    return check(cudaStreamWaitEvent(parts_.stream, other.parts_.event, 0), "cudaStreamWaitEvent");
  }
  // What is put on it from now on follows what is on `stream`, too.
  Status follow(cudaStream_t stream) {
    PYF_TRY(check(cudaEventRecord(parts_.event, stream), "cudaEventRecord"));
    return check(cudaStreamWaitEvent(parts_.stream, parts_.event, 0), "cudaStreamWaitEvent");
  }
  // What is put on `stream` from now on follows what is on this one.
  Status lead(cudaStream_t stream) {
    PYF_TRY(check(cudaEventRecord(parts_.event, parts_.stream), "cudaEventRecord"));
    return check(cudaStreamWaitEvent(stream, parts_.event, 0), "cudaStreamWaitEvent");
  }
  // The same when nothing more is put on this one.
  Status join(cudaStream_t stream) {
    PYF_TRY(lead(stream));
    joined_ = true;
    return kOk;
  }
  // Copies `count` words, the last that is put on it, to host memory that belongs to it.
  Status fetch(const std::uint32_t* words, std::size_t count) noexcept;
  // Waits for them, and so for all that is on it.
  Status wait() {
    PYF_TRY(check(cudaEventSynchronize(parts_.event), "cudaEventSynchronize"));
    joined_ = true;
    return kOk;
  }
  [[nodiscard]] const std::uint32_t* words() const { return parts_.words; }
  [[nodiscard]] cudaStream_t get() const { return parts_.stream; }

 private:
  Status make() {
    if (parts_.stream != nullptr) return kOk;
    return life_ == Life::kept ? take_side(parts_) : make_side(parts_);
  }

  SideParts parts_;
  Life life_;
  bool joined_ = false;
};

}  // namespace pyfilter::cuda
