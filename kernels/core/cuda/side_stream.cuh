// SPDX-License-Identifier: BSD-3-Clause
// Side streams: work that runs concurrently with a caller's stream.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "core/cuda/memory.cuh"
#include "core/status.hpp"

namespace pyfilter::cuda {

// Priority for work that would leave most of the device idle: it goes first if both streams have work.
enum class Turn { first, as_others };
// Whether a side stream is destroyed after its call or kept for the next one. Calls that wait for the device keep it:
// otherwise the nearly idle device would wait while a new stream is made.
enum class Life { call, kept };

// The parts of a side stream.
struct SideParts {
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  std::uint32_t* words = nullptr;  // pinned host memory that the device writes to
  std::size_t most_words = 0;
  Turn turn = Turn::first;
  int device = 0;
};
Status make_side(SideParts& parts) noexcept;
void destroy_side(const SideParts& parts) noexcept;
// Returns parts kept for the current device, or makes new ones.
Status take_side(SideParts& parts) noexcept;
void keep_side(const SideParts& parts) noexcept;
// Destroys all kept parts; only for a process that has used CUDA.
void release_sides() noexcept;

// A stream beside the caller's.
class SideStream {
 public:
  explicit SideStream(Turn turn = Turn::first, Life life = Life::call) noexcept : life_(life) { parts_.turn = turn; }
  ~SideStream() {
    // the caller's stream frees the memory that this stream uses, so this one must have been joined or be done
    const bool idle = parts_.stream == nullptr || joined_ || cudaStreamSynchronize(parts_.stream) == cudaSuccess;
    if (life_ == Life::kept && idle && parts_.stream != nullptr)
      keep_side(parts_);
    else
      destroy_side(parts_);
  }
  SideStream(const SideStream&) = delete;
  SideStream& operator=(const SideStream&) = delete;

  // Work put on this stream from now on runs after the work on `stream`.
  Status fork(cudaStream_t stream) {
    PYF_TRY(mark(stream));
    return fork();
  }
  // The same in two steps: later work runs after the work that `stream` had when it was marked.
  Status mark(cudaStream_t stream) {
    PYF_TRY(make());
    return check(cudaEventRecord(parts_.event, stream), "cudaEventRecord");
  }
  Status fork() { return fork(*this); }
  // Work put on this stream from now on runs after the work for which another side stream was marked.
  Status fork(const SideStream& other) {
    PYF_TRY(make());
    return check(cudaStreamWaitEvent(parts_.stream, other.parts_.event, 0), "cudaStreamWaitEvent");
  }
  // Work put on this stream from now on runs after the work on `stream`, too.
  Status follow(cudaStream_t stream) {
    PYF_TRY(check(cudaEventRecord(parts_.event, stream), "cudaEventRecord"));
    return check(cudaStreamWaitEvent(parts_.stream, parts_.event, 0), "cudaStreamWaitEvent");
  }
  // Work put on `stream` from now on runs after the work on this stream.
  Status lead(cudaStream_t stream) {
    PYF_TRY(check(cudaEventRecord(parts_.event, parts_.stream), "cudaEventRecord"));
    return check(cudaStreamWaitEvent(stream, parts_.event, 0), "cudaStreamWaitEvent");
  }
  // The same; no more work is put on this stream afterwards.
  Status join(cudaStream_t stream) {
    PYF_TRY(lead(stream));
    joined_ = true;
    return kOk;
  }
  // Copies `count` words to the side stream's host memory, as the last work that is put on it.
  Status fetch(const std::uint32_t* words, std::size_t count) noexcept;
  // Waits for these words, and so for all work on this stream.
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
