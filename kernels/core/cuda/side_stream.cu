// SPDX-License-Identifier: BSD-3-Clause
// Keeps side streams from call to call (side_stream.cuh).
#include "core/cuda/side_stream.cuh"

#include <algorithm>
#include <mutex>
#include <new>
#include <vector>

namespace pyfilter::cuda {
namespace {

struct Kept {
  std::mutex mutex;
  std::vector<SideParts> parts;
};
Kept& kept() {
  static Kept* const all = new Kept;  // never destroyed: the driver may be gone by then
  return *all;
}

}  // namespace

Status make_side(SideParts& parts) noexcept {
  int lowest = 0, highest = 0;
  PYF_TRY(check(cudaEventCreateWithFlags(&parts.event, cudaEventDisableTiming), "cudaEventCreate"));
  PYF_TRY(check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "cudaDeviceGetStreamPriorityRange"));
  return check(
      cudaStreamCreateWithPriority(&parts.stream, cudaStreamNonBlocking, parts.turn == Turn::first ? highest : lowest),
      "cudaStreamCreate");
}

void destroy_side(const SideParts& parts) noexcept {
  if (parts.words != nullptr) (void)cudaFreeHost(parts.words);
  if (parts.event != nullptr) (void)cudaEventDestroy(parts.event);
  if (parts.stream != nullptr) (void)cudaStreamDestroy(parts.stream);
}

Status take_side(SideParts& parts) noexcept {
  PYF_TRY(check(cudaGetDevice(&parts.device), "cudaGetDevice"));
  {
    Kept& all = kept();
    const std::lock_guard<std::mutex> lock(all.mutex);
    const auto found = std::find_if(all.parts.begin(), all.parts.end(), [&](const SideParts& each) {
      return each.device == parts.device && each.turn == parts.turn;
    });
    if (found != all.parts.end()) {
      parts = *found;
      all.parts.erase(found);
      return kOk;
    }
  }
  return make_side(parts);
}

void keep_side(const SideParts& parts) noexcept {
  try {
    Kept& all = kept();
    const std::lock_guard<std::mutex> lock(all.mutex);
    all.parts.push_back(parts);
  } catch (const std::bad_alloc&) {
    destroy_side(parts);
  }
}

void release_sides() noexcept {
  Kept& all = kept();
  const std::lock_guard<std::mutex> lock(all.mutex);
  for (const SideParts& each : all.parts) destroy_side(each);
  all.parts.clear();
}

Status SideStream::fetch(const std::uint32_t* words, std::size_t count) noexcept {
  constexpr std::size_t kFewest = 1024;
  if (count > parts_.most_words) {
    if (parts_.words != nullptr) PYF_TRY(check(cudaFreeHost(parts_.words), "cudaFreeHost"));
    parts_.words = nullptr;
    parts_.most_words = 0;
    void* memory = nullptr;
    const std::size_t most = std::max(count, kFewest);
    PYF_TRY(check(cudaHostAlloc(&memory, most * sizeof *words, cudaHostAllocDefault), "cudaHostAlloc"));
    parts_.words = static_cast<std::uint32_t*>(memory);
    parts_.most_words = most;
  }
  PYF_TRY(check(cudaMemcpyAsync(parts_.words, words, count * sizeof *words, cudaMemcpyDeviceToHost, parts_.stream),
                "copy to host memory"));
  return check(cudaEventRecord(parts_.event, parts_.stream), "cudaEventRecord");
}

}  // namespace pyfilter::cuda
